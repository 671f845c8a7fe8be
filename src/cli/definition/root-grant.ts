import type { Grant } from '../../index.ts'

const ASKED: readonly string[] = ['file.write:/workspace/**', 'file.delete:/workspace/**', 'exec:*', 'net:*']

/** What a run of the command line may do: read below the working folder; a person is asked before anything changes. */
export function rootGrant(): Grant {
  return {
    use: ['tool:*', 'agent:*', 'model:*', 'file.list:/workspace/**', 'file.read:/workspace/**', ...ASKED],
    ask: ASKED,
  }
}
