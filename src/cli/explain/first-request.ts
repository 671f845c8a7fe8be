import {
  type AnyAgent,
  createRuntime,
  diskFiles,
  type ExtensionCore,
  type Json,
  type Model,
  type ModelRequest,
  type Turn,
} from '../../index.ts'

/** What an agent's model would be asked first, and by what its run is bound. */
export interface FirstRequest {
  /** Null where the run would end before its model is asked. */
  readonly request: ModelRequest | null
  readonly limits: Turn['limits']
  readonly spend: Turn['spend']
  /** Why it would end, where it would. */
  readonly trouble: string | null
}

/** For an agent that names no model. Nobody is ever asked anything. */
const NO_MODEL: Model = { id: 'none/none', stream: () => NOTHING }
const NOTHING: AsyncIterable<never> = {
  [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: undefined }) }),
}

/** The run is really begun, in memory, and ends where its model would be asked: what is shown is what would be sent. */
export async function firstRequest(agent: AnyAgent, input: Json): Promise<FirstRequest> {
  const listener = new Listener()
  const runtime = createRuntime({
    model: NO_MODEL,
    files: diskFiles({ workspace: process.cwd() }),
    extensions: [listener.extension],
  })
  try {
    const run = runtime.run(agent, input as never)
    const outcome = await Promise.race([listener.heard, run.result])
    const turn = runtime.store.turn(run.id)
    if (turn === undefined) throw new Error('the run was not recorded')
    const { limits, spend } = turn
    if ('messages' in outcome) {
      await run.cancel()
      return { request: outcome, limits, spend, trouble: null }
    }
    return { request: null, limits, spend, trouble: outcome.error?.message ?? outcome.status }
  } finally {
    await runtime.close()
  }
}

/** Stands between an agent and its model, keeps what it is asked first, and asks nobody. */
class Listener {
  private hear: (request: ModelRequest) => void = () => undefined
  readonly heard: Promise<ModelRequest> = new Promise((resolve) => {
    this.hear = resolve
  })
  readonly extension: ExtensionCore = {
    name: 'explain',
    onError: 'fail',
    hooks: {
      wrapModel: (request, _, { signal }) => {
        this.hear(request)
        return new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('')))
      },
    },
  }
}
