import type { AnyAgent } from '../../agent/definition/agent.ts'
import { InputError } from '../../base/error.ts'
import { checkHandle, number, type OptionRules, oneOf, readOptions } from '../../base/options.ts'
import type { RunOutcome } from '../../conversation/run.ts'
import { type JoinStatus, joinStatus } from '../../graph/kinds.ts'
import type { Outcome } from '../../graph/outcome.ts'
import type { Id, Wait } from '../../graph/rows.ts'
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

export interface JoinResult<Out = unknown> {
  readonly status: JoinStatus | 'timed_out'
  /** The outcomes in the order of the handles; null for an agent that had not ended. */
  readonly outcomes: readonly (RunOutcome<Out> | null)[]
}

export interface JoinOptions {
  /** Whether agents that are no longer needed are left alone or cancelled. Default: leave. */
  readonly losers?: 'leave' | 'cancel'
  /** How long to wait. Default: as long as it takes. */
  readonly timeoutMs?: number
}

/**
 * Waits for several agents. `all`, `any` or a number says how many must complete; the wait ends as soon as that is
 * reached or has become impossible. `settled` waits for every end, good or bad.
 */
export async function joinSpawned<Out>(
  spawned: readonly SpawnedAgent<Out>[],
  how: Wait['join'],
  options: JoinOptions = {},
): Promise<JoinResult<Out>> {
  const { losers = 'leave', timeoutMs } = readOptions('joinSpawned(spawned, how, options)', options, OPTIONS)
  if (typeof how === 'number' && !(Number.isInteger(how) && how >= 1)) {
    throw new InputError('invalid_input', `joinSpawned(): ${how} is no number of agents that must complete.`)
  }
  if (typeof how !== 'number' && !HOW.includes(how)) {
    throw new InputError(
      'invalid_input',
      `joinSpawned(): ${JSON.stringify(how)} is none of ${HOW.join(', ')}, and no number.`,
    )
  }
  for (const one of spawned) checkHandle(one, 'wait', 'joinSpawned() takes handles that spawn() gave')
  const outcomes: (RunOutcome<Out> | null)[] = spawned.map(() => null)
  const over = new AbortController()
  let status: JoinResult['status'] | undefined
  const look = (isLate: boolean) => {
    status ??= isLate
      ? 'timed_out'
      : joinStatus(
          how,
          outcomes.map((outcome) => outcome?.status ?? null),
        )
    if (status !== undefined) over.abort()
  }
  look(false)
  const waits = spawned.map(async (one, at) => {
    const outcome = await one.wait({ abortSignal: over.signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) })
    outcomes[at] = outcome
    look(outcome === null)
  })
  // The result includes every outcome that has arrived by now. Hosts are not notified of those again.
  await Promise.all(waits)
  const isLost = losers === 'cancel' && status !== 'timed_out'
  if (isLost) await Promise.all(spawned.map((one, at) => (outcomes[at] === null ? one.cancel(ENOUGH) : undefined)))
  return { status: status ?? 'timed_out', outcomes }
}

const OPTIONS: OptionRules<JoinOptions> = { losers: oneOf('leave', 'cancel'), timeoutMs: number(0) }

const HOW: readonly unknown[] = ['settled', 'all', 'any']

const ENOUGH = 'Another was enough.'
