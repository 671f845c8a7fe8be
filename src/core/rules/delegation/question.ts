import { ConflictError, NotFoundError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { Draft } from '../../graph/draft.ts'
import { changedAccount, toolCallsLeft } from '../../graph/limits.ts'
import type { Body, Id, Link, Node } from '../../graph/rows.ts'
import { pauseClocks } from '../turn/account.ts'
import { APPROVAL_MS } from '../turn/approve.ts'
import { type Claim, heldNode } from '../turn/claim.ts'
import { endNode, type NodeEnd } from '../turn/end-node.ts'
import {
  hostQuestionOf,
  markReported,
  type NodeQuestion,
  questionHash,
  questionOf,
  unreportedQuestion,
} from '../turn/question-of.ts'
import { isSeen } from '../turn/seen.ts'
import { childName } from './child-report.ts'
import { endWait, endWaits, isJoin, jsonOutput } from './join.ts'
import { isBlocked, promote } from './wait.ts'
import { reportToHost } from './wake.ts'

/**
 * Makes the node wait as a row for an answer (I5). The host hears a question once: from the wait for this child, from the call
 * that waits for it (which then continues in the background), or from a turn of the host's conversation.
 */
export function planQuestion(
  draft: Draft,
  claim: Claim,
  {
    text,
    asked,
    hostCanAnswer,
  }: {
    readonly text: string
    readonly asked: NodeQuestion['asked']
    /** False where the host has no tool to answer with, or cannot be asked: then a person is asked. */
    readonly hostCanAnswer: boolean
  },
): void {
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

export interface OutsideCall {
  /** The words for who reads the log. */
  readonly text: string
  /** The principal that executes it; null: the owner of the tree. */
  readonly by: string | null
  /** JSON Schema of the result; null for any. */
  readonly schema: Json
  readonly timeoutMs: number
}

/** Makes the node wait as a row for the result of a call that is executed elsewhere (I5). The clock of its run stands still. */
export function planOutside(draft: Draft, claim: Claim, { text, by, schema, timeoutMs }: OutsideCall): void {
  const node = heldNode(draft, claim)
  if (node === undefined) return
  if (draft.turn(node.turnId).cancel !== null) {
    endNode(draft, node, { state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' } })
    return
  }
  const question = { text, asked: 'person', to: 'outside', since: draft.now, told: null } as const
  park(draft, node, { ...question, outside: { by, schema }, waitMs: timeoutMs })
  pauseClocks(draft, node.turnId)
}

export interface OutsideResult {
  readonly end: NodeEnd
  readonly by: string
  /** A result that is too long for a row. */
  readonly body: Body | null
  /** The hash of the call that was executed, or its beginning: the result is refused where the node waits for another one. */
  readonly seen?: string
}

/** The result of a call that was executed elsewhere. Once: a second one is refused. */
export function planOutsideResult(draft: Draft, nodeId: Id, { end, by, body, seen }: OutsideResult): void {
  const node = draft.findNode(nodeId)
  if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId}.`)
  const question = questionOf(node)
  if (node.state !== 'waiting' || question?.outside === undefined) throw noQuestion(node)
  if (seen !== undefined && !isSeen(questionHash(question), seen)) throw askedAnother(node, question)
  draft.event(draft.turn(node.turnId), node.id, { type: 'answer', by, text: '' })
  if (body !== null) draft.addBody(body)
  endNode(draft, node, { ...end, metadata: answeredWith(draft, node, { text: '', by }) })
}

export interface CodeQuestion {
  /** Derived from the node and the number of the question among its calls. */
  readonly id: Id
  readonly text: string
}

/**
 * Lets the code of a node ask a person: a task beside the node waits as a row for the answer. Code that runs again finds its
 * question; `changed` means it asked something else before.
 */
export function planCodeQuestion(draft: Draft, claim: Claim, { id, text }: CodeQuestion): CodeQuestionResult {
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

export type CodeQuestionResult = 'asked' | 'changed' | 'limit' | 'lost'

/** The question appears as a model's call does, and counts as one. */
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
  /** The hash of the question that was seen, or its beginning: the answer is refused where the node asks another one. */
  readonly seen?: string
}

/** Answers a question: the node that asked gets the answer as its result and continues. */
export function planReply(draft: Draft, nodeId: Id, { text, by, seen }: Reply): void {
  const node = draft.findNode(nodeId)
  if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId}.`)
  const question = questionOf(node)
  if (node.state !== 'waiting' || question === undefined) throw noQuestion(node)
  if (question.outside !== undefined) throw wantsResult(node)
  if (seen !== undefined && !isSeen(questionHash(question), seen)) throw askedAnother(node, question)
  draft.event(draft.turn(node.turnId), node.id, { type: 'answer', by, text })
  endNode(draft, node, {
    state: 'finished',
    output: { content: text },
    metadata: answeredWith(draft, node, { text, by }),
  })
  tellNext(draft, node)
}

/** Refuses an answer that nobody waits for, and says who gave the first one. */
function noQuestion({ id, state, metadata }: Node): ConflictError {
  const { answered } = (metadata['question'] ?? {}) as Partial<NodeQuestion>
  const how = answered === undefined || answered.by === NOBODY ? `it is ${state}` : `${answered.by} has answered it`
  const message = `The node ${id} has no open question: ${how}.`
  return new ConflictError('conflict', message, { details: { state, ...answered } })
}

function wantsResult({ id }: Node): ConflictError {
  return new ConflictError(
    'conflict',
    `The node ${id} waits for the result of its call: give { result }, not { text }.`,
  )
}

/** Refuses an answer to another question than the node asks now, and gives that one. */
export function askedAnother({ id, state, wakeAt }: Node, question: NodeQuestion): ConflictError {
  const { text, to, since } = question
  const request = { text, to, since, seen: questionHash(question), expiresAt: wakeAt }
  const message = `Nothing was answered: the node ${id} asks something else, "${text}".`
  return new ConflictError('conflict', message, { details: { state, request } })
}

/** The metadata of a question that is over. */
function answeredWith({ now }: Draft, node: Node, { text, by }: Reply): Node['metadata'] {
  const question = questionOf(node)
  if (question === undefined) return node.metadata
  return { ...node.metadata, question: { ...question, answered: { by, text, at: now } } }
}

const NOBODY = 'nobody'

/** A question is over: reports the child's next question to its host. */
function tellNext(draft: Draft, { turnId }: Node): void {
  const link = draft.findLink(turnId)
  if (link?.mode === 'background' && unreportedQuestion(draft, link) !== undefined) tell(draft, link)
}

function park(
  draft: Draft,
  node: Node,
  { waitMs = APPROVAL_MS, ...question }: NodeQuestion & { readonly waitMs?: number },
): void {
  const until = draft.now + waitMs
  draft.changeNode(node, {
    state: 'waiting',
    engineId: null,
    wait: { on: 'question', refs: [], join: 'all', until },
    wakeAt: until,
    metadata: { ...node.metadata, question },
  })
  draft.watchTurn(draft.turn(node.turnId))
  draft.noteDue(until)
  const { text, to } = question
  draft.event(draft.turn(node.turnId), node.id, {
    type: 'question',
    to,
    text,
    seen: questionHash(question),
    expiresAt: until,
  })
}

/**
 * False for a host that cannot answer: its code may be waiting for this child, it has no tools to answer, or it is a child
 * itself and does not wait, so nobody would wake it.
 */
function canAsk(draft: Draft, { mode, wake, taskId, depth, onParentClose }: Link): boolean {
  const { state } = draft.node(taskId)
  if (wake === null) return false
  if (mode === 'background' && depth > 1 && (wake === 'passive' || onParentClose === 'abandon')) return false
  return mode === 'background' ? state !== 'running' : mode === 'parked' && state === 'waiting'
}

function tell(draft: Draft, link: Link): void {
  if (link.mode === 'background') {
    endWaits(draft, link)
    return reportToHost(draft, link)
  }
  const asked = hostQuestionOf(draft, link)
  if (asked === undefined) return
  markReported(draft, asked, link.taskId)
  promote(
    draft,
    link,
    jsonOutput({
      ok: true,
      status: 'question',
      child_conversation_id: link.childConversationId,
      question: questionOf(asked)?.text ?? '',
      advice: `It waits. Answer with subagent_send({ "child_conversation_id": "${link.childConversationId}", "message": ... }); it goes on in the background.`,
    }),
  )
}

/** Ends a question that nobody will answer with these words; its child continues. */
function giveUpQuestion(draft: Draft, asked: Node, why: string): void {
  draft.event(draft.turn(asked.turnId), asked.id, { type: 'answer', by: NOBODY, text: '' })
  const content = `${why} Go on with what you know, and say in your answer what you would have needed.`
  const metadata = answeredWith(draft, asked, { text: '', by: NOBODY })
  endNode(draft, asked, { state: 'finished', output: { content, isError: true }, metadata })
}

/**
 * Gives up the questions to a host that cannot answer any more: it has said its last word, and waits only for children that
 * wait for its answer, or for their room. It is checked again for further questions.
 */
export function giveUpQuestions(draft: Draft, held: readonly Link[]): void {
  if (!held.every((link) => isBlocked(draft, link))) return
  for (const link of held) {
    const asked = hostQuestionOf(draft, link)
    if (asked === undefined) continue
    giveUpQuestion(draft, asked, 'Whoever gave you this task does not answer any more.')
    draft.touchTurn(link.hostTurnId)
  }
}

/**
 * Ends a wait whose time is over: the node continues without the awaited child, and the child continues too. Needs rows only.
 */
export function planTimeUp(draft: Draft, nodeId: Id): void {
  const node = draft.findNode(nodeId)
  if (node?.state !== 'waiting' || node.wakeAt === null || node.wakeAt > draft.now) return
  if (node.wait?.on === 'question') {
    giveUpQuestion(draft, node, asksOutside(node) ? 'Nobody executed it in time.' : 'Nobody answered in time.')
    tellNext(draft, node)
  } else if (isJoin(node)) endWait(draft, node, { status: 'timed_out' })
  else for (const id of node.wait?.refs ?? []) promoteLate(draft, draft.link(id))
}

function asksOutside(node: Node): boolean {
  return questionOf(node)?.outside !== undefined
}

function promoteLate(draft: Draft, link: Link): void {
  const id = link.childConversationId
  const hint = link.wake === null ? '' : ` subagent_wait, subagent_result and subagent_cancel take its id.`
  promote(
    draft,
    link,
    jsonOutput({
      ok: true,
      status: 'promoted',
      child_conversation_id: id,
      name: childName(draft.conversation(id)),
      advice: `It takes longer than this call waits and goes on in the background. You will be told of its end.${hint}`,
    }),
  )
}
