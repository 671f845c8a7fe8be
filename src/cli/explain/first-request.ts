import {
  type AnyAgent,
  createRuntime,
  diskFiles,
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

/** Stands in for the model that is named so: it keeps what it is asked and says nothing. */
export class ListeningModel implements Model {
  readonly id: string
  heard: ModelRequest | null = null

  constructor(id: string) {
    this.id = id
  }

  stream(request: ModelRequest): AsyncIterable<never> {
    this.heard ??= request
    return { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error(HEARD)) }) }
  }
}

const HEARD = 'This was only asked to be explained.'

/** The run is really begun, in memory and with a model that only listens: what is shown is what would be sent. */
export async function firstRequest(agent: AnyAgent, input: Json, model: ListeningModel): Promise<FirstRequest> {
  const runtime = createRuntime({ model, files: diskFiles({ workspace: process.cwd() }) })
  try {
    const run = runtime.run(agent, input as never)
    const { error } = await run.result
    const turn = runtime.store.turn(run.id)
    if (turn === undefined) throw new Error('the run was not recorded')
    const { limits, spend } = turn
    return { request: model.heard, limits, spend, trouble: model.heard === null ? (error?.message ?? null) : null }
  } finally {
    await runtime.close()
  }
}
