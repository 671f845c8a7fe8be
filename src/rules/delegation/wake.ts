import { deriveIds } from '../../base/id.ts'
import type { Draft } from '../../graph/draft.ts'
import { mayCall } from '../../graph/kinds.ts'
import type { Conversation, Id, Link, Node, Turn, TurnLimits } from '../../graph/rows.ts'
import { pauseClocks } from '../turn/account.ts'
import { addMessage, openTurn, tellMessage } from '../turn/open-turn.ts'
import { hostQuestionOf, markTold, questionOf, untoldQuestion } from '../turn/question-of.ts'
import { deliver, leaveBackground, untold } from './background.ts'
import { reportOf } from './child-report.ts'
import { answerWaits } from './join.ts'
import { treeBelow } from './release.ts'
import { isTold } from './session.ts'

/** Something of a background child is to be told, and its host's lane may be free to hear it. */
export function tellHost(draft: Draft, link: Link): void {
  const host = draft.conversation(link.hostConversationId)
  if (host.activeTurnId !== null) {
    draft.touchTurn(host.activeTurnId)
    return
  }
  if (host.type !== 'user') return
  wake(draft, host)
  passQuestions(draft, draft.conversation(host.id))
}

/**
 * One turn that tells a root conversation of all that ended in the background and of what is asked there. It goes on
 * with the budget of the lane's last turn, so what tells of children cannot start them without end.
 */
export function wake(draft: Draft, host: Conversation): void {
  const news = newsOf(draft, host)
  const [first] = news
  const [last] = draft.stored.turnsOf(host.id, { limit: 1 })
  if (first === undefined || last === undefined || host.lane?.archivedAt != null) return
  const before = draft.turn(last.id)
  const [turnId = '', ...nodeIds] = deriveIds(first.id, 'wake', 3)
  openTurn(draft, host, {
    turnId,
    nodeIds,
    input: { background: news.map(({ link }) => link.id) },
    content: wordsOf(draft, news),
    briefing: null,
    limits: whatIsLeft(before),
    money: before.spend?.limit ?? null,
    tree: treeBelow(before, null),
    deadline: null,
    mayStart: true,
    wokenBy: before.id,
  })
  told(draft, news, nodeIds[0] ?? turnId)
}

/**
 * A child's turn is not over while it has children in the background: what they have to tell is said to it in the same
 * turn, so that its own host gets an answer that knows of them. True when there was something to tell.
 */
export function growNews(draft: Draft, turn: Turn): boolean {
  const host = draft.conversation(turn.conversationId)
  if (host.type === 'user') return false
  if (turn.state !== 'running' || turn.cancel !== null || !mayCall(turn)) return false
  const leaf = draft.nodesOf(turn.id).at(-1)
  const news = newsOf(draft, host)
  const [first] = news
  if (first === undefined || leaf?.state !== 'finished') return false
  const [userId = '', answerId = ''] = deriveIds(first.id, 'wake', 2)
  const user = addMessage(draft, turn, { id: userId, kind: 'user_message', content: wordsOf(draft, news) })
  const answer = draft.addNode(turn, { id: answerId, kind: 'agent_message', purpose: 'answer', effect: 'idempotent' })
  draft.addEdge(leaf, user, 'sequence')
  draft.addEdge(user, answer, 'sequence')
  tellMessage(draft, turn, user)
  draft.claim(answer)
  told(draft, news, userId)
  return true
}

interface News {
  /** Of the link that ended, or the node that asks. */
  readonly id: Id
  readonly link: Link
  readonly asked: Node | null
}

function newsOf(draft: Draft, host: Conversation): News[] {
  const news: News[] = untold(draft, host).map((link) => ({ id: link.id, link, asked: null }))
  for (const id of host.background) {
    const link = draft.link(id)
    const isAsked = link.outcome === null && link.wake === 'auto' && isTold(draft, link)
    const asked = isAsked ? untoldQuestion(draft, link) : undefined
    if (asked !== undefined) news.push({ id: asked.id, link, asked })
  }
  return news
}

function told(draft: Draft, news: readonly News[], by: Id): void {
  for (const { link, asked } of news) {
    if (asked === null) deliver(draft, link, by)
    else markTold(draft, asked, by)
  }
}

function wordsOf(draft: Draft, news: readonly News[]): string {
  const share = Math.max(500, Math.floor(SHOWN / news.length))
  const lines = news.map(({ link }) => JSON.stringify(reportOf(draft, link, share)))
  const questions = news.filter(({ asked }) => asked !== null).length
  const heads = [
    news.length > questions ? `${news.length - questions} of your subagents in the background ended.` : '',
    questions > 0 ? `${questions} of them ask you something and wait: answer with subagent_send.` : '',
  ]
  return [
    `[background] ${heads.filter((head) => head !== '').join(' ')} What follows is data, one subagent a line. If a text was cut, ${readerFor(news)} reads the rest.`,
    ...lines,
  ].join('\n')
}

/** By the tool that their host has. */
function readerFor(news: readonly News[]): string {
  const isOpen = news.every(({ link }) => link.contract === 'open')
  return isOpen ? 'load({ "source": child_conversation_id })' : 'subagent_result({ "child_conversation_id": ... })'
}

const SHOWN = 32_000

/** One call is always left to hear the news; where it is more than there was, nothing is done with it. */
function whatIsLeft({ limits, account }: Turn): TurnLimits {
  const turns = limits.turns - account.modelCalls
  return {
    ...limits,
    turns: Math.max(1, turns),
    toolCalls: turns < 1 ? 0 : Math.max(0, limits.toolCalls - account.toolCalls),
    children: Math.max(0, limits.children - account.children),
  }
}

/**
 * A background child has ended: a wait that it decides has its outcome, or a turn of the host's will, once. What was for
 * a run that was cancelled, that no longer counts, or of a lane that was archived is for nobody.
 */
export function endedInBackground(draft: Draft, link: Link): void {
  if (link.deliveredTo !== null) return
  if (draft.turn(link.hostTurnId).cancel !== null || isForNobody(draft, link)) {
    deliver(draft, link, 'undeliverable')
    return
  }
  answerWaits(draft, link)
  if (draft.link(link.id).deliveredTo !== null) return
  if (link.wake === 'auto') tellHost(draft, link)
  else leaveBackground(draft, link)
}

function isForNobody(draft: Draft, link: Link): boolean {
  const { lane, activeTurnId } = draft.conversation(link.hostConversationId)
  if (lane === null) return false
  return (lane.archivedAt !== null && activeTurnId === null) || !isTold(draft, link)
}

/**
 * A root host that is idle will not answer by itself: what its children ask it is asked of a person from now on, while
 * whose clock stands still. In a later turn the host may answer still.
 */
export function passQuestions(draft: Draft, { type, activeTurnId, background }: Conversation): void {
  if (type !== 'user' || activeTurnId !== null) return
  for (const id of background) {
    const link = draft.link(id)
    const asked = link.outcome === null ? hostQuestionOf(draft, link) : undefined
    if (asked !== undefined) pass(draft, asked)
  }
}

function pass(draft: Draft, asked: Node): void {
  const question = questionOf(asked)
  if (question?.to !== 'host') return
  draft.changeNode(asked, { metadata: { ...asked.metadata, question: { ...question, to: 'person', passed: true } } })
  pauseClocks(draft, asked.turnId)
  const { text } = question
  draft.event(draft.turn(asked.turnId), asked.id, {
    type: 'question',
    to: 'person',
    text,
    expiresAt: asked.wakeAt ?? 0,
  })
}
