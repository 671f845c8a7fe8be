// Approvals: a node waits until a person allows or denies a request.
//
// Owns:      the request in the node's row, the answers for one node or for a whole conversation, and the deadline.
// Called by: `tool/permit` asks whether something is approved, steps and tasks call `planAsk`, the runtime `planApproval`,
//            sweeps `planExpiry`.
// Must stay true:
//   - Waiting is a row (I5), and the clock of the run stands still meanwhile.
//   - A yes holds for exactly the request, version and input that the person saw. Another one is asked for again.
//   - Silence denies.

import { ConflictError, NotFoundError } from '../../base/error.ts'
import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json } from '../../base/json.ts'
import type { Draft } from '../../graph/draft.ts'
import type { Conversation, Id, Node } from '../../graph/rows.ts'
import { pauseClocks, releaseHold, resumeClocks } from './account.ts'
import { type ApprovalRequest, approvalOf, digestOf, type NodeApproval } from './approval-of.ts'
import { type Claim, heldNode } from './claim.ts'
import { endNode } from './end-node.ts'
import { isSeen } from './seen.ts'

/** How long a person has to answer; silence denies. */
export const APPROVAL_MS: number = 24 * 3_600_000

/** Makes the node wait as a row for a person; the clock of its run stops. */
export function planAsk(draft: Draft, claim: Claim, ask: ApprovalRequest): void {
  const node = heldNode(draft, claim)
  if (node === undefined) return
  const turn = draft.turn(node.turnId)
  if (turn.cancel !== null) {
    endNode(draft, node, { state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' } })
    return
  }
  releaseHold(draft, node.id)
  const word = editedWord(node, ask)
  if (word !== undefined) return allowEdited(draft, node, { ask, word })
  const changes = changesOf(node, ask)
  if (changes !== undefined && changes.count > MOST_CHANGES) return refuseChanged(draft, node, ask)
  const wakeAt = draft.now + APPROVAL_MS
  const { request, reason } = ask
  const approval = { ...ask, digest: digestOf(ask, ask.input), since: draft.now }
  draft.changeNode(node, {
    state: 'awaiting_approval',
    engineId: null,
    startedAt: null,
    wakeAt,
    metadata: { ...draft.node(node.id).metadata, approval, ...withChanges(node, ask, changes) },
  })
  pauseClocks(draft, node.turnId)
  draft.noteDue(wakeAt)
  draft.event(draft.turn(node.turnId), node.id, {
    type: 'approval-request',
    call: node.input.call ?? null,
    request,
    input: ask.input,
    seen: approval.digest,
    reason,
    expiresAt: wakeAt,
  })
}

/** How often a request may change after it was allowed: nobody is asked without end. */
const MOST_CHANGES = 2

/** The version of a request that a person was asked about last, and how often it had changed by then. */
type Changes = { readonly version: string; readonly count: number }

/** Counts how often this request changed while a person was asked. Undefined for one that cannot change. */
function changesOf(node: Node, ask: ApprovalRequest): Changes | undefined {
  const { version } = ask
  if (version === undefined) return undefined
  const before = knownChanges(node)[subjectOf(ask)]
  if (before === undefined) return { version, count: 0 }
  return { version, count: before.version === version ? before.count : before.count + 1 }
}

function withChanges(node: Node, ask: ApprovalRequest, changes: Changes | undefined): Record<string, Json> {
  return changes === undefined ? {} : { changes: { ...knownChanges(node), [subjectOf(ask)]: { ...changes } } }
}

/** Older rows have one number for all requests of a node: it begins anew. */
function knownChanges({ metadata }: Node): Readonly<Record<string, Changes>> {
  const known = metadata['changes']
  return typeof known === 'object' && known !== null ? (known as never) : {}
}

/** The subject stays while a request changes: a server's name, else the arguments. Two servers on one host are two subjects. */
function subjectOf({ request, place, start, input }: ApprovalRequest): string {
  return hashOf([request, place ?? null, start === undefined ? input : start.name]).slice(0, 16)
}

function refuseChanged(draft: Draft, node: Node, { request }: ApprovalRequest): void {
  const message = `${request} is refused: it was changed ${MOST_CHANGES + 1} times while a person was asked to allow it.`
  const isCall = node.input.call !== undefined
  endNode(
    draft,
    node,
    isCall
      ? { state: 'finished', output: { content: message, isError: true } }
      : { state: 'errored', failure: { code: 'denied', message } },
  )
}

type ApprovalSubject = Pick<ApprovalRequest, 'request' | 'input' | 'version'>

/** True where a person has allowed exactly this, for this node or its conversation. */
export function isApproved(node: Node, conversation: Conversation, about: ApprovalSubject): boolean {
  if (allowedIn(conversation).some((one) => isSame(one, about))) return true
  const once = node.metadata['approved']
  return Array.isArray(once) && once.includes(digestOf(about, about.input))
}

/** True where a person has allowed an earlier version of this for the whole conversation. */
export function wasApproved({ metadata }: Conversation, { request, version }: ApprovalSubject): boolean {
  if (version === undefined) return false
  return allowedIn({ metadata }).some((one) => one.request === request && one.version !== undefined)
}

/** A permission for a whole conversation. Request and version are separate fields: no text can pass for both. */
type StandingPermission = Pick<ApprovalRequest, 'request' | 'version'>

/** How many requests persons have allowed for the whole conversation. */
export function permissionsIn(conversation: Conversation): number {
  return allowedIn(conversation).length
}

function allowedIn({ metadata }: Pick<Conversation, 'metadata'>): readonly StandingPermission[] {
  const known = metadata['approved']
  return Array.isArray(known) ? known.flatMap(readAllowed) : NONE
}

const NONE: readonly StandingPermission[] = []

/** Older stores keep a text with the version behind it: a text that may hold a version is asked for again. */
function readAllowed(stored: Json): StandingPermission[] {
  if (typeof stored === 'string') return stored.includes(' version ') ? [] : [{ request: stored }]
  if (typeof stored !== 'object' || stored === null || Array.isArray(stored)) return []
  const { request, version } = stored as Readonly<Record<string, Json>>
  if (typeof request !== 'string') return []
  return [typeof version === 'string' ? { request, version } : { request }]
}

function isSame(one: StandingPermission, other: StandingPermission): boolean {
  return one.request === other.request && one.version === other.version
}

export interface ApprovalAnswer {
  readonly allowed: boolean
  readonly by: string
  readonly reason: string | null
  /** Allows the same request for the rest of this conversation too. */
  readonly always?: boolean
  /** Allows it with these arguments instead. */
  readonly edit?: Json
  /**
   * The digest of the request that the person saw: the answer is refused where the node asks for another one
   * by now.
   */
  readonly seen?: string
}

/** Applies a person's answer to a waiting node: it runs, or it is rejected and the model reads why. */
export function planApproval(draft: Draft, nodeId: Id, answer: ApprovalAnswer): void {
  const node = draft.findNode(nodeId)
  if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId}.`)
  if (node.state !== 'awaiting_approval') {
    const message = `The node ${nodeId} does not await approval: ${answeredBy(node) ?? `it is ${node.state}`}.`
    throw new ConflictError('conflict', message, { details: { state: node.state, ...lastAnswer(node) } })
  }
  const { seen } = answer
  if (seen !== undefined && !isSeen(approvalOf(node).digest, seen)) throw askedAnew(node, seen)
  if (allowedTooLate(draft, node, answer)) {
    throw new ConflictError('conflict', `The time to answer ${nodeId} is over: it counts as denied.`)
  }
  const { allowed, by, reason, always = false, edit } = answer
  const turn = draft.turn(node.turnId)
  const edited = edit === undefined ? { edited: false } : { edited: true, input: edit }
  draft.event(turn, node.id, { type: 'approval-answer', allowed, by, reason, always, ...edited })
  if (allowed) return allow(draft, node, answer)
  if (approvalOf(node).start?.required === false) return continueWithout(draft, node, answer)
  endNode(draft, node, {
    state: 'rejected',
    failure: { code: 'approval_denied', message: denialText(approvalOf(node), answer) },
    metadata: { ...node.metadata, deniedBy: by, answered: answeredAs(draft, node, answer) },
  })
}

/** Refuses an answer to another request than the node has now, and gives that one. */
export function askedAnew(node: Node, seen: string): ConflictError {
  const { request, reason, input, required, digest, since } = approvalOf(node)
  const now = { request, reason, input, required, seen: digest, since, expiresAt: node.wakeAt }
  const last = lastAnswer(node)
  const isLast = last?.seen !== undefined && isSeen(last.seen, seen)
  const known = isLast ? { ...last } : {}
  const who = isLast ? ` ${answeredBy(node)}.` : ''
  const message = `Nothing was answered: the node ${node.id} asks for something else now, ${request}.${who}`
  return new ConflictError('conflict', message, { details: { state: node.state, ...known, request: now } })
}

function denialText({ request, start }: NodeApproval, { by, reason }: ApprovalAnswer): string {
  if (start === undefined) return reason ?? `${by} denied ${request || 'it'}, and gave no reason.`
  const server = `MCP server \`${start.name}\`, which this ${start.whose} requires`
  if (by === NOBODY) return `Nobody allowed in time to start ${server}.`
  return `You denied starting ${server}${reason === null ? '.' : `: ${reason}`}`
}

/** Runs the node, which now knows the sources it may not start. */
function continueWithout(draft: Draft, node: Node, answer: ApprovalAnswer): void {
  const { by, reason } = answer
  const why = by === NOBODY ? 'nobody allowed in time to start it' : `${by} denied starting it`
  const said = by === NOBODY || reason === null ? why : `${why}: ${reason}`
  const denied = [...deniedIn(node), { digest: approvalOf(node).digest, reason: said }]
  const ready = draft.changeNode(node, {
    state: 'pending',
    wakeAt: null,
    metadata: { ...node.metadata, denied, deniedBy: by, answered: answeredAs(draft, node, answer) },
  })
  resumeClocks(draft, node.turnId)
  if (ready.blockers === 0) draft.claim(ready)
}

/** Why a node must do without an optional request; undefined where nobody has denied exactly this. */
export function deniedTo(node: Node, about: ApprovalSubject): string | undefined {
  const digest = digestOf(about, about.input)
  return deniedIn(node).find((one) => one.digest === digest)?.reason
}

function deniedIn({ metadata }: Node): { readonly digest: string; readonly reason: string }[] {
  const denied = metadata['denied']
  return Array.isArray(denied) ? (denied as { digest: string; reason: string }[]) : []
}

/** An answer after the deadline is too late, even when no process saw it pass. */
function allowedTooLate({ now }: Draft, { wakeAt }: Node, { allowed }: ApprovalAnswer): boolean {
  return allowed && wakeAt !== null && wakeAt <= now
}

const NOBODY = 'nobody'

/** Denies a request that nobody answered in time. */
export function planExpiry(draft: Draft, nodeId: Id): void {
  const node = draft.findNode(nodeId)
  const isDue = node?.state === 'awaiting_approval' && node.wakeAt !== null && node.wakeAt <= draft.now
  if (isDue) planApproval(draft, nodeId, { allowed: false, by: NOBODY, reason: 'Nobody answered in time.' })
}

function allow(draft: Draft, node: Node, answer: ApprovalAnswer): void {
  const { by, always, edit } = answer
  const approval = approvalOf(node)
  const input = edit === undefined ? node.input : editedInput(node, edit)
  // Other arguments may need other permissions, which are known only when the call reads them.
  const isKnown = edit === undefined || approval.request === `tool:${node.input.call?.name}`
  const said = isKnown
    ? { approved: [...onceIn(node), digestOf(approval, edit ?? approval.input)] }
    : { approved: [...onceIn(node), ...callWith(node, edit)], edited: wordOf(approval, answer) }
  const ready = draft.changeNode(node, {
    state: 'pending',
    wakeAt: null,
    input,
    metadata: { ...node.metadata, ...said, approvedBy: by, answered: answeredAs(draft, node, answer) },
  })
  if (always && isKnown) allowAlways(draft, node.conversationId, approval)
  resumeClocks(draft, node.turnId)
  if (ready.blockers === 0) draft.claim(ready)
}

/** A person who allows the call itself with other arguments allows it with those. */
function callWith(node: Node, edit: Json): readonly Json[] {
  const call = { request: `tool:${node.input.call?.name}` }
  return onceIn(node).includes(digestOf(call, approvalOf(node).input)) ? [digestOf(call, edit)] : []
}

/** A person's yes to other arguments, until their required permissions are known. */
interface EditedApproval {
  readonly domain: string
  readonly place: number | null
  /** A hash of the arguments. */
  readonly input: string
  readonly always: boolean
}

function wordOf(
  { request, place }: NodeApproval,
  { always = false, edit = null }: ApprovalAnswer,
): Record<string, Json> {
  const word: EditedApproval = { domain: domainOf(request), place: place ?? null, input: hashOf(edit), always }
  return { ...word }
}

/** The yes that covers a request which replaced the original one, with exactly these arguments. */
function editedWord({ metadata }: Node, { request, place, input }: ApprovalRequest): EditedApproval | undefined {
  const word = metadata['edited'] as unknown as EditedApproval | undefined
  if (word === undefined || word.domain !== domainOf(request) || word.place !== (place ?? null)) return undefined
  return word.input === hashOf(input) ? word : undefined
}

/** Continues at once and uses up the yes. */
function allowEdited(
  draft: Draft,
  node: Node,
  { ask, word }: { readonly ask: ApprovalRequest; readonly word: EditedApproval },
): void {
  const { edited: _, ...metadata } = node.metadata
  const ready = draft.changeNode(node, {
    state: 'pending',
    engineId: null,
    startedAt: null,
    metadata: { ...metadata, approved: [...onceIn(node), digestOf(ask, ask.input)] },
  })
  if (word.always) allowAlways(draft, node.conversationId, ask)
  if (ready.blockers === 0) draft.claim(ready)
}

function domainOf(request: string): string {
  return request.slice(0, request.indexOf(':') + 1)
}

function hashOf(input: Json): string {
  return sha256(canonicalJson(input))
}

function onceIn({ metadata }: Node): readonly Json[] {
  return Array.isArray(metadata['approved']) ? metadata['approved'] : []
}

function allowAlways(draft: Draft, conversationId: Id, { request, version }: StandingPermission): void {
  const conversation = draft.conversation(conversationId)
  const known = conversation.metadata['approved']
  if (allowedIn(conversation).some((one) => isSame(one, version === undefined ? { request } : { request, version })))
    return
  const approved = [...(Array.isArray(known) ? known : []), { request, version: version ?? null }]
  draft.changeConversation(conversation, { metadata: { ...conversation.metadata, approved } })
}

/** The last answer that a node got, as its row keeps it. Older rows have neither the time nor the request. */
interface LastAnswer {
  readonly allowed: boolean
  readonly by: string
  readonly reason: string | null
  readonly always: boolean
  readonly edited: boolean
  readonly at?: number
  /** The digest of the request it answered. */
  readonly seen?: string
}

function answeredAs({ now }: Draft, node: Node, answer: ApprovalAnswer): Json {
  const { allowed, by, reason, always = false, edit } = answer
  return { allowed, by, reason, always, edited: edit !== undefined, at: now, seen: approvalOf(node).digest }
}

function lastAnswer({ metadata }: Node): LastAnswer | undefined {
  return metadata['answered'] as unknown as LastAnswer | undefined
}

/** The last person who answered a node, and how; undefined where nobody was asked. */
function answeredBy(node: Node): string | undefined {
  const answered = lastAnswer(node)
  if (answered === undefined) return undefined
  const { allowed, by, reason, always, edited } = answered
  if (by === NOBODY) return 'it was denied because nobody answered in time'
  const how = [always === true ? 'for the conversation' : '', edited === true ? 'with other arguments' : '']
  const words = [`${by} has ${allowed === true ? 'allowed' : 'denied'} it already`, ...how].filter(
    (word) => word !== '',
  )
  return typeof reason === 'string' ? `${words.join(', ')}: ${reason.replace(/\.$/, '')}` : words.join(', ')
}

function editedInput(node: Node, edit: Json): Node['input'] {
  const { call } = node.input
  if (call === undefined) throw new ConflictError('conflict', `The node ${node.id} has no arguments to edit.`)
  return { ...node.input, call: { ...call, input: edit } }
}
