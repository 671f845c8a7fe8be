import { ConflictError, NotFoundError } from '../../base/error.ts'
import { changedAccount } from '../../graph/copy.ts'
import type { Draft } from '../../graph/draft.ts'
import { toolCallsLeft } from '../../graph/kinds.ts'
import type { Id, Link, Node } from '../../graph/rows.ts'
import { pauseClocks } from '../turn/account.ts'
import { APPROVAL_MS } from '../turn/approve.ts'
import { type Claim, heldNode } from '../turn/claim.ts'
import { endNode } from '../turn/end-node.ts'
import { hostQuestionOf, markTold, type Question, questionOf, untoldQuestion } from '../turn/question-of.ts'
import { childName } from './child-report.ts'
import { answerWait, answerWaits, isJoin, outputOf } from './join.ts'
import { cannotGoOn, promote } from './wait.ts'
import { tellHost } from './wake.ts'

export interface Asking {
  readonly text: string
  readonly asked: Question['asked']
  /** A host without a tool to answer with, or one that cannot be asked, is passed over for a person. */
  readonly hostCanAnswer: boolean
}

/**
 * The node waits as a row for an answer (I5). A question to the host is told to it once: by the wait that waits for this
 * child, by the call that waits for it, which goes on in the background, or by a turn of the host's conversation.
 */
export function planQuestion(draft: Draft, claim: Claim, { text, asked, hostCanAnswer }: Asking): void {
  const node = heldNode(draft, claim)
  if (node === undefined) return
  const turn = draft.turn(node.turnId)
  if (turn.cancel !== null) {
    endNode(draft, node, { state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' } })
    return
  }
  const link = draft.findLink(node.turnId)
  const isForHost = asked === 'host' && hostCanAnswer
  const host = isForHost && link !== undefined && canAsk(draft, link) ? link : undefined
  park(draft, node, { text, asked, to: host === undefined ? 'person' : 'host', since: draft.now, told: null })
  if (host === undefined) pauseClocks(draft, node.turnId)
  else tell(draft, host)
}

export interface CodeQuestion {
  /** Derived from the node and which of its calls this is. */
  readonly id: Id
  readonly text: string
}

/**
 * The code of a node asks a person: a task beside it waits as a row for the answer. Code that runs again finds what it has
 * asked; `changed` where that was something else.
 */
export function planCodeQuestion(draft: Draft, claim: Claim, { id, text }: CodeQuestion): CodeAsked {
  const asker = heldNode(draft, claim)
  if (asker === undefined) return 'lost'
  const known = draft.findNode(id)
  if (known !== undefined) return questionOf(known)?.text === text ? 'asked' : 'changed'
  const turn = draft.turn(asker.turnId)
  if (turn.cancel !== null || asker.marks?.stop != null) return 'lost'
  if (toolCallsLeft(turn) === 0) return 'limit'
  const task = addQuestion(draft, asker, { id, text })
  park(draft, task, { text, asked: 'person', to: 'person', since: draft.now, told: null })
  pauseClocks(draft, asker.turnId)
  return 'asked'
}

export type CodeAsked = 'asked' | 'changed' | 'limit' | 'lost'

/** Told as the call of a model is, and counted as one. */
function addQuestion(draft: Draft, asker: Node, { id, text }: CodeQuestion): Node {
  const call = { id, name: 'ask_person', input: { question: text } }
  const effect = 'idempotent'
  draft.watchNode(asker)
  const turn = draft.ownTurn(draft.turn(asker.turnId))
  turn.account = changedAccount(turn.account, { toolCalls: turn.account.toolCalls + 1 })
  const task = draft.addNode(turn, {
    id,
    kind: 'task',
    state: 'running',
    engineId: asker.engineId,
    epoch: 1,
    startedAt: draft.now,
    input: { call },
    effect,
    metadata: { asked_by: asker.id },
  })
  draft.addEdge(asker, task, 'branch')
  draft.event(turn, id, { type: 'tool-call', call, effect, delegates: false })
  return task
}

export interface Reply {
  readonly text: string
  readonly by: string
}

/** The answer to a question: the node that asked has it as its result, and goes on. */
export function planReply(draft: Draft, nodeId: Id, { text, by }: Reply): void {
  const node = draft.findNode(nodeId)
  if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId}.`)
  if (node.state !== 'waiting' || questionOf(node) === undefined) {
    throw new ConflictError('conflict', `The node ${nodeId} has no open question: it is ${node.state}.`, {
      details: { state: node.state },
    })
  }
  draft.event(draft.turn(node.turnId), node.id, { type: 'answer', by, text })
  endNode(draft, node, { state: 'finished', output: { content: text } })
  tellNext(draft, node)
}

/** A question is over: what else its child asks its host is told now. */
function tellNext(draft: Draft, { turnId }: Node): void {
  const link = draft.findLink(turnId)
  if (link?.mode === 'background' && untoldQuestion(draft, link) !== undefined) tell(draft, link)
}

function park(draft: Draft, node: Node, question: Question): void {
  const until = draft.now + APPROVAL_MS
  draft.changeNode(node, {
    state: 'waiting',
    engineId: null,
    wait: { on: 'question', refs: [], join: 'all', until },
    wakeAt: until,
    metadata: { ...node.metadata, question: { ...question } },
  })
  draft.watchTurn(draft.turn(node.turnId))
  draft.due(until)
  const { text, to } = question
  draft.event(draft.turn(node.turnId), node.id, { type: 'question', to, text, expiresAt: until })
}

/**
 * A host whose code may await its child cannot answer it, nor one without the tools to, nor one that is a child and does
 * not wait for it: nobody wakes that one.
 */
function canAsk(draft: Draft, { mode, wake, taskId, depth, onParentClose }: Link): boolean {
  const { state } = draft.node(taskId)
  if (wake === null) return false
  if (mode === 'background' && depth > 1 && (wake === 'passive' || onParentClose === 'abandon')) return false
  return mode === 'background' ? state !== 'running' : mode === 'parked' && state === 'waiting'
}

function tell(draft: Draft, link: Link): void {
  if (link.mode === 'background') {
    answerWaits(draft, link)
    return tellHost(draft, link)
  }
  const asked = hostQuestionOf(draft, link)
  if (asked === undefined) return
  markTold(draft, asked, link.taskId)
  promote(
    draft,
    link,
    outputOf({
      ok: true,
      status: 'question',
      child_conversation_id: link.childConversationId,
      question: questionOf(asked)?.text ?? '',
      advice: `It waits. Answer with subagent_send({ "child_conversation_id": "${link.childConversationId}", "message": ... }); it goes on in the background.`,
    }),
  )
}

/** A question that nobody will answer ends with these words, and its child goes on. */
function giveUpQuestion(draft: Draft, asked: Node, why: string): void {
  draft.event(draft.turn(asked.turnId), asked.id, { type: 'answer', by: 'nobody', text: '' })
  const content = `${why} Go on with what you know, and say in your answer what you would have needed.`
  endNode(draft, asked, { state: 'finished', output: { content, isError: true } })
}

/**
 * A host that has said its last word and waits only for children that wait for its answer, or for their room, will not
 * give one. It is looked at again for what else they ask.
 */
export function giveUpQuestions(draft: Draft, held: readonly Link[]): void {
  if (!held.every((link) => cannotGoOn(draft, link))) return
  for (const link of held) {
    const asked = hostQuestionOf(draft, link)
    if (asked === undefined) continue
    giveUpQuestion(draft, asked, 'Whoever gave you this task does not answer any more.')
    draft.touchTurn(link.hostTurnId)
  }
}

/** A waiting node's time is over: it goes on without what it waited for, which goes on too. Rows only. */
export function planTimeUp(draft: Draft, nodeId: Id): void {
  const node = draft.findNode(nodeId)
  if (node?.state !== 'waiting' || node.wakeAt === null || node.wakeAt > draft.now) return
  if (node.wait?.on === 'question') {
    giveUpQuestion(draft, node, 'Nobody answered in time.')
    tellNext(draft, node)
  } else if (isJoin(node)) answerWait(draft, node, { status: 'timed_out' })
  else for (const id of node.wait?.refs ?? []) goOnBehind(draft, draft.link(id))
}

function goOnBehind(draft: Draft, link: Link): void {
  const id = link.childConversationId
  const hint = link.wake === null ? '' : ` subagent_wait, subagent_result and subagent_cancel take its id.`
  promote(
    draft,
    link,
    outputOf({
      ok: true,
      status: 'promoted',
      child_conversation_id: id,
      name: childName(draft.conversation(id)),
      advice: `It takes longer than this call waits and goes on in the background. You will be told of its end.${hint}`,
    }),
  )
}
