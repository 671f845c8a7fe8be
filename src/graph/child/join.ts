import type { Json } from '../../base/json.ts'
import type { Draft } from '../draft.ts'
import type { Id, Link, Node } from '../rows.ts'
import { endNode } from '../turn/end-node.ts'
import { hostQuestionOf, markTold, questionOf, untoldQuestion } from '../turn/question-of.ts'
import { endedTask, runningTask } from '../turn/task-words.ts'
import { deliver } from './background.ts'
import { reportOf } from './child-report.ts'
import { type JoinStatus, joinStatus } from './join-status.ts'
import { outputOf } from './output-of.ts'
import { stopRuns } from './stop-runs.ts'

/** What a waiting task must know of its wait beside the `wait` of its row. */
export interface WaitFacts {
  /** What happens to children that are not needed any more. */
  readonly losers: 'leave' | 'cancel'
  /** `task`: the result is told as that of one task, in words. Left out: all of it as data. */
  readonly shows?: 'task'
}

/** Ends the waits of the host's running turn that this delegation decides. Rows only. */
export function answerWaits(draft: Draft, link: Link): void {
  const host = draft.conversation(link.hostConversationId)
  // A wait that begins at this moment, or a turn that ends, must see it: all three change this row.
  draft.watchConversation(host)
  const { activeTurnId } = host
  if (activeTurnId === null) return
  for (const node of draft.openNodes(activeTurnId)) {
    if (isJoin(node) && node.wait?.refs.includes(link.id)) answerIfOver(draft, node)
  }
}

/** A task that waits for children in the background: its wait is not what a call of a subagent has. */
export function isJoin({ state, wait, metadata }: Node): boolean {
  return state === 'waiting' && wait?.on === 'children' && metadata['waits'] !== undefined
}

export function answerIfOver(draft: Draft, node: Node): void {
  const { wait } = node
  if (wait === null) return
  const links = wait.refs.map((id) => draft.link(id))
  const status = joinStatus(
    wait.join,
    links.map(({ outcome }) => outcome?.status ?? null),
  )
  if (status !== undefined) return answerWait(draft, node, { status })
  if (links.some((link) => untoldQuestion(draft, link) !== undefined)) answerWait(draft, node, { status: 'question' })
}

interface WaitEnd {
  readonly status: JoinStatus | 'question' | 'timed_out'
  /** Others that ask. */
  readonly others?: readonly Link[]
}

/** The wait has its result: what ended is delivered with it, and questions are told. */
export function answerWait(draft: Draft, node: Node, { status, others = [] }: WaitEnd): void {
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
    children.push({ ...reportOf(draft, link, share), ...(isLoser ? { cancelled: true } : {}) })
    if (isLoser) stopRuns(draft, id, { cause: 'cancelled', reason: 'Another was enough for its host.' })
    if (isLoser || link.outcome !== null) deliver(draft, draft.link(id), node.id)
    const asked = untoldQuestion(draft, link)
    if (asked !== undefined) markTold(draft, asked, node.id)
  }
  endNode(draft, draft.node(node.id), { state: 'finished', output: outputOf({ ok: true, status, join, children }) })
}

interface TaskWaitEnd extends Pick<WaitEnd, 'status'> {
  /** The task, and others that ask. */
  readonly refs: readonly Id[]
}

/** The wait for one task of the background, as its host reads it. */
function answerTaskWait(draft: Draft, node: Node, { status, refs }: TaskWaitEnd): void {
  const link = draft.link(refs[0] ?? '')
  if (link.outcome !== null) deliver(draft, link, node.id)
  const late = `Task '${link.childConversationId}' is still running after waiting 5 min. You are told when it ends; load it again to wait more.`
  const about = status === 'timed_out' ? `${late}\n\n${runningTask(draft, link)}` : endedTask(draft, link)
  const questions = refs.flatMap((id) => tellQuestion(draft, draft.link(id), node.id))
  endNode(draft, draft.node(node.id), { state: 'finished', output: { content: [about, ...questions].join('\n\n') } })
}

/** What a child asks, in words. */
function tellQuestion(draft: Draft, link: Link, to: Id): string[] {
  const asked = link.outcome === null ? hostQuestionOf(draft, link) : undefined
  if (asked === undefined) return []
  if (untoldQuestion(draft, link) !== undefined) markTold(draft, asked, to)
  const id = link.childConversationId
  return [`It asks you and waits (answer with subagent_send, child_conversation_id ${id}): ${questionOf(asked)?.text}`]
}

/** Bytes of the children's words in one result; the rest is read with subagent_result. */
const SHOWN = 32_000
