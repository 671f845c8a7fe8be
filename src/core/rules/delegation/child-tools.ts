import { type Json, sizeOf, truncateUtf8 } from '../../base/json.ts'
import { buildTranscript, type TranscriptLine } from '../../graph/context.ts'
import type { Draft } from '../../graph/draft.ts'
import type { Conversation, Id, Link, Node } from '../../graph/rows.ts'
import { stopRuns } from '../turn/cancel.ts'
import { type Claim, heldNode } from '../turn/claim.ts'
import { endNode } from '../turn/end-node.ts'
import { hostQuestionOf, markReported, questionOf } from '../turn/question-of.ts'
import { deliver, newestLink, openLinksTo, ownChild } from './background.ts'
import { activityOf, childState, reportDelegation, wordsOf } from './child-report.ts'
import { endedTask, expiredTask, isExpired, jsonOutput, runningTask, taskLine } from './join.ts'
import { inheritedChild } from './session.ts'
import { type JoinRequest, parkJoin } from './wait.ts'

/** The result of a call about a child. Only `done` has written anything. */
export type ChildCallResult = 'done' | 'not_found' | 'busy' | 'no_question'

const LINE_BYTES = 1_000
const LINES_BYTES = 48_000

/**
 * Reports a child's activity and its last messages. A conversation that is no child of this host counts as missing, like any
 * unknown id.
 */
export function planPoll(draft: Draft, claim: Claim, request: { childId: Id; limitTurns: number }): ChildCallResult {
  const node = heldNode(draft, claim)
  if (node === undefined) return 'done'
  const child = readableChild(draft, node, request.childId)
  if (child === undefined) return end(draft, node, missing(request.childId))
  const { status, counts, leaf } = childState(draft, child)
  const link = newestLink(draft, child)
  if (status === 'idle') deliverAll(draft, child, node)
  return end(draft, node, {
    ok: true,
    child_conversation_id: child.id,
    child_graph_id: child.id,
    status,
    counts,
    leaf,
    transcript_lines: linesOf(draft, child, request.limitTurns),
    ...(link === undefined ? {} : { outcome: link.outcome?.status ?? null, ...activityOf(draft, link.id) }),
    ...questionAsked(draft, child, node.id),
  })
}

/** The child's question to its host, which this node now reports. */
function questionAsked(draft: Draft, child: Conversation, by: Id): { readonly question?: string } {
  const [asked] = openLinksTo(draft, child).flatMap((link) => hostQuestionOf(draft, link) ?? [])
  if (asked === undefined) return {}
  markReported(draft, asked, by)
  return { question: questionOf(asked)?.text ?? '' }
}

function missing(childId: Id): { readonly [key: string]: Json } {
  return {
    ok: true,
    child_conversation_id: childId,
    child_graph_id: null,
    status: 'missing',
    counts: { pending: 0, running: 0, awaiting_approval: 0 },
    leaf: null,
    transcript_lines: [],
  }
}

/** The latest rounds as lines; the oldest lines are dropped where there are too many. */
export function linesOf(draft: Draft, child: Conversation, limitTurns: number): string[] {
  const turns = draft.stored.turnsOf(child.id, { limit: limitTurns })
  const said = turns
    .flatMap(({ id }) => buildTranscript(draft.nodesOf(id), draft.kinds))
    .filter(({ text }) => text !== '')
  const lines: string[] = []
  let bytes = 0
  for (const one of said.toReversed()) {
    const line = lineOf(one)
    bytes += sizeOf(JSON.stringify(line))
    if (bytes > LINES_BYTES) break
    lines.unshift(line)
  }
  return lines
}

function lineOf({ role, text }: TranscriptLine): string {
  return truncateUtf8(`${role === 'user' ? 'U' : 'A'}:${text}`, LINE_BYTES)
}

const PAGE_CHARS = 16_000

/** Gives the whole answer of a child, page by page, with its outcome. */
export function planChildResult(draft: Draft, claim: Claim, request: { childId: Id; offset: number }): ChildCallResult {
  const node = heldNode(draft, claim)
  if (node === undefined) return 'done'
  const child = readableChild(draft, node, request.childId)
  const link = child === undefined ? undefined : newestLink(draft, child)
  if (child === undefined || link === undefined) return 'not_found'
  const { outcome } = link
  if (outcome === null) return end(draft, node, { ok: true, ...reportDelegation(draft, link, 0) })
  deliverAll(draft, child, node)
  const text = wordsOf(draft, link)
  const page = text.slice(request.offset, wholeEnd(text, request.offset + PAGE_CHARS))
  const next = request.offset + page.length
  return end(draft, node, {
    ok: true,
    child_conversation_id: child.id,
    status: 'idle',
    outcome: outcome.status,
    error: outcome.error === null ? null : { code: outcome.error.code, message: outcome.error.message },
    text: page,
    offset: request.offset,
    next_offset: next < text.length ? next : null,
    total_chars: text.length,
    duration_ms: outcome.durationMs,
    turns: outcome.modelCalls,
    usage: { input_tokens: outcome.usage.inputTokens, output_tokens: outcome.usage.outputTokens },
  })
}

/** Moves a cut so that it never splits a surrogate pair. */
function wholeEnd(text: string, at: number): number {
  const code = text.charCodeAt(at - 1)
  return code >= 0xd800 && code <= 0xdbff && at < text.length ? at - 1 : at
}

const MOST_LISTED = 50
const LISTED_TURNS = 200

/** Lists the children that a conversation has started, the newest first. */
export function planChildList(draft: Draft, claim: Claim): ChildCallResult {
  const node = heldNode(draft, claim)
  if (node === undefined) return 'done'
  const seen = new Set<Id>()
  const children: Json[] = []
  for (const turn of draft.stored.turnsOf(node.conversationId, { limit: LISTED_TURNS }).toReversed()) {
    for (const { childConversationId } of draft.stored.linksOf(turn.id).toReversed()) {
      if (seen.has(childConversationId) || children.length >= MOST_LISTED) continue
      seen.add(childConversationId)
      const link = newestLink(draft, draft.conversation(childConversationId))
      if (link !== undefined) children.push(reportDelegation(draft, link, LISTED_BYTES))
    }
  }
  return end(draft, node, { ok: true, children })
}

const LISTED_BYTES = 200

/** Asks all open work of a child to stop; the task waits as a row until it has. */
export function planChildCancel(
  draft: Draft,
  claim: Claim,
  request: { childId: Id; reason: string | null },
): ChildCallResult {
  const node = heldNode(draft, claim)
  if (node === undefined) return 'done'
  const child = ownChild(draft, node.conversationId, request.childId)
  const newest = child === undefined ? undefined : newestLink(draft, child)
  if (child === undefined || newest === undefined) return 'not_found'
  const open = openLinksTo(draft, child)
  if (open.some(({ mode }) => mode !== 'background')) return 'busy'
  const refs = open.length === 0 ? [newest.id] : open.map(({ id }) => id)
  parkJoin(draft, node, { refs, join: 'settled', until: null, losers: 'leave' })
  for (const { id } of open)
    stopRuns(draft, id, { cause: 'cancelled', reason: request.reason ?? 'Its host stopped it.' })
  return 'done'
}

/** Waits for the newest delegation of each child. */
export function planChildWait(
  draft: Draft,
  claim: Claim,
  {
    childIds,
    ...request
  }: Omit<JoinRequest, 'refs'> & {
    /** Null for all background children of this conversation. */
    readonly childIds: readonly Id[] | null
  },
): ChildCallResult {
  const node = heldNode(draft, claim)
  if (node === undefined) return 'done'
  const links = childIds === null ? allOf(draft, node) : childIds.map((id) => linkTo(draft, node, id))
  const refs: Id[] = []
  for (const link of links) {
    if (link === undefined) return 'not_found'
    if (link.outcome === null && link.mode !== 'background') return 'busy'
    if (!refs.includes(link.id)) refs.push(link.id)
  }
  parkJoin(draft, node, { refs, ...request })
  return 'done'
}

function allOf(draft: Draft, { conversationId }: Node): Link[] {
  return draft.conversation(conversationId).background.map((id) => draft.link(id))
}

function linkTo(draft: Draft, { conversationId }: Node, childId: Id): Link | undefined {
  const child = ownChild(draft, conversationId, childId)
  return child === undefined ? undefined : newestLink(draft, child)
}

/** Answers a child's question on behalf of the host; both continue. */
export function planHostReply(
  draft: Draft,
  claim: Claim,
  { childId, text, by }: { childId: Id; text: string; by: string },
): ChildCallResult {
  const node = heldNode(draft, claim)
  if (node === undefined) return 'done'
  const child = ownChild(draft, node.conversationId, childId)
  if (child === undefined) return 'not_found'
  const [asked] = openLinksTo(draft, child).flatMap((link) => hostQuestionOf(draft, link) ?? [])
  if (asked === undefined) return 'no_question'
  draft.event(draft.turn(asked.turnId), asked.id, { type: 'answer', by, text })
  endNode(draft, asked, { state: 'finished', output: { content: text } })
  const [next] = openLinksTo(draft, child).flatMap((link) => hostQuestionOf(draft, link) ?? [])
  if (next !== undefined) markReported(draft, next, node.id)
  return end(draft, node, {
    ok: true,
    child_conversation_id: child.id,
    status: 'answered',
    ...(next === undefined ? {} : { question: questionOf(next)?.text ?? '' }),
  })
}

/** A child of its own, or one that its lane inherits from the fork. */
function readableChild(draft: Draft, node: Node, childId: Id): Conversation | undefined {
  return ownChild(draft, node.conversationId, childId) ?? inheritedChild(draft, draft.turn(node.turnId), childId)
}

/** Marks all ends of an idle child as delivered to this node. A lane that only inherits the child marks nothing. */
function deliverAll(draft: Draft, child: Conversation, { id: to, conversationId }: Node): void {
  if (child.parentConversationId !== conversationId) return
  const host = draft.conversation(conversationId)
  for (const id of host.background) {
    const link = draft.link(id)
    if (link.childConversationId === child.id && link.outcome !== null) deliver(draft, link, to)
  }
  const newest = newestLink(draft, child)
  if (newest?.mode === 'background' && newest.outcome !== null) deliver(draft, newest, to)
}

function end(draft: Draft, node: Node, value: { readonly [key: string]: Json }): ChildCallResult {
  endNode(draft, node, { state: 'finished', output: jsonOutput(value) })
  return 'done'
}

export type TaskWish = 'wait' | 'peek' | 'cancel'

/** Acts on a background task of this host: gives its result, now or when it ends; shows its state; or stops it. */
export function planLoadTask(
  draft: Draft,
  claim: Claim,
  {
    id,
    wish,
    waitMs,
  }: {
    readonly id: Id
    readonly wish: TaskWish
    /** How long to wait for a running task; the task continues after that. */
    readonly waitMs: number
  },
): 'done' | 'not_found' {
  const node = heldNode(draft, claim)
  if (node === undefined) return 'done'
  const link = taskOf(draft, node, id)
  if (link === undefined) return 'not_found'
  if (link.outcome !== null) {
    deliver(draft, link, node.id)
    endLoad(draft, node, isExpired(draft, link) ? expiredTask(draft, link) : endedTask(draft, link))
  } else if (wish === 'peek') endLoad(draft, node, runningTask(draft, link))
  else {
    const until = wish === 'wait' ? draft.now + waitMs : null
    parkJoin(draft, node, { refs: [link.id], join: 'settled', until, losers: 'leave', shows: 'task' })
    if (wish === 'cancel') stopRuns(draft, link.id, { cause: 'cancelled', reason: 'Its host stopped it.' })
  }
  return 'done'
}

/** Background tasks that have ended unread, one line each. */
export function finishedTasks(draft: Draft, { background }: Conversation): readonly string[] {
  const links = background.map((id) => draft.link(id))
  return links
    .filter(({ contract, outcome }) => contract === 'open' && outcome !== null)
    .filter((link) => !isExpired(draft, link))
    .map((link) => taskLine(draft, link))
}

/** I9: an id that is not a task of this host answers like an unknown id. */
function taskOf(draft: Draft, { conversationId }: Node, id: Id): Link | undefined {
  const child = ownChild(draft, conversationId, id)
  const link = child === undefined ? undefined : newestLink(draft, child)
  return link?.contract === 'open' && link.mode === 'background' ? link : undefined
}

function endLoad(draft: Draft, node: Node, content: string): void {
  endNode(draft, node, { state: 'finished', output: { content } })
}
