import type { Clock } from '../../base/clock.ts'
import type { RunOutcome } from '../../conversation/run.ts'
import { activityOf, childState } from '../../graph/child-report.ts'
import { linesOf } from '../../graph/child-tools.ts'
import { Draft } from '../../graph/draft.ts'
import { type JoinStatus, joinStatus } from '../../graph/join.ts'
import type { Id, Wait } from '../../graph/rows.ts'
import type { Store } from '../../store/store.ts'

/** What a spawned agent is doing, as `subagent_poll` says it. */
export type ChildPoll = ReturnType<typeof childState> & {
  /** How its newest run ended; null while it goes on. */
  readonly outcome: string | null
  readonly lastActivity: string
  readonly isStalled: boolean
  readonly transcriptLines: readonly string[]
}

/** An agent that works beside the code that started it. It keeps nothing: all of it is read from the rows. */
export interface Spawned<Out = unknown> {
  /** Of its first run. */
  readonly id: Id
  readonly conversationId: Id
  /** The outcome of its newest run; null when it is not over in time. Its own deadline is another. */
  wait(options?: { readonly timeoutMs?: number }): Promise<RunOutcome<Out> | null>
  result(): Promise<RunOutcome<Out>>
  poll(options?: { readonly limitTurns?: number }): Promise<ChildPoll>
  /** One more turn for it, heard after what it is doing now. */
  send(text: string): Promise<void>
  /** Asks all its open runs to stop. */
  cancel(reason?: string): Promise<void>
}

export interface SpawnedParts {
  readonly store: Store
  readonly clock: Clock
  readonly id: Id
  readonly conversationId: Id
  /** Waits for a run, and says that its outcome was taken. */
  readonly take: (runId: Id) => Promise<RunOutcome>
  readonly send: (text: string) => Promise<unknown>
  readonly cancel: (runId: Id, reason: string | undefined) => Promise<void>
}

export function spawnedHandle<Out>(parts: SpawnedParts): Spawned<Out> {
  const { store, clock, conversationId } = parts
  const newest = () => store.turnsOf(conversationId, { limit: 1 })[0]?.id ?? parts.id
  const result = () => parts.take(newest()) as Promise<RunOutcome<Out>>
  return {
    id: parts.id,
    conversationId,
    result,
    wait: ({ timeoutMs } = {}) => (timeoutMs === undefined ? result() : inTime(result, clock, timeoutMs)),
    poll: async ({ limitTurns = 10 } = {}) => pollOf(store, clock, { conversationId, limitTurns, runId: newest() }),
    send: async (text) => {
      await parts.send(text)
    },
    cancel: async (reason) => {
      const open = store.turnsOf(conversationId, { limit: MOST_OPEN }).filter(({ state }) => state !== 'ended')
      for (const { id } of open) await parts.cancel(id, reason)
    },
  }
}

const MOST_OPEN = 100

async function inTime<T>(result: () => Promise<T>, clock: Clock, timeoutMs: number): Promise<T | null> {
  let disarm: () => void = () => undefined
  const late = new Promise<null>((resolve) => {
    disarm = clock.at(clock.now() + timeoutMs, () => resolve(null))
  })
  try {
    return await Promise.race([result(), late])
  } finally {
    disarm()
  }
}

interface PollRequest {
  readonly conversationId: Id
  readonly runId: Id
  readonly limitTurns: number
}

function pollOf(store: Store, clock: Clock, { conversationId, runId, limitTurns }: PollRequest): ChildPoll {
  const rows = new Draft(store, clock.now())
  const child = rows.conversation(conversationId)
  const { last_activity: lastActivity, stalled = false } = activityOf(rows, runId)
  return {
    ...childState(rows, child),
    outcome: rows.turn(runId).outcome?.status ?? null,
    lastActivity,
    isStalled: stalled,
    transcriptLines: linesOf(rows, child, limitTurns),
  }
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
  { losers = 'leave', timeoutMs }: JoinOptions = {},
): Promise<Joined<Out>> {
  const outcomes: (RunOutcome<Out> | null)[] = spawned.map(() => null)
  const status = await new Promise<Joined['status']>((resolve, reject) => {
    const look = () => {
      const found = joinStatus(
        how,
        outcomes.map((outcome) => outcome?.status ?? null),
      )
      if (found !== undefined) resolve(found)
    }
    look()
    for (const [at, one] of spawned.entries()) {
      one.wait(timeoutMs === undefined ? {} : { timeoutMs }).then((outcome) => {
        outcomes[at] = outcome
        if (outcome === null) resolve('timed_out')
        else look()
      }, reject)
    }
  })
  const taken = [...outcomes]
  if (losers === 'cancel' && status !== 'timed_out') {
    await Promise.all(spawned.map((one, at) => (taken[at] === null ? one.cancel('Another was enough.') : undefined)))
  }
  return { status, outcomes: taken }
}
