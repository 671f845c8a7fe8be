import type { AnyAgent } from '../../agent/agent.ts'
import { oneOf, readOptions } from '../../base/options.ts'
import type { RunOutcome } from '../../conversation/run.ts'
import type { Id } from '../../graph/rows.ts'
import { currentCall } from '../../tool/current.ts'
import type { Spawned, SpawnedParts } from './handle.ts'

/** What a runtime does for those who start agents in the background. */
export interface Starter extends Pick<SpawnedParts, 'store' | 'clock'> {
  readonly runtime: {
    cancel(runId: Id, reason?: string): Promise<void>
    answer(nodeId: Id, answer: { readonly text: string; readonly by: string }): Promise<void>
  }
  /** Starts a root run, or one more of its conversation; resolves when it is recorded. */
  start(input: unknown, conversationId?: Id): Promise<{ readonly id: Id; readonly conversationId: Id }>
  waitUnless(runId: Id, signal: AbortSignal | undefined): Promise<RunOutcome | null>
}

export interface SpawnAgentOptions {
  /** Inside a tool: how the host hears of an end that the code did not wait for. Default `auto`. */
  readonly wake?: 'auto' | 'passive'
}

/** Inside a tool the agent is a child of the running call, else a root of its own. */
export async function spawnAgent<Out>(
  starter: Starter,
  agent: AnyAgent,
  { input, options }: { readonly input: unknown; readonly options: SpawnAgentOptions },
): Promise<Spawned<Out>> {
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

/** Loaded when there is one to hold, and not before: which child is the first is said when it is asked for. */
async function handleOf<Out>(parts: SpawnedParts): Promise<Spawned<Out>> {
  const { spawnedHandle } = await import('./handle.ts')
  return spawnedHandle(parts)
}
