import { NO_USAGE, textOf } from './content.ts'
import { checkedAnswer, eagerField, isEager } from './kinds.ts'
import { limitReached } from './limits.ts'
import {
  type EagerOutcome,
  type EagerTask,
  isStatus,
  type Outcome,
  type OutcomeRecord,
  type Status,
  withWords,
} from './outcome.ts'
import type { Id, Node, Turn } from './rows.ts'

const ADVICE: Readonly<Record<Status, string | null>> = {
  completed: null,
  max_turns: 'The run used all its model calls. Ask for less at once, or raise budget.modelCalls.',
  over_budget: 'The budget did not allow the next call: the error says why. Ask for less, or change the budget.',
  timed_out: 'The run passed its deadline. Ask for less, or raise budget.wallMs.',
  cancelled: 'The run was cancelled. Start it again if the work is still wanted.',
  failed: 'The run failed. Read the error before you try again.',
  uncertain: 'An effect may or may not have happened. Check before you try again.',
  invalid_output: 'The answer did not match the output schema. Ask again more precisely.',
  invalid_input: 'Correct the input and try again.',
  unavailable: 'Go on without it, or try another way.',
  denied: 'This is not allowed here. Go on without it.',
}

const RETRYABLE: ReadonlySet<Status> = new Set(['failed', 'timed_out', 'invalid_input', 'invalid_output', 'cancelled'])

/** The code of a failure after which the same call fails again. */
export const MODEL_REFUSED = 'model_refused'
const REFUSED_ADVICE =
  'The provider refused the call, and refuses it again until the request, the key or the name of the model is corrected.'

const NONE: readonly never[] = []

/** Decides how a turn ended, as a pure function of its nodes. `nodes` may be just the leaf when it finished. */
export function conclude(turn: Turn, nodes: readonly Node[], now: number): OutcomeRecord {
  const leaf = blamed(nodes)
  const status = statusOf(turn, leaf)
  const speaker = status === 'completed' ? leaf : (lastSpeaker(nodes) ?? lastFound(status, nodes))
  const answered = leaf === undefined || status !== 'completed' ? undefined : checkedAnswer(leaf)
  const isRefused = status === 'failed' && leaf?.failure?.code === MODEL_REFUSED
  return {
    status,
    runId: turn.id,
    conversationId: turn.conversationId,
    // A passed check stands for the answer that it checked.
    answerNodeId: answered ?? speaker?.id ?? null,
    error: status === 'completed' ? null : errorOf(turn, leaf, status),
    usage: turn.account.usage,
    modelCalls: turn.account.modelCalls,
    toolCalls: turn.account.toolCalls,
    children: turn.account.children,
    // The clock may have been set back meanwhile.
    durationMs: turn.startedAt === null ? 0 : Math.max(0, now - turn.startedAt),
    retryable: RETRYABLE.has(status) && !isRefused,
    advice: isRefused ? REFUSED_ADVICE : ADVICE[status],
    uncertain: turn.account.uncertain,
    open: NONE,
    absent: turn.absent ?? NONE,
    delegations: delegationsOf(nodes),
  }
}

/** The delegations of the plan's final form; all that were started where the plan was not finished. */
function delegationsOf(nodes: readonly Node[]): readonly EagerTask[] {
  const plan = nodes.findLast(({ metadata }) => metadata['delegations'] !== undefined)
  if (plan !== undefined) return plan.metadata['delegations'] as unknown as readonly EagerTask[]
  const tasks = nodes.filter(isEager)
  return tasks.length === 0 ? NONE : tasks.map((task) => ({ taskId: task.id, field: eagerField(task) }))
}

/** The outcome of a delegation that never became a child. */
export function refusedOutcome(status: 'invalid_input' | 'unavailable' | 'denied', message: string): OutcomeRecord {
  return {
    status,
    runId: '',
    conversationId: '',
    answerNodeId: null,
    error: { code: status, message },
    usage: NO_USAGE,
    modelCalls: 0,
    toolCalls: 0,
    children: 0,
    durationMs: 0,
    retryable: RETRYABLE.has(status),
    advice: ADVICE[status],
    uncertain: [],
    open: NONE,
    absent: NONE,
    delegations: NONE,
  }
}

/** The node that explains how a turn ended: the last one, or the briefing if its failure kept that one from starting. */
function blamed(nodes: readonly Node[]): Node | undefined {
  const leaf = nodes[nodes.length - 1]
  if (leaf?.state !== 'skipped') return leaf
  return nodes.findLast(({ purpose, state }) => purpose === 'brief' && state !== 'finished') ?? leaf
}

function statusOf(turn: Turn, leaf: Node | undefined): Status {
  if (turn.cancel !== null) return turn.cancel.cause === 'timed_out' ? 'timed_out' : 'cancelled'
  if (leaf === undefined) return 'failed'
  if (leaf.state === 'finished') {
    if (isFailedCheck(leaf)) return 'failed'
    const limit = leaf.metadata['limit']
    return typeof limit === 'string' && isStatus(limit) ? limit : 'completed'
  }
  if (leaf.state === 'uncertain') return 'uncertain'
  if (leaf.state === 'rejected') return 'denied'
  if (leaf.state === 'stopped') return 'cancelled'
  return statusFor(leaf.failure?.code ?? '')
}

function statusFor(code: string): Status {
  if (code === 'approval_denied') return 'denied'
  return isStatus(code) ? code : 'failed'
}

/** True where a check could not be made: that does not count as passed. */
function isFailedCheck(node: Node): boolean {
  return node.output.isError === true && checkedAnswer(node) !== undefined
}

function errorOf(turn: Turn, leaf: Node | undefined, status: Status): OutcomeRecord['error'] {
  if (turn.cancel !== null) {
    return { code: status, message: turn.cancel.reason ?? defaultReason(turn, status) }
  }
  if (leaf?.failure) return leaf.failure
  if (leaf !== undefined && isFailedCheck(leaf)) return { code: 'failed', message: textOf(leaf.output.content ?? '') }
  const known = leaf?.metadata['limitReason']
  return { code: status, message: typeof known === 'string' ? known : defaultReason(turn, status) }
}

function defaultReason(turn: Turn, status: Status): string {
  if (status === 'max_turns') return limitReached(turn.limits, 'modelCalls')
  if (status === 'over_budget') return limitReached(turn.limits, 'toolCalls')
  if (status === 'timed_out') return 'The deadline passed.'
  if (status === 'cancelled') return 'The run was cancelled.'
  return `The run ended: ${status}.`
}

/** The last message that said anything: the partial work of a run that did not complete. */
function lastSpeaker(nodes: readonly Node[]): Node | undefined {
  for (let at = nodes.length - 1; at >= 0; at--) {
    const node = nodes[at]
    if (node?.kind !== 'agent_message' || node.output.content === undefined || isAside(node)) continue
    if (textOf(node.output.content) !== '') return node
  }
  return undefined
}

/** True for a briefing, a plan or a summary: its text is not part of an answer. */
function isAside({ purpose }: Node): boolean {
  return purpose === 'brief' || purpose === 'plan' || purpose === 'summarize'
}

/** The last call with a result, for a run that was stopped before it said anything. A child's words count as a result. */
function lastFound(status: Status, nodes: readonly Node[]): Node | undefined {
  if (status !== 'cancelled' && status !== 'timed_out') return undefined
  return nodes.findLast(({ kind, state, output, input }) => {
    if (kind !== 'task' || output.content === undefined || textOf(output.content) === '') return false
    return input.delegates === true || (state === 'finished' && output.isError !== true)
  })
}

/** The rows that `outcomeOf` reads. */
export interface OutcomeReader {
  node(id: Id): Node | undefined
  turn(id: Id): Turn | undefined
}

/** Joins a turn's outcome with the answer's words, and with the outcomes of the children that its plan started. */
export function readOutcome(reader: OutcomeReader, record: OutcomeRecord): Outcome {
  const node = record.answerNodeId === null ? undefined : reader.node(record.answerNodeId)
  const outcome = withWords(record, node?.output ?? {})
  if (record.delegations.length === 0) return outcome
  return { ...outcome, delegations: record.delegations.flatMap((one) => delegationOf(reader, one)) }
}

function delegationOf(reader: OutcomeReader, { taskId, field }: EagerTask): EagerOutcome[] {
  const task = reader.node(taskId)
  if (task === undefined) return []
  const { status = task.state === 'rejected' ? 'denied' : 'cancelled', run_id = '', error } = summaryOf(task)
  const record = reader.turn(run_id)?.outcome ?? null
  if (record !== null) return [{ ...readOutcome(reader, record), field }]
  const message = error?.message ?? task.failure?.message ?? 'It had not ended.'
  return [{ ...withWords({ ...refusedOutcome('unavailable', message), status }, {}), field }]
}

interface Summary {
  readonly status?: Outcome['status']
  readonly run_id?: Id
  readonly error?: { readonly message: string } | null
}

/** The summary of the child's outcome that folding wrote into the task. */
function summaryOf({ output }: Node): Summary {
  return (output.metadata?.['outcome'] ?? {}) as Summary
}
