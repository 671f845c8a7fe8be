import type { AnyAgent } from '../../agent/agent.ts'
import type { RunOutcome } from '../../conversation/run.ts'
import type { Id } from '../../graph/rows.ts'
import { currentCall } from '../../tool/current.ts'
import { type Spawned, type SpawnedParts, spawnedHandle } from './handle.ts'

/** What a runtime does for those who start agents in the background. */
export interface Starter extends Pick<SpawnedParts, 'store' | 'clock' | 'cancel'> {
  readonly runtime: object
  /** Starts a root run, or one more of its conversation; resolves when it is recorded. */
  start(input: unknown, conversationId?: Id): Promise<{ readonly id: Id; readonly conversationId: Id }>
  waitUnless(runId: Id, signal: AbortSignal | undefined): Promise<RunOutcome | null>
}

/** Inside a tool the agent is a child of the running call, else a root of its own. */
export async function spawnAgent<Out>(
  starter: Starter,
  agent: AnyAgent,
  { input, wake }: { readonly input: unknown; readonly wake: 'auto' | 'passive' },
): Promise<Spawned<Out>> {
  const { store, clock, cancel } = starter
  const current = currentCall()
  if (current?.runtime === starter.runtime) {
    const { runId: id, conversationId, take } = await current.spawn(agent, input, { wake, sessionId: null })
    const send = (text: string) => current.spawn(agent, text, { wake, sessionId: conversationId })
    return spawnedHandle({ store, clock, id, conversationId, take, send, cancel })
  }
  const { id, conversationId } = await starter.start(input)
  const send = (text: string) => starter.start(text, conversationId)
  const take = (runId: Id, signal: AbortSignal | undefined) => starter.waitUnless(runId, signal)
  return spawnedHandle({ store, clock, id, conversationId, take, send, cancel })
}
