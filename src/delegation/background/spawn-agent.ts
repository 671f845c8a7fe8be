import type { AnyAgent } from '../../agent/definition/agent.ts'
import { InputError } from '../../base/error.ts'
import { number, type OptionRules, oneOf, readOptions } from '../../base/options.ts'
import type { RunOutcome } from '../../conversation/run.ts'
import { type JoinStatus, joinStatus } from '../../graph/kinds.ts'
import type { Id, Wait } from '../../graph/rows.ts'
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

export interface Joined<Out = unknown> {
  readonly status: JoinStatus | 'timed_out'
  /** In the order of the handles; null for one that was not over. */
  readonly outcomes: readonly (RunOutcome<Out> | null)[]
}

export interface JoinOptions {
  /** What happens to those that are not needed any more. Default: leave. */
  readonly losers?: 'leave' | 'cancel'
  readonly timeoutMs?: number
}

/**
 * Waits for several: `all`, `any` or so many must complete, and it is over as soon as that is so or cannot be any more;
 * `settled` waits for every end, good or bad.
 */
export async function joinSpawned<Out>(
  spawned: readonly Spawned<Out>[],
  how: Wait['join'],
  options: JoinOptions = {},
): Promise<Joined<Out>> {
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
  const outcomes: (RunOutcome<Out> | null)[] = spawned.map(() => null)
  const over = new AbortController()
  let status: Joined['status'] | undefined
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
  // Whoever has its outcome by now is in the result: it is told to nobody else.
  await Promise.all(waits)
  const isLost = losers === 'cancel' && status !== 'timed_out'
  if (isLost) await Promise.all(spawned.map((one, at) => (outcomes[at] === null ? one.cancel(ENOUGH) : undefined)))
  return { status: status ?? 'timed_out', outcomes }
}

const OPTIONS: OptionRules<JoinOptions> = { losers: oneOf('leave', 'cancel'), timeoutMs: number(0) }

const HOW: readonly unknown[] = ['settled', 'all', 'any']

const ENOUGH = 'Another was enough.'
