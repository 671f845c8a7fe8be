import { InputError } from '../../base/error.ts'
import { number, oneOf, type Rules, readOptions } from '../../base/options.ts'
import type { RunOutcome } from '../../conversation/run.ts'
import { type JoinStatus, joinStatus } from '../../graph/child/join-status.ts'
import type { Wait } from '../../graph/rows.ts'
import type { Spawned } from './handle.ts'

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

const OPTIONS: Rules<JoinOptions> = { losers: oneOf('leave', 'cancel'), timeoutMs: number(0) }

const HOW: readonly unknown[] = ['settled', 'all', 'any']

const ENOUGH = 'Another was enough.'
