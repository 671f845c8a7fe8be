import type { AnyAgent } from '../../agent/definition/agent.ts'
import { oneOf, readOptions } from '../../base/options.ts'
import type { Outcome } from '../../graph/outcome.ts'
import type { Id } from '../../graph/rows.ts'
import { currentCall } from '../../tool/current.ts'
import type { SpawnedAgent, SpawnedParts } from './handle.ts'

/** The services of a runtime that code needs to start agents in the background. */
export interface Starter extends Pick<SpawnedParts, 'store' | 'clock'> {
  readonly runtime: {
    cancel(runId: Id, reason?: string): Promise<void>
    answer(nodeId: Id, answer: { readonly text: string; readonly by: string }): Promise<void>
  }
  /** Starts a root run, or one more run of the conversation given. Resolves when the run is recorded. */
  start(input: unknown, conversationId?: Id): Promise<{ readonly id: Id; readonly conversationId: Id }>
  waitUnless(runId: Id, signal: AbortSignal | undefined): Promise<Outcome | null>
}

export interface SpawnAgentOptions {
  /** Inside a tool: how the host learns of an end that the code did not wait for. Default `auto`. */
  readonly wake?: 'auto' | 'passive'
}

/** Starts an agent in the background: inside a tool as a child of the running call, elsewhere as a new root. */
export async function spawnAgent<Out>(
  starter: Starter,
  agent: AnyAgent,
  { input, options }: { readonly input: unknown; readonly options: SpawnAgentOptions },
): Promise<SpawnedAgent<Out>> {
  const { wake = 'auto' } = readOptions('spawn(agent, input, options)', options, { wake: oneOf('auto', 'passive') })
  const { store, clock, runtime } = starter
  const cancel: SpawnedParts['cancel'] = (runId, reason) => runtime.cancel(runId, reason)
  const answer: SpawnedParts['answer'] = (nodeId, text) => runtime.answer(nodeId, { text, by: 'host' })
  const common = { store, clock, cancel, answer }
  const current = currentCall()
  if (current?.runtime === runtime) {
    const { runId: id, conversationId, take } = await current.spawn(agent, input, { wake, sessionId: null })
    const send = (text: string) => current.spawn(agent, text, { wake, sessionId: conversationId })
    return handleOf({ ...common, id, conversationId, take, send })
  }
  const { id, conversationId } = await starter.start(input)
  const send = (text: string) => starter.start(text, conversationId)
  const take = (runId: Id, signal: AbortSignal | undefined) => starter.waitUnless(runId, signal)
  return handleOf({ ...common, id, conversationId, take, send })
}

/** Loads the code of handles on first use, so that runs without background children never pay for it. */
async function handleOf<Out>(parts: SpawnedParts): Promise<SpawnedAgent<Out>> {
  const { spawnedHandle } = await import('./handle.ts')
  return spawnedHandle(parts)
}
