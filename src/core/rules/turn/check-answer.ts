import { deriveIds } from '../../base/id.ts'
import type { Json } from '../../base/json.ts'
import type { Content } from '../../graph/content.ts'
import { RESET } from '../../graph/context.ts'
import type { Draft } from '../../graph/draft.ts'
import { checkedAnswer } from '../../graph/kinds.ts'
import { amountOf, mayCall } from '../../graph/limits.ts'
import { keptOptions } from '../../graph/rows.made.ts'
import type { Failure, Id, Node, Turn } from '../../graph/rows.ts'
import { type Claim, heldNode } from './claim.ts'
import { endNode } from './end-node.ts'
import type { PlannedTask } from './expand.ts'

/** Adds a task that must finish before the text of `answer` becomes the last word of its turn. */
export function addCheck(draft: Draft, answer: Node, planned: PlannedTask): void {
  const turn = draft.turn(answer.turnId)
  const [id = answer.id] = deriveIds(answer.id, 'check', 1)
  addLast(draft, turn, { id, after: answer, answers: answer.id, planned })
}

/** Ends a turn with collected results as its last word, without a model call. */
export function planCollected(
  draft: Draft,
  claim: Claim,
  collected: { readonly content: Content; readonly value: Json; readonly check: PlannedTask | null },
): void {
  const node = heldNode(draft, claim)
  if (node === undefined) return
  const { limit, ...metadata } = node.metadata
  const { content, value, check } = collected
  endNode(draft, node, { state: 'finished', output: { content, value }, metadata })
  if (check !== null && draft.turn(node.turnId).cancel === null) addCheck(draft, draft.node(node.id), check)
}

export type CheckResult =
  | { readonly is: 'passed'; readonly text: string }
  /** The answer fails, and there is no further try. */
  | { readonly is: 'over'; readonly failure: Failure }
  /** Everything starts again from the input, after one more task where there is one. */
  | {
      readonly is: 'again'
      readonly text: string
      readonly isError: boolean
      readonly attempt: number
      readonly first: PlannedTask | null
      /** True: the work goes on after the answer, with the text as a notice to the model. */
      readonly goesOn?: true
    }

/** Records the result of a check together with its consequence. */
export function planChecked(draft: Draft, claim: Claim, verdict: CheckResult): void {
  const node = heldNode(draft, claim)
  if (node === undefined) return
  if (verdict.is === 'again') tryAnotherAnswer(draft, node, verdict)
  else if (verdict.is === 'over') endNode(draft, node, { state: 'errored', failure: verdict.failure })
  else endNode(draft, node, { state: 'finished', output: { content: verdict.text } })
}

function tryAnotherAnswer(
  draft: Draft,
  node: Node,
  { text, isError, attempt, first, goesOn }: Extract<CheckResult, { is: 'again' }>,
): void {
  const turn = draft.turn(node.turnId)
  if (!mayCall(turn)) {
    const message = `The limit of ${amountOf(turn.limits, 'modelCalls')} was reached before the checks passed. ${text}`
    return endNode(draft, node, { state: 'errored', failure: { code: 'max_turns', message } })
  }
  endNode(draft, node, { state: 'finished', output: isError ? { content: text, isError } : { content: text } })
  if (turn.cancel !== null) return
  const [id = node.id] = deriveIds(node.id, 'again', 1)
  const answers = checkedAnswer(node) ?? node.id
  if (first !== null) return addLast(draft, turn, { id, after: node, answers, planned: first })
  draft.event(turn, node.id, { type: 'retry', attempt: attempt + 1, wakeAt: draft.now, error: text })
  const next = draft.addNode(turn, {
    id,
    kind: 'agent_message',
    purpose: 'answer',
    effect: 'idempotent',
    ...(goesOn === true ? { input: { nudge: text } } : { metadata: { [RESET]: true } }),
  })
  draft.addEdge(node, next, 'sequence')
  draft.claim(next)
}

interface LastTask {
  readonly id: Id
  readonly after: Node
  readonly answers: Id
  readonly planned: PlannedTask
}

function addLast(draft: Draft, turn: Turn, { id, after, answers, planned }: LastTask): void {
  const { call, options } = planned
  const task = draft.addNode(turn, {
    id,
    kind: 'task',
    input: { call },
    ...keptOptions(options),
    metadata: { leaf: true, answers },
  })
  draft.event(turn, task.id, { type: 'tool-call', call, effect: options.effect, delegates: false })
  draft.addEdge(after, task, 'sequence')
  draft.claim(task)
}
