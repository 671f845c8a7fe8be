// The one way a child starts (I8). `prepare` checks the input, takes the agent, asks the grant, computes the child's
// authority and its briefing; `commitSpawn` then writes child conversation, turn and link in one commit.
//
// Called by: `run/task` (a model's call), `run/eager` (an item of a plan), `called-children` (code that delegates),
// `background/start-child` and `recipe/open/start-open` (agents that a model describes).
//
// Must stay true:
// - A refused delegation makes no child, writes no row of one, and costs no model call.
// - The authority is frozen with the child (I1): a wider definition elsewhere cannot widen it later.
// - `spawnWith` never awaits. If anything must be awaited, asked or refused, the task does it.

import type { AgentOrPromise } from '../agent/build/provided.ts'
import type { AgentCore, AnyAgent } from '../agent/definition/agent.ts'
import type { BriefingPlan } from '../agent/definition/briefing.ts'
import {
  CallerInput,
  earlierMessages,
  type InputResult,
  inputContent,
  readAgentInput,
  readInput,
  type ValidInput,
} from '../agent/definition/input.ts'
import type { NodeRun, ReadyChild } from '../agent/hooks/node-run.ts'
import { unlessAborted } from '../base/abort.ts'
import { messageOf } from '../base/error.ts'
import { isId } from '../base/id.ts'
import { type Json, toJson } from '../base/json.ts'
import { after } from '../base/maybe.ts'
import type { CheckedSchema, Issue } from '../base/schema/schema.ts'
import { agentRequest } from '../grant/request.ts'
import { refusedOutcome } from '../graph/conclude.ts'
import type { Draft } from '../graph/draft.ts'
import type { Forward } from '../graph/event.ts'
import type { OutcomeRecord } from '../graph/outcome.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Conversation, Id, Link } from '../graph/rows.ts'
import { type EagerItem, planEager } from '../rules/delegation/eager.ts'
import type { SessionPlan } from '../rules/delegation/session.ts'
import { countedDocument, readSessionDocument, type SessionDocument } from '../rules/delegation/session-document.ts'
import {
  type BackgroundSpawn,
  type ChildIds,
  planSpawn,
  type SpawnRequest,
  tellLimit,
} from '../rules/delegation/spawn.ts'
import type { ApprovalRequest } from '../rules/turn/approval-of.ts'
import { lookWith } from '../store/look.ts'
import type { SessionSettings, SessionStore } from '../store/session-store.ts'
import { permit } from '../tool/permit.ts'
import { type ChildBriefing, makeBriefing } from './briefing.ts'
import { type AuthorityOffer, type ChildAuthority, childAuthority } from './child-authority.ts'

/** How a host offers one of its subagents. */
export interface Offer extends AuthorityOffer {
  readonly contract: Link['contract']
  /** The schema of the input; null for a text. */
  readonly input: CheckedSchema | null
  readonly briefing: BriefingPlan
  /** Whether all delegations continue in one conversation, rather than each in a fresh one. */
  readonly isShared: boolean
  readonly onParentClose: Link['onParentClose']
  /** How many delegations of this offer, and of offers with the same key, may run at the same time. */
  readonly keyed?: Link['keyed']
  /** If a call waits longer than this, the host continues without it and the child moves to the background. */
  readonly promoteAfterMs?: number | undefined
  /** Settings of the sessions that the host can continue. */
  readonly session?: SessionSettings
  /** The child events that readers of the host see; left out or null: all. */
  readonly forward?: Forward | null
  /** Facts of an open delegation that its result needs from its call. */
  readonly facts?: Json
  /** The agent, or the first one that its provider returned. */
  readonly agent: AnyAgent
  /** Returns the agent for one delegation. Throws or rejects if there is none. */
  take(): AgentOrPromise
}

export interface Delegation {
  readonly offer: Offer
  readonly input: unknown
  readonly mode: Link['mode']
  readonly ids: ChildIds
  /** Settings for mode `background`. */
  readonly background?: BackgroundDelegation
  /** The item of an answer that the child is for, if no call asks for it: the running node is then the answer. */
  readonly eager?: EagerItem
  /** Title and metadata of the new conversation. Default: those of every child. */
  readonly about?: Pick<BackgroundSpawn, 'title' | 'metadata'>
}

export interface BackgroundDelegation extends BackgroundSpawn {
  readonly wake: 'auto' | 'passive'
  readonly briefing: string | null
  /** The child conversation of this host to continue, if any. */
  readonly sessionId: Id | null
}

export type SpawnResult =
  | { readonly link: Link }
  | {
      readonly refused: OutcomeRecord
      readonly agentName: string
      readonly issues: readonly Issue[]
      /** Whether this place held a different delegation before the code ran again. */
      readonly isChanged?: boolean
    }
  | { readonly lost: true }
  /** Nothing was started: a person must be asked first. */
  | { readonly ask: ApprovalRequest }

/**
 * Starts a child; no other code path does (I8). It checks the input, takes the agent, decides on the request, makes the
 * briefing and writes the child in one commit. A refused delegation makes no child and costs no model call.
 */
export function spawn(run: NodeRun, delegation: Delegation): SpawnResult | Promise<SpawnResult> {
  return after(prepare(run, delegation), (made) => ('request' in made ? commitSpawn(run, made) : made))
}

/**
 * Joins code that runs again with a child that it started before. The child goes on as it was started: nothing is checked or
 * decided anew, and it is run by the agent that the code has now.
 */
export async function rejoin(run: NodeRun, { link, offer }: { link: Link; offer: Offer }): Promise<SpawnResult> {
  if (link.outcome !== null) return { link }
  const { agents } = run.home
  const taken = await takeAgent(run, offer)
  if (typeof taken === 'string' || (await orReason(run, () => agents.know(taken))) !== undefined) return { link }
  agents.bind({ id: link.id, rootId: link.rootId }, taken)
  return { link }
}

/**
 * Prepares a child for a task that an answer is about to create, so that one commit writes both. Null if anything has
 * to be awaited, asked or refused first.
 */
export function spawnWith(run: NodeRun, delegation: Delegation, taskId: Id): ReadyChild | null {
  const { offer } = delegation
  if (offer.contract !== 'message' && offer.input !== null && !atOnce.has(offer.input)) return null
  const made = prepare(run, delegation)
  if (made instanceof Promise) {
    if (offer.input !== null) atOnce.delete(offer.input)
    // The task repeats the same request and reports the error.
    made.catch(() => undefined)
    return null
  }
  return 'request' in made ? new PreparedChild(run, taskId, made) : null
}

/** A child that is checked and allowed before its task exists. */
class PreparedChild implements ReadyChild {
  private readonly run: NodeRun
  private readonly taskId: Id
  private readonly made: ReadyRequest

  constructor(run: NodeRun, taskId: Id, made: ReadyRequest) {
    this.run = run
    this.taskId = taskId
    this.made = made
    run.home.live.lastChild = this
  }

  /**
   * Starts the child of a task that this same draft created and claimed; a stored task may belong to another process. The
   * permission holds for the rows that it was given on: on other rows the task asks for it again, and starts the child.
   */
  start(draft: Draft): void {
    const { turn, conversation, home } = this.run
    if (draft.stored.turn(turn.id)?.version !== turn.version) return
    if (draft.stored.conversation(conversation.id)?.version !== conversation.version) return
    const task = draft.started.find(({ id }) => id === this.taskId)
    if (task === undefined || task.engineId === null) return
    const { agent, request } = this.made
    const claim = { nodeId: task.id, rootId: task.rootId, engineId: task.engineId, epoch: task.epoch }
    const child = { id: request.ids.turn, rootId: task.rootId }
    if ('link' in planSpawn(draft, request, claim)) draft.whenStored(() => home.agents.bind(child, agent))
  }
}

type Preparation = SpawnResult | ReadyRequest

/** Everything that must be known before a child can be made. */
interface ReadyRequest {
  readonly agent: AnyAgent
  readonly request: ChildRequest
}

function prepare(run: NodeRun, delegation: Delegation): Preparation | Promise<Preparation> {
  const read = readDelegationInput(delegation)
  if (!(read instanceof Promise) && delegation.offer.input !== null) atOnce.add(delegation.offer.input)
  return after(read, (known) => begin(run, delegation, known))
}

/** Schemas that checked their last input synchronously. A schema that awaits is used by the task only. */
const atOnce: WeakSet<CheckedSchema> = new WeakSet()

function readDelegationInput({ offer, input }: Delegation): InputResult | Promise<InputResult> {
  if (offer.contract === 'message') return readMessage(offer.name, input)
  return input instanceof CallerInput
    ? readAgentInput(offer.agent, input)
    : readInput(offer.agent.name, offer.input, input)
}

function begin(run: NodeRun, delegation: Delegation, read: InputResult): Preparation | Promise<Preparation> {
  const { offer } = delegation
  const { name } = offer.agent
  if (!read.ok) return refuse('invalid_input', name, read)
  return after(takeAgent(run, offer), (taken) => {
    if (typeof taken === 'string') return refuse('unavailable', name, { error: taken })
    return beginAs(taken, run, { delegation, read })
  })
}

interface CheckedDelegation {
  readonly delegation: Delegation
  readonly read: ValidInput
}

function beginAs(taken: AnyAgent, run: NodeRun, checked: CheckedDelegation): Preparation | Promise<Preparation> {
  const { agent: host, home, node } = run
  const asked = checked.delegation.eager?.item ?? node.input.call?.input ?? null
  const permission = permit(run, agentRequest(taken.name), asked)
  if (permission.verdict === 'deny') return refuse('denied', taken.name, { error: permission.reason })
  if (permission.verdict === 'ask') return permission
  if (needsModel(taken, host) && run.model === null) {
    return refuse('unavailable', taken.name, { error: `Neither ${taken.name} nor its host has a model.` })
  }
  return after(
    orReason(run, () => home.agents.know(taken)),
    (reason) => {
      return reason === undefined
        ? beginKnown(taken, run, checked)
        : refuse('unavailable', taken.name, { error: reason })
    },
  )
}

function beginKnown(taken: AnyAgent, run: NodeRun, checked: CheckedDelegation): Preparation | Promise<Preparation> {
  const { delegation, read } = checked
  const { offer } = delegation
  const frame = childAuthority(run, offer, taken)
  const { safety, workspace } = frame
  return after(makeBriefing(run, offer.briefing, { input: read.value, safety, workspace }), (briefed) => {
    if ('failed' in briefed) return refuse('unavailable', taken.name, { error: briefed.failed })
    return after(loadSession(run, offer.session ?? {}, askedSession(offer, read)), (found) => {
      return { agent: taken, request: requestOf(run, delegation, { read, briefed, frame, found }) }
    })
  })
}

/**
 * Tells whether the child needs its host's model. Below a host that is code, the child takes the environment's model.
 */
function needsModel({ model, reply }: AnyAgent, host: AgentCore): boolean {
  return model === null && reply === null && host.reply === null
}

interface ChildRequest extends SpawnRequest {
  readonly eager: EagerItem | null
}

function commitSpawn(run: NodeRun, { agent, request }: ReadyRequest): SpawnResult | Promise<SpawnResult> {
  const { home, node } = run
  home.agents.bind({ id: request.ids.turn, rootId: node.rootId }, agent)
  const { eager } = request
  const plan = (draft: Draft) => {
    const outcome = eager === null ? planSpawn(draft, request) : planEager(draft, eager, request)
    if ('refused' in outcome) tellLimit(draft, request, outcome)
    return outcome
  }
  const step = { kind: 'spawn', rootId: node.rootId, plan } as const
  return after(home.ledger.commit(step), (spawned) => {
    if ('link' in spawned) return spawned
    home.agents.release(request.ids.turn)
    if ('lost' in spawned) return spawned
    const isChanged = spawned.refused === 'changed'
    return { ...refuse('unavailable', agent.name, { error: `${spawned.reason}.` }), isChanged }
  })
}

/** The result of a delegation that made no child. */
export function refuse(
  status: 'invalid_input' | 'unavailable' | 'denied',
  agentName: string,
  { error, issues = [] }: { readonly error: string; readonly issues?: readonly Issue[] },
): Extract<SpawnResult, { refused: OutcomeRecord }> {
  return { refused: refusedOutcome(status, error), agentName, issues }
}

function takeAgent(run: NodeRun, offer: Offer): AnyAgent | string | Promise<AnyAgent | string> {
  return orReason(run, () => offer.take())
}

/** Returns the value, or in words why it cannot be made. A node that was asked to stop reports nothing. */
function orReason<T>({ home, work }: NodeRun, make: () => T | Promise<T>): T | string | Promise<T | string> {
  try {
    const made = make()
    if (!(made instanceof Promise)) return made
    return unlessAborted(made, work.signal).catch((error: unknown) => {
      if (work.stopCause !== null) throw error
      return home.settings.causeOf(error)
    })
  } catch (error) {
    return home.settings.causeOf(error)
  }
}

/** Reads the session that the host's model names. */
function askedSession({ contract }: Offer, { value }: ValidInput): Id | undefined {
  return contract === 'message' ? (value as { session_id?: string }).session_id : undefined
}

function sessionPlan({ contract, session = {} }: Offer, found: FoundSession): SessionPlan | undefined {
  if (contract !== 'message') return undefined
  const { ttlMs = null, max = null, scope = 'host' } = session
  const { document, isElsewhere, ceiling } = found
  return { ttlMs, max, scope, document, isElsewhere, ceiling }
}

interface RequestParts {
  readonly found: FoundSession
  readonly read: ValidInput
  readonly briefed: ChildBriefing
  readonly frame: ChildAuthority
}

function requestOf(
  { agent: host, work, toolkit }: NodeRun,
  { offer, mode, ids, background, eager, about }: Delegation,
  { read, briefed, found, frame: { agent, ceiling, limits, money, treeLimit, retry } }: RequestParts,
): ChildRequest {
  const input = read.value
  const asked = offer.contract === 'message' ? (input as { message: string; session_id?: string }) : null
  return {
    claim: work.claim,
    ids,
    mode,
    contract: offer.contract,
    agent: agent.identity.ref,
    hostName: host.name,
    toolName: offer.name,
    input,
    content: asked?.message ?? read.said?.content ?? inputContent(offer.input, read),
    asked: read.said?.asked,
    briefing: briefed.told ?? earlierMessages(read) ?? background?.briefing ?? null,
    delegationContext: offer.facts === undefined ? briefed.context : { open: offer.facts },
    ceiling,
    limits,
    money,
    onParentClose: offer.onParentClose,
    treeLimit,
    keyed: offer.keyed ?? null,
    retry,
    sessionId: asked?.session_id ?? background?.sessionId ?? null,
    isShared: offer.isShared,
    wake: background?.wake ?? (toolkit.find(TOOL_TO_ANSWER) === undefined ? null : 'auto'),
    promoteAfterMs: offer.promoteAfterMs ?? null,
    background: about === undefined ? (background ?? null) : { result: null, wait: null, ...background, ...about },
    session: sessionPlan(offer, found),
    forward: offer.forward ?? null,
    eager: eager ?? null,
  }
}

/** The tool with which a host answers a child's question. */
export const TOOL_TO_ANSWER = 'subagent_send'

/** Reads the arguments of the message contract, or tells the model what is wrong with them. */
function readMessage(toolName: string, input: unknown): InputResult {
  const { message, session_id: session } = (input ?? {}) as Record<string, unknown>
  if (isLeftOut(message)) return wrong('Message is required')
  if (typeof message !== 'string') return wrong(notAText(toolName, 'message'))
  if (message.trim() === '') return wrong('Message is required')
  if (isLeftOut(session) || session === '') return { ok: true, value: { message } }
  if (typeof session !== 'string') return wrong(notAText(toolName, 'session_id'))
  return { ok: true, value: { message, session_id: session } }
}

/** Treats null as absent: models write null for fields they leave out. */
function isLeftOut(value: unknown): value is undefined | null {
  return value === undefined || value === null
}

function notAText(toolName: string, field: string): string {
  return `Parameter validation failed for tool '${toolName}': ${field} must be a string\nPlease correct the parameters and try again.`
}

function wrong(error: string): InputResult {
  return { ok: false, error, issues: [] }
}

/** The facts about a session that is not among the rows of its host. */
export type FoundSession = Pick<SessionPlan, 'document' | 'isElsewhere' | 'ceiling'>

const NOTHING: FoundSession = { document: null, isElsewhere: false, ceiling: [] }

/**
 * Looks up the session that a model names before anything is planned, because rules see one tree only. Returns nothing
 * if the session cannot be used. Never throws, and does not look for a text that is not one of our ids.
 */
function loadSession(
  run: NodeRun,
  { scope, store }: SessionSettings,
  id: Id | undefined,
): FoundSession | Promise<FoundSession> {
  if (!isId(id)) return NOTHING
  const inRows = lookWith(run.home.ledger.store, id, (tree) => {
    // An id that exists anywhere is not lost, so it is never restored from a document.
    const row = tree.conversation(id)
    if (row === undefined) return undefined
    return scope === 'owner' ? foundElsewhere(run, tree, row) : NOTHING
  })
  return after(inRows, (found) => {
    if (found !== undefined || store === undefined) return found ?? NOTHING
    return after(readBack(run, store, id), sessionFrom)
  })
}

function sessionFrom(document: SessionDocument | null): FoundSession {
  return document === null ? NOTHING : { ...NOTHING, document }
}

/** Reads nothing of a session that belongs to another owner (I9). */
function foundElsewhere({ conversation }: NodeRun, tree: TreeReader, row: Conversation): FoundSession {
  const isOwners = conversation.owner !== null && row.owner === conversation.owner && row.type === 'sub_agent'
  if (!isOwners || row.parentConversationId === conversation.id) return NOTHING
  const document = countedDocument(tree, row.id) ?? null
  return { document, isElsewhere: true, ceiling: row.ceiling }
}

function readBack(
  { home }: NodeRun,
  store: SessionStore,
  id: Id,
): SessionDocument | null | Promise<SessionDocument | null> {
  const failed = (error: unknown) => {
    home.settings.logger.warn(`A session could not be read back: ${messageOf(error)}`, { sessionId: id, error })
    return null
  }
  const read = (found: unknown): SessionDocument | null => {
    if (found === undefined || found === null) return null
    const json = toJson(found)
    const document = json.ok ? readSessionDocument(json.value, id) : json.error
    return typeof document === 'string' ? failed(new Error(document)) : document
  }
  try {
    const found = store.load(id)
    return found instanceof Promise ? found.then(read).catch(failed) : read(found)
  } catch (error) {
    return failed(error)
  }
}
