import type { Grant } from '../../index.ts'

/** What memory tools write is read by every later run of the user, whichever folder that works in. */
const MEMORY: readonly string[] = ['tool:memory_remember', 'tool:memory_forget']
const ASKED: readonly string[] = ['file.write:/workspace/**', 'file.delete:/workspace/**', 'exec:*', 'net:*', ...MEMORY]

/** What a run of the command line may do: read below the working folder; a person is asked before anything changes. */
export function rootGrant(): Grant {
  return {
    use: ['tool:*', 'agent:*', 'model:*', 'file.list:/workspace/**', 'file.read:/workspace/**', ...ASKED],
    ask: ASKED,
  }
}
