import type { Json } from '../../base/json.ts'
import { textOf } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { type JoinStatus, joinStatus } from '../../graph/kinds.ts'
import { withWords } from '../../graph/outcome.ts'
import type { Conversation, Id, Link, Node, NodeOutput } from '../../graph/rows.ts'
import { stopRuns } from '../turn/cancel.ts'
import { endNode } from '../turn/end-node.ts'
import { openContent, openFactsOf, saidAndFound, withAbsent } from '../turn/fold-open.ts'
import { hostQuestionOf, markReported, questionOf, unreportedQuestion } from '../turn/question-of.ts'
import { deliver } from './background.ts'
import { reportDelegation } from './child-report.ts'

/** Facts that a waiting task needs beside the `wait` of its row. */
export interface WaitFacts {
  /** Whether children that are no longer needed continue or are cancelled. */
  readonly losers: 'leave' | 'cancel'
  /** `task`: the result reads as that of one task, in words. Left out: all results as data. */
  readonly shows?: 'task'
}

/** Ends the waits in the host's running turn that this delegation decides. Needs rows only. */
export function endWaits(draft: Draft, link: Link): void {
  const host = draft.conversation(link.hostConversationId)
  // A wait that begins now and a turn that ends now must see this end: all three change this row.
  draft.watchConversation(host)
  const { activeTurnId } = host
  if (activeTurnId === null) return
  for (const node of draft.openNodes(activeTurnId)) {
    if (isJoin(node) && node.wait?.refs.includes(link.id)) endWaitIfOver(draft, node)
  }
}

/** True for a task that waits for background children, unlike a call that waits for its own child. */
export function isJoin({ state, wait, metadata }: Node): boolean {
  return state === 'waiting' && wait?.on === 'children' && metadata['waits'] !== undefined
}

export function endWaitIfOver(draft: Draft, node: Node): void {
  const { wait } = node
  if (wait === null) return
  const links = wait.refs.map((id) => draft.link(id))
  const status = joinStatus(
    wait.join,
    links.map(({ outcome }) => outcome?.status ?? null),
  )
  if (status !== undefined) return endWait(draft, node, { status })
  if (links.some((link) => unreportedQuestion(draft, link) !== undefined)) endWait(draft, node, { status: 'question' })
}

interface WaitEnd {
  readonly status: JoinStatus | 'question' | 'timed_out'
  /** Other children that ask a question. */
  readonly others?: readonly Link[]
}

/** Ends a wait with its result: ended children are delivered with it, and their questions reported. */
export function endWait(draft: Draft, node: Node, { status, others = [] }: WaitEnd): void {
  const { refs: awaited = [], join = 'all' } = node.wait ?? {}
  const { losers, shows } = node.metadata['waits'] as unknown as WaitFacts
  const also = others.flatMap(({ id }) => (awaited.includes(id) ? [] : [id]))
  const refs = [...awaited, ...also]
  if (shows === 'task') return answerTaskWait(draft, node, { status, refs })
  const isDecided = status === 'met' || status === 'not_met'
  const children: Json[] = []
  const share = Math.floor(SHOWN / Math.max(1, refs.length))
  for (const id of refs) {
    const link = draft.link(id)
    const isLoser = link.outcome === null && isDecided && losers === 'cancel'
    children.push({ ...reportDelegation(draft, link, share), ...(isLoser ? { cancelled: true } : {}) })
    if (isLoser) stopRuns(draft, id, { cause: 'cancelled', reason: 'Another was enough for its host.' })
    if (isLoser || link.outcome !== null) deliver(draft, draft.link(id), node.id)
    const asked = unreportedQuestion(draft, link)
    if (asked !== undefined) markReported(draft, asked, node.id)
  }
  endNode(draft, draft.node(node.id), { state: 'finished', output: jsonOutput({ ok: true, status, join, children }) })
}

/** Ends the wait for one background task, with words for its host. */
function answerTaskWait(
  draft: Draft,
  node: Node,
  {
    status,
    refs,
  }: Pick<WaitEnd, 'status'> & {
    /** The task, and other children that ask a question. */
    readonly refs: readonly Id[]
  },
): void {
  const link = draft.link(refs[0] ?? '')
  if (link.outcome !== null) deliver(draft, link, node.id)
  const late = `Task '${link.childConversationId}' is still running after waiting 5 min. You are told when it ends; load it again to wait more.`
  const about = status === 'timed_out' ? `${late}\n\n${runningTask(draft, link)}` : endedTask(draft, link)
  const questions = refs.flatMap((id) => tellQuestion(draft, draft.link(id), node.id))
  endNode(draft, draft.node(node.id), { state: 'finished', output: { content: [about, ...questions].join('\n\n') } })
}

/** The child's question in words. */
function tellQuestion(draft: Draft, link: Link, to: Id): string[] {
  const asked = link.outcome === null ? hostQuestionOf(draft, link) : undefined
  if (asked === undefined) return []
  if (unreportedQuestion(draft, link) !== undefined) markReported(draft, asked, to)
  const id = link.childConversationId
  return [`It asks you and waits (answer with subagent_send, child_conversation_id ${id}): ${questionOf(asked)?.text}`]
}

/** The bytes of all children's words in one result; `subagent_result` gives the rest. */
const SHOWN = 32_000

/** A value as a task's output: the model reads its JSON. */
export function jsonOutput(value: { readonly [key: string]: Json }): NodeOutput {
  return { content: JSON.stringify(value), value }
}

/** Below a minute in tens of seconds, else in whole minutes. */
function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  return seconds < 60 ? `${Math.floor(seconds / 10) * 10}s` : `${Math.floor(seconds / 60)}m`
}

/** Describes an ended task to its host. */
export function endedTask(draft: Draft, link: Link): string {
  const { outcome } = link
  if (outcome === null) return runningTask(draft, link)
  const said = outcome.answerNodeId === null ? undefined : draft.findNode(outcome.answerNodeId)
  const whole = withWords(outcome, said?.output ?? {})
  const facts = openFactsOf(link)
  const isDone = outcome.status === 'completed'
  const partial = whole.text === '' ? '' : `\n\n${whole.text}`
  const shown =
    facts === undefined || !isDone
      ? `Error: ${outcome.error?.message ?? outcome.status}${partial}`
      : textOf(openContent(withAbsent(facts, link), whole, () => saidAndFound(draft, link)))
  const status = isDone ? '✓ Completed' : outcome.status === 'cancelled' ? '⊘ Cancelled' : '✗ Failed'
  return `# Background Task Result: ${link.childConversationId}

**Task:** ${facts?.label ?? ''}
**Status:** ${status}
**Duration:** ${durationText(outcome.durationMs)} (${turnsText(outcome.modelCalls)})

## Output

${shown}`
}

/**
 * True where the task ended so long ago that its result is no longer given. A host that has not heard of it still gets it once,
 * in full.
 */
export function isExpired(draft: Draft, link: Link): boolean {
  const { keepMs } = openFactsOf(link) ?? {}
  return keepMs !== undefined && link.outcome !== null && sinceEnd(draft, link) > keepMs
}

/** The text in place of an expired result. */
export function expiredTask(draft: Draft, link: Link): string {
  const { label = '', keepMs = 0 } = openFactsOf(link) ?? {}
  return `# Background Task Result: ${link.childConversationId}

**Task:** ${label}
**Status:** Expired

It ended (${link.outcome?.status ?? ''}) ${longText(sinceEnd(draft, link))} ago, and results are kept for ${longText(keepMs)}. Start it again if you need it.`
}

const HOUR_MS = 3_600_000

function longText(ms: number): string {
  return ms < 2 * HOUR_MS ? durationText(ms) : `${Math.floor(ms / HOUR_MS)}h`
}

function sinceEnd(draft: Draft, { id }: Link): number {
  return draft.now - (draft.turn(id).endedAt ?? draft.now)
}

/** Describes a running task. Looking at it consumes nothing. */
export function runningTask(draft: Draft, link: Link): string {
  const { elapsed, turns, idle } = progressOf(draft, link)
  const calls = draft.nodesOf(link.id).flatMap(({ kind, input }) => (kind === 'task' ? [input.call?.name ?? ''] : []))
  const recent = calls.slice(-MOST_CALLS)
  return `# Background Task: ${link.childConversationId}

**Task:** ${openFactsOf(link)?.label ?? ''}
**Status:** ${draft.turn(link.id).state === 'queued' ? 'Waiting for its turn' : 'Running'}
**Elapsed:** ${elapsed} (${turnsText(turns)}), idle ${idle}
**Tool calls:** ${recent.length === 0 ? 'none' : recent.join(', ')}${calls.length > recent.length ? ` (the last ${recent.length} of ${calls.length})` : ''}`
}

const MOST_CALLS = 20

/** Describes a task in one line of a list. */
export function taskLine(draft: Draft, link: Link): string {
  const label = `"${openFactsOf(link)?.label ?? ''}"`
  const id = link.childConversationId
  const { outcome } = link
  if (outcome !== null) {
    const how = outcome.status === 'completed' ? 'completed' : outcome.status
    return `${id}: ${label} - ${how} after ${durationText(outcome.durationMs)}; read it with load(source: "${id}")`
  }
  const { elapsed, turns, idle } = progressOf(draft, link)
  return `${id}: ${label} - running for ${elapsed}, ${turnsText(turns)}, idle ${idle}`
}

/** The reminder of background work at each step of a host; null when there is none. */
export function reminderOf(draft: Draft, { background }: Conversation): string | null {
  const links = background.map((id) => draft.link(id)).filter(({ contract }) => contract === 'open')
  const shown = links.filter((link) => !isExpired(draft, link))
  if (shown.length === 0) return null
  return `Background tasks:\n${shown.map((link) => `• ${taskLine(draft, link)}`).join('\n')}`
}

interface Progress {
  readonly elapsed: string
  readonly turns: number
  readonly idle: string
}

function progressOf(draft: Draft, link: Link): Progress {
  const turn = draft.turn(link.id)
  const last = draft.nodesOf(link.id).reduce((latest, node) => Math.max(latest, lastOf(node)), turn.createdAt)
  return {
    elapsed: durationText(draft.now - (turn.startedAt ?? turn.createdAt)),
    turns: turn.account.modelCalls,
    idle: durationText(draft.now - last),
  }
}

function lastOf({ createdAt, startedAt, endedAt }: Node): number {
  return Math.max(createdAt, startedAt ?? 0, endedAt ?? 0)
}

function turnsText(turns: number): string {
  return `${turns} ${turns === 1 ? 'turn' : 'turns'}`
}
