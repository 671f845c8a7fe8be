// The end of a model call: what its answer adds to the graph.
//
// Owns:      `planExpand` (an answer with calls: tasks and the next message), `planAnswer` (the last word, or one more try),
//            `nextCall` with `wrapUp` (what the model is told at a limit), and the counting of calls and usage.
// Called by: `agent/step`, under the claim of the message; `end-node` and `history/remake-turn` use `nextCall`.
// Must stay true:
//   - Answer, tasks and the message that reads their results are one commit: no call without its task.
//   - Calls beyond the limit are dropped before they are tasks, and the next call wraps up (I7).
//   - A run that was asked to stop keeps the words of the answer and starts none of its calls.

import type { Json } from '../../base/json.ts'
import { addUsage, type Content, NO_USAGE, type ToolCall, totalTokens, type Usage } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import type { EventBody } from '../../graph/event.ts'
import { isSideCall } from '../../graph/kinds.ts'
import { amountOf, changedAccount, mayCall, toolCallsLeft } from '../../graph/limits.ts'
import type { EagerTask } from '../../graph/outcome.ts'
import { keptOptions } from '../../graph/rows.made.ts'
import type { Id, KeptOptions, Node, NodeOutput, Purpose, Turn } from '../../graph/rows.ts'
import { expansionIds } from '../../graph/tasks.ts'
import { countAnswer, countSpending } from './account.ts'
import { cancelSuperseded } from './cancel.ts'
import { type Claim, heldNode } from './claim.ts'
import { applyCompaction } from './compaction.ts'
import { endNode, type NodeEnd } from './end-node.ts'

export interface StepAnswer {
  readonly content: Content
  readonly reasoning: string
  readonly calls: readonly ToolCall[]
  readonly droppedCalls: number
  readonly usage: Usage
  /** The reason why the model's own figures could not be counted, in words; null for most. */
  readonly usageFault: string | null
  readonly model: string
  /** The cost; null when the price is not known. */
  readonly usd: number | null
  /** Why the model stopped early; null when it finished. */
  readonly cutBy: 'length' | 'content-filter' | null
  readonly streamed: NonNullable<NodeEnd['streamed']> | null
  /** The rounds that the model did not see; only with a run's first answer, if there are any. */
  readonly contextCut?: Omit<Extract<EventBody, { type: 'context-cut' }>, 'type'> | undefined
}

/** A call of the answer as it will run: everything that must be known without its code is frozen here. */
export interface PlannedTask {
  readonly call: ToolCall
  readonly options: KeptOptions
  readonly delegates: boolean
}

/**
 * Stores the answer and, in the same commit, one task per call and the agent_message that will read their results: a crash
 * never leaves a call without its task, or a result without its call. Calls beyond the run's limit are dropped.
 */
export function planExpand(draft: Draft, claim: Claim, step: Expansion): void {
  const node = heldNode(draft, claim)
  if (node === undefined) return
  const before = draft.turn(node.turnId)
  if (before.cancel !== null || node.marks?.stop != null) return keepWords(draft, node, step.answer)
  const answer = withinLimit(step.answer, toolCallsLeft(before))
  const planned = step.tasks.length === answer.calls.length ? step.tasks : step.tasks.slice(0, answer.calls.length)
  const turn = countCall(draft, node, answer)
  const { plan } = step
  const ended = draft.changeNode(
    node,
    plan === undefined ? { usage: answer.usage } : { ...PLANNED, usage: answer.usage },
  )
  if (plan !== undefined && plan.warning !== null)
    draft.event(turn, node.id, { type: 'warning', message: plan.warning })
  const tasks = planned.map((task, at) => addTask(draft, turn, { task, ids: step.ids, at, plan }))
  const next = addNext(draft, turn, {
    id: step.ids[step.tasks.length] ?? node.id,
    blockers: tasks.length,
    call: nextCall(turn, answer.droppedCalls),
  })
  endNode(draft, ended, { state: 'finished', output: outputOf(answer), streamed: answer.streamed })
  tellCalls(draft, turn, { tasks, planned })
  linkTasks(draft, { node, next, tasks, lanes: lanesOf(plan) })
}

const PLANNED: Pick<Node, 'purpose'> = { purpose: 'plan' }

/** For an answer that only chose a tool, or none: the next message reads its result. */
export interface PlanNote {
  /** The purpose of each call. */
  readonly purposes: readonly string[]
  /** How many of the calls run at a time; null for all. */
  readonly concurrency: number | null
  /** Why the text is no plan; null where it is one. */
  readonly warning: string | null
}

export interface Expansion {
  readonly plan?: PlanNote | undefined
  readonly answer: StepAnswer
  /** One per call of the answer. */
  readonly tasks: readonly PlannedTask[]
  /** One id per task, then the next agent_message's: see `expansionIds`. */
  readonly ids: readonly Id[]
}

function withinLimit(answer: StepAnswer, left: number): StepAnswer {
  const dropped = answer.calls.length - left
  return dropped <= 0 ? answer : { ...answer, calls: answer.calls.slice(0, left), droppedCalls: dropped }
}

/** Ends the turn with the answer as its last word, unless it should and can be asked for again. */
export function planAnswer(draft: Draft, claim: Claim, end: FinalAnswer): void {
  const node = heldNode(draft, claim)
  if (node === undefined) return
  const turn = countCall(draft, node, end.answer)
  const ended = draft.changeNode(node, { usage: end.answer.usage })
  const output = outputOf(end.answer)
  if (
    end.again !== null &&
    node.purpose !== 'wrap_up' &&
    turn.cancel === null &&
    node.marks?.stop == null &&
    mayCall(turn)
  ) {
    const [id = node.id] = expansionIds(node.id, 0)
    const call = { purpose: 'repair', nudge: end.again.nudge, limit: null } as const
    const next = addNext(draft, turn, { id, blockers: 0, call })
    endNode(draft, ended, { state: 'finished', output, streamed: end.answer.streamed })
    linkTasks(draft, { node, next, tasks: [], lanes: 0 })
    return
  }
  if (end.delegations !== undefined) cancelSuperseded(draft, turn.id, end.failure === null ? end.delegations : [])
  endNode(draft, ended, {
    state: end.failure === null ? 'finished' : 'errored',
    output: finalOutput(output, end),
    failure: end.failure,
    streamed: end.answer.streamed,
    ...withNotes(ended, end),
  })
  if (end.check != null && end.failure === null && turn.cancel === null) end.check(draft, draft.node(node.id))
  if (node.purpose === 'summarize' && end.failure === null) applyCompaction(draft, draft.node(node.id))
}

function finalOutput(output: NodeOutput, { value, extra }: FinalAnswer): NodeOutput {
  const whole = value === undefined ? output : { ...output, value }
  return extra === undefined ? whole : { ...whole, extra }
}

/** Metadata for the end of the message, beside its text. */
function withNotes({ metadata }: Node, { response, delegations }: FinalAnswer): Pick<NodeEnd, 'metadata'> {
  if (response === undefined && delegations === undefined) return {}
  return {
    metadata: {
      ...metadata,
      ...(response === undefined ? {} : { response }),
      ...(delegations === undefined ? {} : { delegations: delegations as unknown as Json }),
    },
  }
}

export interface FinalAnswer {
  readonly answer: StepAnswer
  /** Asks for the answer again if possible, with these words or without any; null when the answer stands. */
  readonly again: { readonly nudge: string | null } | null
  readonly value: NodeOutput['value']
  readonly failure: Node['failure']
  /** Remarks for the host, where the answer is the result of a delegation. */
  readonly response?: Json | undefined
  /** Values that extensions added. */
  readonly extra?: NodeOutput['extra'] | undefined
  /** The tasks of items that start children, in the order of the items. Other eager tasks of the turn are superseded. */
  readonly delegations?: readonly EagerTask[] | undefined
  /** Adds a task that must finish before the answer is the last word; null when there is none. */
  readonly check?: ((draft: Draft, answer: Node) => void) | null | undefined
}

/** The run was asked to stop while the model spoke: keeps its text, and starts none of its calls. */
function keepWords(draft: Draft, node: Node, answer: StepAnswer): void {
  const said = { ...answer, calls: [], droppedCalls: answer.droppedCalls + answer.calls.length }
  countCall(draft, node, said)
  endNode(draft, draft.changeNode(node, { usage: answer.usage }), {
    state: 'stopped',
    output: outputOf(said),
    failure: { code: 'stopped', message: 'The run was asked to stop.' },
    streamed: answer.streamed,
  })
}

/** Counts the cost of a call that failed or was stopped. */
export function countFailedCall(draft: Draft, claim: Claim, partial: StepAnswer): void {
  const node = draft.findNode(claim.nodeId)
  if (node === undefined || node.epoch !== claim.epoch || node.state !== 'running') return
  const count = isHeard(partial) ? countAnswer : countSpending
  count(draft, node.id, { tokens: totalTokens(partial.usage), usd: partial.usd ?? 0 })
  if (partial.usage === NO_USAGE) return
  const turn = draft.turn(node.turnId)
  draft.event(turn, node.id, { type: 'usage', usage: partial.usage, model: partial.model })
  const usage = addUsage(turn.account.usage, partial.usage)
  draft.changeTurn(turn, { account: changedAccount(turn.account, { usage }) })
}

/** A provider charges for text that it sent, even without its end. */
function isHeard({ content, reasoning, calls }: StepAnswer): boolean {
  return content.length > 0 || reasoning !== '' || calls.length > 0
}

const CUT = {
  length: 'The model reached its output limit: the answer may be incomplete. Raise settings.maxOutputTokens.',
  'content-filter': 'The provider stopped the answer by its content filter: it may be incomplete.',
} as const

function countCall(draft: Draft, node: Node, answer: StepAnswer): Turn {
  const turn = draft.turn(node.turnId)
  draft.event(turn, node.id, { type: 'usage', usage: answer.usage, model: answer.model })
  if (answer.contextCut !== undefined) draft.event(turn, node.id, { type: 'context-cut', ...answer.contextCut })
  if (answer.usageFault !== null) draft.event(turn, node.id, { type: 'warning', message: answer.usageFault })
  if (answer.cutBy !== null) draft.event(turn, node.id, { type: 'warning', message: CUT[answer.cutBy] })
  if (turn.spend !== null) return countSpent(draft, node, answer)
  return countIn(draft, turn, { node, answer })
}

function countSpent(draft: Draft, node: Node, answer: StepAnswer): Turn {
  countAnswer(draft, node.id, { tokens: totalTokens(answer.usage), usd: answer.usd ?? 0 })
  return countIn(draft, draft.turn(node.turnId), { node, answer })
}

function countIn(draft: Draft, turn: Turn, { node, answer }: { node: Node; answer: StepAnswer }): Turn {
  const { account } = turn
  const own = draft.ownTurn(turn)
  own.account = changedAccount(account, {
    modelCalls: account.modelCalls + (countsAsTurn(node) ? 1 : 0),
    toolCalls: account.toolCalls + answer.calls.length,
    usage: addUsage(account.usage, answer.usage),
  })
  return own
}

/** A call to wrap up, to brief or to sum up is no turn of the run. One that became a wrap-up for want of money is. */
function countsAsTurn(node: Node): boolean {
  return node.purpose === 'wrap_up' ? node.metadata['limitReason'] !== undefined : !isSideCall(node)
}

/** Sets optional fields only where needed: most outputs then have one form (base/keep-shape). */
function outputOf(answer: StepAnswer): NodeOutput {
  const { content, calls, reasoning, droppedCalls } = answer
  const output: NodeOutput = calls.length > 0 ? { content, calls } : { content }
  if (reasoning === '' && droppedCalls === 0) return output
  return { ...output, ...(reasoning === '' ? {} : { reasoning }), ...(droppedCalls > 0 ? { droppedCalls } : {}) }
}

interface NextCall {
  readonly purpose: Purpose
  readonly nudge: string | null
  /** The outcome that this run will have although its last call finishes, such as max_turns. */
  readonly limit: string | null
}

/** The model call that reads the results. At a limit it is a call without tools, to wrap up, which does not count as a turn. */
export function nextCall(turn: Turn, droppedCalls: number): NextCall {
  if (droppedCalls > 0) return wrapUp(turn, 'toolCalls', 'over_budget')
  return mayCall(turn) ? ANSWER : wrapUp(turn, 'modelCalls', 'max_turns')
}

const ANSWER: NextCall = { purpose: 'answer', nudge: null, limit: null }

function wrapUp({ limits }: Turn, name: 'modelCalls' | 'toolCalls', limit: 'max_turns' | 'over_budget'): NextCall {
  const why = `You have used all ${amountOf(limits, name)} of this run.`
  return { purpose: 'wrap_up', limit, nudge: `${why} Sum up what you have and what is missing.` }
}

function addNext(
  draft: Draft,
  turn: Turn,
  { id, blockers, call }: { readonly id: Id; readonly blockers: number; readonly call: NextCall },
): Node {
  return draft.addNode(turn, {
    id,
    kind: 'agent_message',
    purpose: call.purpose,
    effect: 'idempotent',
    blockers,
    input: call.nudge === null ? {} : { nudge: call.nudge },
    metadata: call.limit === null ? {} : { limit: call.limit },
  })
}

function addTask(draft: Draft, turn: Turn, { task, ids, at, plan }: NewTask): Node {
  const id = ids[at] ?? turn.id
  return draft.addNode(turn, {
    id,
    kind: 'task',
    input: task.delegates ? { call: task.call, delegates: true } : { call: task.call },
    ...keptOptions(task.options),
    blockers: at < lanesOf(plan) ? 0 : 1,
    ...(plan === undefined ? {} : { metadata: { planned: { purpose: plan.purposes[at] ?? '' } } }),
  })
}

interface NewTask {
  readonly task: PlannedTask
  readonly ids: readonly Id[]
  readonly at: number
  readonly plan: PlanNote | undefined
}

function lanesOf(plan: PlanNote | undefined): number {
  return plan?.concurrency ?? Number.POSITIVE_INFINITY
}

interface TaskLinks {
  readonly node: Node
  readonly next: Node
  readonly tasks: readonly Node[]
  /** How many run at a time: each further call waits for the one as many places before it. */
  readonly lanes: number
}

function linkTasks(draft: Draft, { node, next, tasks, lanes }: TaskLinks): void {
  if (tasks.length === 0) {
    draft.addEdge(node, next, 'sequence')
    draft.claim(next)
    return
  }
  for (const [at, task] of tasks.entries()) {
    const before = at < lanes ? undefined : tasks[at - lanes]
    draft.addEdge(before ?? node, task, 'sequence')
    draft.addEdge(task, next, 'sequence')
    if (before === undefined) draft.claim(task)
  }
}

function tellCalls(
  draft: Draft,
  turn: Turn,
  { tasks, planned }: { tasks: readonly Node[]; planned: readonly PlannedTask[] },
): void {
  for (const [at, { call, options, delegates }] of planned.entries()) {
    draft.event(turn, tasks[at]?.id ?? null, { type: 'tool-call', call, effect: options.effect, delegates })
  }
}
