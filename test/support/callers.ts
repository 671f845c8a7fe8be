import type { AnyAgent, ConversationHandle, Grant, Run, Runtime, StartOptions } from 'legate'
import type { Json } from '../../src/core/base/json.ts'
import type { Budget } from '../../src/core/grant/budget.ts'
import { freezeLayer } from '../../src/core/grant/ceiling.ts'
import { narrowingLayer } from '../../src/core/grant/grant.ts'
import type { HandleOptions } from '../../src/core/runtime/live-runs.ts'
import type { RunStarter, StartRequest } from '../../src/core/runtime/start-run.ts'

/** Somebody on whose behalf runs start: a narrowing layer, and a budget where one is given. */
export function callerLayer(by: string, grant: Omit<Grant, 'delegate'>, budget?: Budget): readonly Json[] {
  const layer = narrowingLayer(by, grant)
  return [freezeLayer(budget === undefined ? layer : { ...layer, budget })]
}

export type Layers = Pick<StartRequest, 'creator' | 'caller'>

interface Inner {
  readonly starter: RunStarter
  conversationFor(id: string, by: Pick<Layers, 'caller'>): Promise<ConversationHandle>
  readonly handles: { make<Out, Written>(options: HandleOptions): Run<Out, Written> }
}

function boundTo(target: object, value: unknown): unknown {
  return typeof value === 'function' ? value.bind(target) : value
}

const innerOf = (runtime: Runtime) => runtime as unknown as Inner

/** A runtime as its surfaces hold it for one caller: runs and changes of history carry the caller's layers. */
export class RuntimeFor {
  readonly runtime: Runtime
  private readonly layers: Layers

  constructor(runtime: Runtime, layers: Layers) {
    this.runtime = runtime
    this.layers = layers
  }

  /** The runtime itself, whose runs are started for the caller, each with this request. */
  asRuntime(request: Pick<StartOptions, 'grant' | 'budget'> = {}): Runtime {
    const { runtime, layers } = this
    const run: Runtime['run'] = (given, input, options = {}) => {
      const inner = innerOf(runtime)
      if (typeof given === 'string') throw new Error('Tests start agents themselves, not their names.')
      const agent = given
      return inner.handles.make(inner.starter.start(agent, input, { options: { ...request, ...options }, ...layers }))
    }
    return new Proxy(runtime, {
      get: (target, key) => (key === 'run' ? run : boundTo(target, Reflect.get(target, key))),
    })
  }

  /** Starts a run, and gives its handle when it is recorded. */
  async run(agent: AnyAgent, input: string, options: StartOptions = {}): Promise<Run> {
    const { runId, started } = innerOf(this.runtime).starter.start(agent, input, { options, ...this.layers })
    await started
    return this.runtime.attach(runId)
  }

  conversation(id: string): Promise<ConversationHandle> {
    return innerOf(this.runtime).conversationFor(id, { caller: this.layers.caller })
  }
}
