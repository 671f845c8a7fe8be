import { InputError } from '../../base/error.ts'
import { checkHandle, number, type OptionRules, oneOf, readOptions } from '../../base/options.ts'
import { type JoinStatus, joinStatus } from '../../graph/kinds.ts'
import type { RunOutcome } from '../../graph/outcome.ts'
import type { Wait } from '../../graph/rows.ts'
import type { SpawnedAgent } from './handle.ts'

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
    throw new InputError('invalid_input', `joinSpawned(): ${how} is not a number of agents that must complete.`)
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
