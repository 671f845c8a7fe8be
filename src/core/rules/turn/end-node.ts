// The end of a node: its state, its events, and what happens to its successors.
//
// Owns:      which successors are released, skipped or stopped, and the events for results and answers.
// Called by: every rule that ends a node (`planResult`, `planExpand`, approvals, stops, folds).
// Must stay true:
//   - A node ends once (I4). One that may have had an effect ends `uncertain`, never `stopped`, and is shown.
//   - The commit that ends a node also lowers the `blockers` of its successors: readiness is a counter, never a search.
//   - Its turn is marked for `endTurns`: no rule ends a turn itself.

import type { Json } from '../../base/json.ts'
import { textOf } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import type { EventBody } from '../../graph/event.ts'
import { isRunnable, previewOf } from '../../graph/kinds.ts'
import { changedAccount } from '../../graph/limits.ts'
import type { Edge, Failure, Id, Node, NodeOutput, NodeState } from '../../graph/rows.ts'
import { resultContent } from '../../graph/tasks.ts'
import { releaseHold, resumeClocks } from './account.ts'
import { asksPerson } from './question-of.ts'

export interface NodeEnd {
  readonly state: 'finished' | 'errored' | 'rejected' | 'skipped' | 'stopped' | 'uncertain'
  readonly output?: NodeOutput
  readonly failure?: Failure | null
  readonly metadata?: Node['metadata']
  readonly streamed?: { readonly chunks: number; readonly bytes: number; readonly sha256: string } | null
}

/**
 * Ends a node and decides about its successors: `sequence` successors are released, `dependency` successors too when it
 * finished, else they are skipped; after a stop all successors are stopped, after a denial of a required approval all are
 * skipped. Marks the turn for `endTurns`.
 */
export function endNode(draft: Draft, node: Node, end: NodeEnd): void {
  const queue: [Id, NodeEnd][] = [[node.id, end]]
  for (let item = queue.pop(); item !== undefined; item = queue.pop()) {
    const open = draft.node(item[0])
    if (open.endedAt !== null) continue // two ways led to it
    const ended = putEnd(draft, open, item[1])
    let isLeaf = true
    let goesOn = false
    for (const edge of draft.edgesFrom(ended.id)) {
      if (edge.type === 'branch') continue
      isLeaf = false
      const follow = release(draft, edge, ended)
      if (follow !== undefined) queue.push(follow)
      goesOn ||= draft.node(edge.to).endedAt === null
    }
    if (!goesOn || isStopped(ended)) draft.touch(ended, isLeaf)
    else touchHost(draft, ended)
  }
}

/** The rest of a host's turn may now be waiting only: see `breakDeadlock`. */
function touchHost(draft: Draft, { conversationId, turnId }: Node): void {
  if (draft.conversation(conversationId).background.length > 0) draft.touchTurn(turnId)
}

/** True for a node that was stopped, or asked to stop and ended in another way: it starts nothing. */
function isStopped({ state, marks }: Node): boolean {
  return state === 'stopped' || (marks !== null && marks.stop !== null)
}

const STOPPED: Failure = { code: 'stopped', message: 'What it comes after was asked to stop.' }

/** The end of a node that was interrupted while it ran: one that may have had an effect never ends as stopped (I4). */
export function interruptedEnd(node: Node, message: string): NodeEnd {
  const state = node.effect === 'effectful' ? 'uncertain' : 'stopped'
  return { state, failure: { code: state, message } }
}

/** Stops a node without regard to its successors: for commits that stop a whole turn. */
export function stopNode(draft: Draft, node: Node, reason: string): void {
  putEnd(draft, node, { state: 'stopped', failure: { code: 'stopped', message: reason } })
}

function release(draft: Draft, edge: Edge, ended: Node): [Id, NodeEnd] | undefined {
  const next = draft.node(edge.to)
  if (next.state !== 'pending' && next.state !== 'awaiting_approval') return undefined
  if (isStopped(ended)) return [next.id, { state: 'stopped', failure: ended.failure ?? STOPPED }]
  const held = findBlockingDenial(ended)
  if (held !== undefined) return [next.id, { state: 'skipped', failure: held }]
  if (edge.type === 'dependency' && ended.state !== 'finished') return [next.id, skipped(ended, edge)]
  const freed = draft.ownNode(next)
  freed.blockers--
  if (isRunnable(freed, draft.now)) draft.claim(freed)
  return undefined
}

/**
 * Why nothing may come after this node, over any edge: a required approval was denied, here or before it. The turn then ends
 * `denied`; a retry asks once more. Undefined for every other end.
 */
export function findBlockingDenial({ state, metadata, failure }: Node): Failure | undefined {
  if (state === 'skipped') return failure?.code === DENIED ? failure : undefined
  if (state !== 'rejected') return undefined
  const approval = metadata['approval'] as { readonly required?: unknown; readonly request?: unknown } | undefined
  if (approval?.required !== true) return undefined
  const why = failure?.message ?? 'It was denied.'
  return { code: DENIED, message: `${approval.request || 'It'} is required, and was not allowed: ${why}` }
}

const DENIED = 'approval_denied'

function skipped(parent: Node, edge: Edge): NodeEnd {
  const message = `blocked by ${parent.kind} ${parent.id} (${parent.state}) over a ${edge.type} edge`
  return { state: 'skipped', failure: { code: 'blocked_by_failed_dependencies', message } }
}

function putEnd(draft: Draft, node: Node, end: NodeEnd): Node {
  const from = node.state
  const askedPerson = node.wait?.on === 'question' && asksPerson(node)
  const output = end.output ?? node.output
  const text = output.content === undefined ? '' : textOf(output.content)
  const ended = draft.ownNode(node, end.state)
  ended.state = end.state
  ended.output = output
  if (text !== '') ended.preview = previewOf(text, node.kind, draft.kinds)
  ended.failure = end.failure ?? null
  if (end.metadata !== undefined) ended.metadata = end.metadata
  ended.wait = null
  ended.wakeAt = null
  ended.engineId = null
  ended.endedAt = draft.now
  if (from === 'awaiting_approval' || askedPerson) resumeClocks(draft, node.turnId)
  if (ended.metadata['held'] !== undefined) releaseHold(draft, node.id)
  if (node.startedAt !== null) draft.dropBlock(node.id)
  if (ended.state === 'uncertain') tellDoubt(draft, ended)
  tellEnd(draft, ended, { from, streamed: end.streamed ?? null })
  if (ended.purpose === 'summarize' && ended.state === 'errored') tellNoSummary(draft, ended)
  return ended
}

/** Reports an uncertain node: in the log, and in the outcome of its run. */
function tellDoubt(draft: Draft, node: Node): void {
  const turn = draft.turn(node.turnId)
  const { account } = turn
  draft.changeTurn(turn, { account: changedAccount(account, { uncertain: [...account.uncertain, node.id] }) })
  const tool = node.input.call?.name ?? node.kind
  draft.event(turn, node.id, { type: 'uncertain', tool, reason: node.failure?.message ?? '' })
}

/** Reports a summary that failed: models still see the whole context, and there is no new try at once. */
function tellNoSummary(draft: Draft, { id, turnId, metadata }: Node): void {
  const { from, to, turns } = metadata['folds'] as { from: Id; to: Id; turns: number }
  const about = { summaryId: id, fromRunId: from, toRunId: to, turns }
  draft.event(draft.turn(turnId), id, { type: 'compaction', change: 'failed', ...about })
}

interface EndNotice {
  readonly from: NodeState
  readonly streamed: NonNullable<NodeEnd['streamed']> | null
}

function tellEnd(draft: Draft, node: Node, { from, streamed }: EndNotice): void {
  const turn = draft.turn(node.turnId)
  if (node.kind === 'task') {
    draft.event(turn, node.id, resultEvent(node))
    return
  }
  if (node.kind === 'agent_message' && (node.state === 'finished' || node.output.content !== undefined)) {
    draft.event(turn, node.id, answerEvent(node, streamed))
    if (node.state === 'finished') return
  }
  draft.event(turn, node.id, {
    type: 'node-state',
    kind: node.kind,
    from,
    to: node.state,
    reason: node.failure?.message ?? '',
  })
}

/** The event for the end of a task. */
export function resultEvent(task: Node): Extract<EventBody, { type: 'tool-result' }> {
  const content = resultContent(task)
  const told = {
    type: 'tool-result',
    callId: task.input.call?.id ?? '',
    tool: task.input.call?.name ?? '',
    state: task.state,
    content,
    isError: task.output.isError === true || task.state !== 'finished',
  } as const
  const { value, metadata } = task.output
  const remarks = metadata === undefined ? undefined : remarksIn(metadata)
  const remarked = remarks === undefined ? told : { ...told, metadata: remarks }
  return value === undefined || value === content ? remarked : { ...remarked, json: true }
}

/** The part of a result that a program reads beside its text, without the facts that other events of a delegation tell. */
function remarksIn(metadata: NonNullable<NodeOutput['metadata']>): NodeOutput['metadata'] {
  let remarks: { [key: string]: Json } | undefined
  for (const key in metadata) {
    const value = metadata[key]
    if (TOLD_ELSEWHERE.has(key) || value === undefined) continue
    remarks ??= {}
    remarks[key] = value
  }
  return remarks
}

const TOLD_ELSEWHERE: ReadonlySet<string> = new Set([
  'subagent',
  'supervisor',
  'delegation_context',
  'outcome',
  'subagent_session_id',
])

/** The event for an answer. */
export function answerEvent(
  { purpose, output, state }: Node,
  streamed: EndNotice['streamed'],
): Extract<EventBody, { type: 'message' }> {
  const told = {
    type: 'message',
    role: 'agent',
    purpose,
    content: output.content ?? '',
    state,
    calls: output.calls ?? [],
    streamed,
  } as const
  return output.reasoning === undefined ? told : { ...told, reasoning: output.reasoning }
}
