// The handle of an agent that works in the background: `runtime.spawn` and `context.spawn` return it.
//
// Owns: waiting, polling, sending and cancelling for one child conversation.
// Called by: user code; `spawn-agent` makes the handles and `joinSpawned` waits for several.
//
// Must stay true:
// - It has no state: another process that knows the conversation's id can make the same handle.
// - An outcome that `wait` returned counts as received, so the host is not notified of it again.
// - `send` answers an open question exactly once; otherwise the text becomes one more turn.

import { onAbort } from '../../base/abort.ts'
import type { Clock } from '../../base/clock.ts'
import { ConflictError } from '../../base/error.ts'
import type { Later } from '../../base/maybe.ts'
import { int, type NoOptions, number, type OptionRules, readOptions, record, text } from '../../base/options.ts'
import { Draft } from '../../graph/draft.ts'
import type { Outcome, RunOutcome } from '../../graph/outcome.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id, Turn } from '../../graph/rows.ts'
import { activityOf, childState } from '../../rules/delegation/child-report.ts'
import { linesOf } from '../../rules/delegation/child-tools.ts'
import { questionOf, startersQuestion } from '../../rules/turn/question-of.ts'
import { lookWith } from '../../store/look.ts'
import type { Store } from '../../store/store.ts'

/** The state of a spawned agent, as `subagent_poll` reports it. */
export type ChildPoll = ReturnType<typeof childState> & {
  /** How its newest run ended; null while that run is still open. */
  readonly outcome: string | null
  readonly lastActivity: string
  readonly isStalled: boolean
  /** The question it asked with `ask_host`, if it is waiting for an answer. Reply with `send`. */
  readonly question: string | null
  readonly transcriptLines: readonly string[]
}

/**
 * An agent that works beside the code that started it. The handle has no state of its own and reads everything from the
 * rows.
 */
export interface SpawnedAgent<Out = unknown> {
  /** Id of the first run. */
  readonly id: Id
  readonly conversationId: Id
  /**
   * Resolves with the outcome of the newest run, or with null if the timeout or the signal comes first. The agent's own
   * deadline is separate.
   */
  wait(options?: { readonly timeoutMs?: number; readonly abortSignal?: AbortSignal }): Promise<RunOutcome<Out> | null>
  result(options?: NoOptions): Promise<RunOutcome<Out>>
  poll(options?: { readonly limitTurns?: number }): Promise<ChildPoll>
  /** Answers the open `ask_host` question if there is one. Otherwise it queues one more turn after the current one. */
  send(text: string): Promise<void>
  /** Asks all open runs of the agent to stop. */
  cancel(reason?: string): Promise<void>
}

export interface SpawnedParts {
  readonly store: Store
  readonly clock: Clock
  readonly id: Id
  readonly conversationId: Id
  /** Waits for a run and marks its outcome as received; resolves with null as soon as the signal aborts. */
  readonly take: (runId: Id, signal: AbortSignal | undefined) => Promise<Outcome | null>
  readonly send: (text: string) => Promise<unknown>
  readonly answer: (nodeId: Id, text: string) => Promise<void>
  readonly cancel: (runId: Id, reason: string | undefined) => Promise<void>
}

export function spawnedHandle<Out>(parts: SpawnedParts): SpawnedAgent<Out> {
  const { clock, conversationId } = parts
  const newest = async () => (await turnsOf(parts, 1))[0]?.id ?? parts.id
  const take = async (signal: AbortSignal | undefined) =>
    (await parts.take(await newest(), signal)) as RunOutcome<Out> | null
  return {
    id: parts.id,
    conversationId,
    result: async (options = {}) => {
      readOptions('result()', options, {})
      return take(undefined) as Promise<RunOutcome<Out>>
    },
    wait: async (options = {}) => inTime(take, clock, readOptions('wait()', options, WAIT)),
    poll: async (options = {}) => {
      const { limitTurns = 10 } = readOptions('poll()', options, { limitTurns: int(0) })
      const runId = await newest()
      return lookWith(parts.store, conversationId, (tree) => pollOf(tree, clock, { conversationId, limitTurns, runId }))
    },
    send: async (text) => {
      if (!(await isAnswer(parts, text))) await parts.send(text)
    },
    cancel: async (reason) => {
      readOptions('cancel()', { reason }, { reason: text })
      const turns = await turnsOf(parts, MOST_OPEN)
      const open = turns.filter(({ state }) => state !== 'ended')
      for (const { id } of open) await parts.cancel(id, reason)
    },
  }
}

const WAIT: OptionRules<WaitOptions> = { timeoutMs: number(0), abortSignal: record }
const MOST_OPEN = 100

/** The newest turns of the agent. */
function turnsOf({ store, conversationId }: SpawnedParts, limit: number): Later<readonly Turn[]> {
  return lookWith(store, conversationId, (tree) => tree.turnsOf(conversationId, { limit }))
}

/**
 * Tells whether the text answered an open question. If somebody else answered first, the text becomes one more turn.
 */
async function isAnswer(parts: SpawnedParts, text: string): Promise<boolean> {
  const { store, clock, conversationId, answer } = parts
  const asked = await lookWith(store, conversationId, (tree) => {
    const rows = new Draft(tree, clock.now())
    return startersQuestion(rows, rows.conversation(conversationId))
  })
  if (asked === undefined) return false
  try {
    await answer(asked.id, text)
    return true
  } catch (error) {
    if (error instanceof ConflictError) return false
    throw error
  }
}

interface WaitOptions {
  readonly timeoutMs?: number
  readonly abortSignal?: AbortSignal
}

async function inTime<T>(
  take: (signal: AbortSignal | undefined) => Promise<T | null>,
  clock: Clock,
  { timeoutMs, abortSignal }: WaitOptions,
): Promise<T | null> {
  if (timeoutMs === undefined) return take(abortSignal)
  const over = new AbortController()
  const disarm = clock.at(clock.now() + timeoutMs, () => over.abort())
  const leave = onAbort(abortSignal, () => over.abort())
  try {
    return await take(over.signal)
  } finally {
    disarm()
    leave()
  }
}

function pollOf(
  tree: TreeReader,
  clock: Clock,
  {
    conversationId,
    runId,
    limitTurns,
  }: { readonly conversationId: Id; readonly runId: Id; readonly limitTurns: number },
): ChildPoll {
  const rows = new Draft(tree, clock.now())
  const child = rows.conversation(conversationId)
  const asked = startersQuestion(rows, child)
  const { last_activity: lastActivity, stalled = false } = activityOf(rows, runId)
  return {
    ...childState(rows, child),
    outcome: rows.turn(runId).outcome?.status ?? null,
    lastActivity,
    isStalled: stalled,
    question: asked === undefined ? null : (questionOf(asked)?.text ?? ''),
    transcriptLines: linesOf(rows, child, limitTurns),
  }
}
