import { deriveIds } from '../../base/id.ts'
import { stackCeilings } from '../../grant/ceiling.ts'
import type { Draft } from '../../graph/draft.ts'
import { eachLimit, LIMITS, mayCall, type TurnLimits } from '../../graph/limits.ts'
import type { Conversation, Id, Link, Node, Turn } from '../../graph/rows.ts'
import { pauseClocks } from '../turn/account.ts'
import { addMessage, openTurn, tellMessage } from '../turn/open-turn.ts'
import { hostQuestionOf, markReported, questionHash, questionOf, unreportedQuestion } from '../turn/question-of.ts'
import { deliver, leaveBackground, unreported } from './background.ts'
import { reportDelegation } from './child-report.ts'
import { endWaits } from './join.ts'
import { treeBelow } from './release.ts'
import { isMentioned } from './session.ts'

/** A background child has news: reports it if the host's lane is free. */
export function reportToHost(draft: Draft, link: Link): void {
  const host = draft.conversation(link.hostConversationId)
  if (host.activeTurnId !== null) {
    draft.touchTurn(host.activeTurnId)
    return
  }
  if (host.type !== 'user') return
  openReportTurn(draft, host)
  passQuestions(draft, draft.conversation(host.id))
}

/**
 * Opens one turn that reports to a root conversation everything that ended or asks in the background. It continues the budget
 * of the lane's last turn, so reports about children cannot start children without end.
 */
export function openReportTurn(draft: Draft, host: Conversation): void {
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
    limits: remainingLimits(before),
    money: before.spend?.limit ?? null,
    tree: treeBelow(before, null),
    deadline: null,
    mayStart: true,
    wokenBy: before.id,
    ceiling: ceilingOfReport(draft, before, news),
  })
  told(draft, news, nodeIds[0] ?? turnId)
}

/** A report is bound by the turn whose budget it continues and by every turn whose children it is about (I1). */
function ceilingOfReport(draft: Draft, before: Turn, news: readonly News[]): Turn['ceiling'] {
  const hosts = new Set(news.map(({ link }) => link.hostTurnId))
  return [...hosts].reduce((ceiling, id) => stackCeilings(ceiling, draft.turn(id).ceiling), before.ceiling)
}

/**
 * Reports news to a child within its running turn. A child's turn stays open while it has background children, so that its own
 * host gets an answer that knows their results. True when there was news.
 */
export function reportInTurn(draft: Draft, turn: Turn): boolean {
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
  /** The id of the link that ended, or of the node that asks. */
  readonly id: Id
  readonly link: Link
  readonly asked: Node | null
}

function newsOf(draft: Draft, host: Conversation): News[] {
  const news: News[] = unreported(draft, host).map((link) => ({ id: link.id, link, asked: null }))
  for (const id of host.background) {
    const link = draft.link(id)
    const isAsked = link.outcome === null && link.wake === 'auto' && isMentioned(draft, link)
    const asked = isAsked ? unreportedQuestion(draft, link) : undefined
    if (asked !== undefined) news.push({ id: asked.id, link, asked })
  }
  return news
}

function told(draft: Draft, news: readonly News[], by: Id): void {
  for (const { link, asked } of news) {
    if (asked === null) deliver(draft, link, by)
    else markReported(draft, asked, by)
  }
}

function wordsOf(draft: Draft, news: readonly News[]): string {
  const share = Math.max(500, Math.floor(SHOWN / news.length))
  const lines = news.map(({ link }) => JSON.stringify(reportDelegation(draft, link, share)))
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

/** Names the tool that their host has to read them. */
function readerFor(news: readonly News[]): string {
  const isOpen = news.every(({ link }) => link.contract === 'open')
  return isOpen ? 'load({ "source": child_conversation_id })' : 'subagent_result({ "child_conversation_id": ... })'
}

const SHOWN = 32_000

/** The rest of a budget. One model call is always left to hear the news; a spent budget allows nothing beyond it. */
function remainingLimits({ limits, account }: Turn): TurnLimits {
  const left = eachLimit((name) => {
    const { counter } = LIMITS[name]
    return counter === undefined ? limits[name] : Math.max(0, limits[name] - account[counter])
  })
  return left.modelCalls > 0 ? left : { ...left, modelCalls: 1, toolCalls: 0 }
}

/**
 * Handles the end of a background child: a wait that it decides gets the outcome, or a turn of the host will, once. Nobody gets
 * it where the host's run was cancelled or replaced, or its lane archived.
 */
export function endBackgroundChild(draft: Draft, link: Link): void {
  if (link.deliveredTo !== null) return
  if (draft.turn(link.hostTurnId).cancel !== null || isForNobody(draft, link)) {
    deliver(draft, link, 'undeliverable')
    return
  }
  endWaits(draft, link)
  if (draft.link(link.id).deliveredTo !== null) return
  if (link.wake === 'auto') reportToHost(draft, link)
  else leaveBackground(draft, link)
}

function isForNobody(draft: Draft, link: Link): boolean {
  const { lane, activeTurnId } = draft.conversation(link.hostConversationId)
  if (lane === null) return false
  return (lane.archivedAt !== null && activeTurnId === null) || !isMentioned(draft, link)
}

/**
 * Passes open questions on to a person, because an idle root host will not answer by itself; the clocks stop meanwhile. The
 * host may still answer in a later turn.
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
    seen: questionHash(question),
    expiresAt: asked.wakeAt ?? 0,
  })
}
