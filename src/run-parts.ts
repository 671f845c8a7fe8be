import type { AgentCore } from './agent/agent.ts'
import { type Given, inputContent, saidBefore } from './agent/input.ts'
import { onAbort } from './base/abort.ts'
import { messageOf } from './base/error.ts'
import type { Run } from './conversation/run.ts'
import { type Budget, limitsOf, moneyOf, treeLimitOf } from './grant/budget.ts'
import type { Grant } from './grant/grant.ts'
import { newTree } from './graph/child/new-tree.ts'
import type { Outcome } from './graph/outcome.ts'
import type { Id, Turn } from './graph/rows.ts'
import type { TurnBounds } from './graph/turn/begin-turn.ts'
import type { TurnRequest } from './graph/turn/open-turn.ts'
import { budgetOf } from './turn-bounds.ts'

/** Whoever started it has had enough when this aborts. */
export function cancelOnAbort(run: Pick<Run, 'cancel' | 'result'>, signal: AbortSignal): void {
  const remove = onAbort(signal, () => {
    run.cancel(messageOf(signal.reason)).catch(() => undefined)
  })
  run.result.then(remove, remove)
}

export interface SayOptions {
  readonly owner: string | null
  readonly title: string | null
  readonly grant: Grant | undefined
  readonly budget: Budget | undefined
  readonly attributes: Turn['attributes']
  /** What becomes of a run that is going on in the conversation. */
  readonly whileRunning: 'queue' | 'restart'
  readonly runId: Id
  readonly conversationId: Id
  readonly nodeIds: readonly Id[]
  /** The caller named the conversation: it must be there. */
  readonly isKnown: boolean
  /** Why it is cancelled as it is recorded, so that nothing of it begins; null where it is not. */
  readonly aborted: string | null
}

export interface HandleOptions {
  readonly runId: Id
  readonly conversationId: Id
  readonly started: undefined | Promise<unknown>
  /** Where somebody else waits for it already. */
  readonly outcome?: Promise<Outcome>
  readonly abortSignal?: AbortSignal | undefined
  readonly isOwn: boolean
  /** Where it is known before the run is recorded. */
  readonly agent?: AgentCore
}

interface TurnOptions extends Pick<SayOptions, 'runId' | 'nodeIds' | 'attributes' | 'aborted'> {
  /** The application's, and the caller's. */
  readonly budgets: readonly (Budget | undefined)[]
  /** What binds its lane: one that was forked from a subagent's is bound as that was (I1). */
  readonly lane: TurnBounds | undefined
}

/** One more turn of an agent at the root: what it is asked, and what it may use. */
export function turnRequest(
  agent: AgentCore,
  input: Given,
  { runId, nodeIds, attributes, budgets: given, lane, aborted }: TurnOptions,
): TurnRequest {
  const { value, said } = input
  const briefing = saidBefore(input)
  const budgets = [agent.budget, ...given, lane === undefined ? undefined : budgetOf(lane)]
  return {
    turnId: runId,
    nodeIds: briefing === null ? nodeIds.slice(1) : nodeIds,
    input: value,
    content: said?.content ?? inputContent(agent.input, input),
    asked: said?.asked,
    briefing,
    limits: limitsOf(budgets),
    money: moneyOf(budgets),
    tree: newTree(treeLimitOf(budgets)),
    deadline: null,
    mayStart: aborted === null,
    attributes,
  }
}
