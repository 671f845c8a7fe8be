import { ConflictError, NotFoundError } from '../../base/error.ts'
import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json } from '../../base/json.ts'
import type { Draft } from '../draft.ts'
import type { Conversation, Id, Node } from '../rows.ts'
import { type Claim, heldNode } from './claim.ts'
import { endNode } from './end-node.ts'
import { pauseClocks, resumeClocks } from './pause.ts'
import { settle } from './settle.ts'
import { releaseSpend } from './spend.ts'

/** How long a person has to answer; then it is a no. */
export const APPROVAL_MS: number = 24 * 3_600_000

/** What a node must be allowed before it may go on. */
export interface Ask {
  /** `tool:deploy`, `agent:expert`, `file.write:/workspace/x`. */
  readonly request: string
  /** Who wants to be asked, by which rule. */
  readonly reason: string
  /** What it would be done with: an answer holds for this and nothing else. */
  readonly input: Json
  /** A denial keeps what comes after it from running. */
  readonly required: boolean
  /** Of what is asked for, where it may change: an answer holds for this one. */
  readonly version?: string
}

/** The node waits as a row for a person; the clock of its run stands still. */
export function planAsk(draft: Draft, claim: Claim, ask: Ask): void {
  const node = heldNode(draft, claim)
  if (node === undefined) return
  const turn = draft.turn(node.turnId)
  if (turn.cancel !== null) {
    endNode(draft, node, { state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' } })
    return settle(draft)
  }
  releaseSpend(draft, node.id)
  const wakeAt = draft.now + APPROVAL_MS
  const { request, reason, required } = ask
  const digest = digestOf(ask, ask.input)
  const version = ask.version === undefined ? {} : { version: ask.version }
  const approval = { request, reason, required, input: ask.input, digest, since: draft.now, ...version }
  draft.changeNode(node, {
    state: 'awaiting_approval',
    engineId: null,
    startedAt: null,
    wakeAt,
    metadata: { ...draft.node(node.id).metadata, approval },
  })
  pauseClocks(draft, node.turnId)
  draft.due(wakeAt)
  draft.event(draft.turn(node.turnId), node.id, {
    type: 'approval-request',
    call: node.input.call ?? null,
    request,
    reason,
    expiresAt: wakeAt,
  })
}

type Asked = Pick<Ask, 'request' | 'input' | 'version'>

/** Has a person allowed this node, or its conversation, to do just this? */
export function isApproved(node: Node, conversation: Conversation, about: Asked): boolean {
  const always = conversation.metadata['approved']
  if (Array.isArray(always) && always.includes(nameOf(about))) return true
  const once = node.metadata['approved']
  return Array.isArray(once) && once.includes(digestOf(about, about.input))
}

/** Has a person allowed an earlier version of this for the whole conversation? */
export function wasApproved({ metadata }: Conversation, { request, version }: Asked): boolean {
  const always = metadata['approved']
  if (version === undefined || !Array.isArray(always)) return false
  return always.some((name) => typeof name === 'string' && name.startsWith(`${request}${VERSION}`))
}

const VERSION = ' version '

function nameOf({ request, version }: Pick<Ask, 'request' | 'version'>): string {
  return version === undefined ? request : `${request}${VERSION}${version}`
}

export interface ApprovalAnswer {
  readonly allowed: boolean
  readonly by: string
  readonly reason: string | null
  /** Allow the same request for the rest of this conversation too. */
  readonly always?: boolean
  /** Do it with these arguments instead. */
  readonly edit?: Json
  /** Which of the things that a node asks for is meant. */
  readonly digest?: string
}

/** A person's word on a node that awaits it: it runs, or it is rejected and the model reads why. */
export function planApproval(draft: Draft, nodeId: Id, answer: ApprovalAnswer): void {
  const node = draft.findNode(nodeId)
  if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId}.`)
  if (node.state !== 'awaiting_approval') {
    throw new ConflictError('conflict', `The node ${nodeId} does not await approval: it is ${node.state}.`, {
      details: { state: node.state },
    })
  }
  if (answer.digest !== undefined && answer.digest !== approvalOf(node).digest) {
    const { request } = approvalOf(node)
    throw new ConflictError(
      'conflict',
      `Nothing was answered: the node ${nodeId} asks for something else now, ${request}.`,
    )
  }
  if (allowedTooLate(draft, node, answer)) {
    throw new ConflictError('conflict', `The time to answer ${nodeId} is over: it counts as denied.`)
  }
  const { allowed, by, reason, always = false, edit } = answer
  const turn = draft.turn(node.turnId)
  draft.event(turn, node.id, { type: 'approval-answer', allowed, by, reason, always, edited: edit !== undefined })
  if (allowed) return allow(draft, node, answer)
  endNode(draft, node, {
    state: 'rejected',
    failure: {
      code: 'approval_denied',
      message: reason ?? `${by} denied ${approvalOf(node).request || 'it'}, and gave no reason.`,
    },
    metadata: { ...node.metadata, deniedBy: by },
  })
  settle(draft)
}

/** Also when no process was there to see it expire. */
function allowedTooLate({ now }: Draft, { wakeAt }: Node, { allowed }: ApprovalAnswer): boolean {
  return allowed && wakeAt !== null && wakeAt <= now
}

/** Nobody answered in time: that is a no. */
export function planExpiry(draft: Draft, nodeId: Id): void {
  const node = draft.findNode(nodeId)
  const isDue = node?.state === 'awaiting_approval' && node.wakeAt !== null && node.wakeAt <= draft.now
  if (isDue) planApproval(draft, nodeId, { allowed: false, by: 'nobody', reason: 'Nobody answered in time.' })
}

function allow(draft: Draft, node: Node, { by, always, edit }: ApprovalAnswer): void {
  const edited = edit === undefined ? node.input : editedInput(node, edit)
  const approval = approvalOf(node)
  const digest = edit === undefined ? approval.digest : digestOf(approval, edit)
  const once = Array.isArray(node.metadata['approved']) ? node.metadata['approved'] : []
  const ready = draft.changeNode(node, {
    state: 'pending',
    wakeAt: null,
    input: edited,
    metadata: { ...node.metadata, approved: [...once, digest], approvedBy: by },
  })
  if (always) allowAlways(draft, node.conversationId, nameOf(approval))
  resumeClocks(draft, node.turnId)
  if (ready.blockers === 0) draft.claim(ready)
}

function allowAlways(draft: Draft, conversationId: Id, request: string): void {
  const conversation = draft.conversation(conversationId)
  const known = conversation.metadata['approved']
  const approved = Array.isArray(known) ? known : []
  if (approved.includes(request)) return
  draft.changeConversation(conversation, { metadata: { ...conversation.metadata, approved: [...approved, request] } })
}

function editedInput(node: Node, edit: Json): Node['input'] {
  const { call } = node.input
  if (call === undefined) throw new ConflictError('conflict', `The node ${node.id} has no arguments to edit.`)
  return { ...node.input, call: { ...call, input: edit } }
}

/** What a node waits for; empty for one that was put in by hand. */
export function approvalOf({ metadata }: Node): Approval {
  return {
    request: '',
    reason: '',
    required: false,
    input: null,
    digest: '',
    since: 0,
    ...(metadata['approval'] as object),
  }
}

export interface Approval extends Ask {
  readonly digest: string
  readonly since: number
}

/** A list, so that no request and input can be taken for another pair. */
export function digestOf({ request, version }: Pick<Ask, 'request' | 'version'>, input: Json): string {
  return sha256(canonicalJson(version === undefined ? [request, input] : [request, input, version]))
}
