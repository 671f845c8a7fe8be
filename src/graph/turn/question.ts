import { ConflictError, NotFoundError } from '../../base/error.ts'
import { answerWaits } from '../child/join.ts'
import { outputOf } from '../child/output-of.ts'
import { promote } from '../child/promote.ts'
import { tellHost } from '../child/wake.ts'
import { changedAccount } from '../copy.ts'
import type { Draft } from '../draft.ts'
import type { Id, Link, Node } from '../rows.ts'
import { APPROVAL_MS } from './approve.ts'
import { type Claim, heldNode } from './claim.ts'
import { endNode } from './end-node.ts'
import { toolCallsLeft } from './next-call.ts'
import { pauseClocks } from './pause.ts'
import { hostQuestionOf, markTold, type Question, questionOf, untoldQuestion } from './question-of.ts'

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
export function tellNext(draft: Draft, { turnId }: Node): void {
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
