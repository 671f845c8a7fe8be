import type { Promised } from '../agent/build/provided.ts'
import type { AgentCore, AnyAgent } from '../agent/definition/agent.ts'
import type { BriefingPlan } from '../agent/definition/briefing.ts'
import {
  Direct,
  type Given,
  inputContent,
  type ReadInput,
  readGiven,
  readInput,
  saidBefore,
} from '../agent/definition/input.ts'
import type { Home, NodeRun, ReadyChild } from '../agent/hooks/node-run.ts'
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
import type { Conversation, Id, Link } from '../graph/rows.ts'
import { type EagerItem, planEager } from '../rules/delegation/eager.ts'
import type { SessionPlan } from '../rules/delegation/session.ts'
import { countedDocument, readSessionDocument, type SessionDocument } from '../rules/delegation/session-document.ts'
import { type BackgroundSpawn, type ChildIds, planSpawn, type SpawnRequest } from '../rules/delegation/spawn.ts'
import type { Ask } from '../rules/turn/approve.ts'
import type { SessionSettings, SessionStore } from '../store/session-store.ts'
import { permit } from '../tool/permit.ts'
import { type Briefed, brief } from './briefing.ts'
import { type Frame, type FrameOffer, frameOf } from './frame.ts'

/** How a host offers one of its subagents. */
export interface Offer extends FrameOffer {
  readonly contract: Link['contract']
  /** What its input must be; null for a text. */
  readonly input: CheckedSchema | null
  readonly briefing: BriefingPlan
  /** Its delegations go on in one conversation, instead of a fresh one each. */
  readonly isShared: boolean
  readonly onParentClose: Link['onParentClose']
  /** How many of them, and of those that share its key, may run at the same time. */
  readonly keyed?: Link['keyed']
  /** A call that waits longer goes on without its child, which goes on in the background. */
  readonly promoteAfterMs?: number | undefined
  /** For conversations that its host goes on with. */
  readonly session?: SessionSettings
  /** What readers of its host see of it; left out or null: all. */
  readonly forward?: Forward | null
  /** Of an open delegation: what its result needs to know of its call. */
  readonly facts?: Json
  /** The agent, or what its provider gave when the host was read. */
  readonly agent: AnyAgent
  /** The agent for one delegation. Throws or rejects when there is none to be had. */
  take(): Promised
}

export interface Delegation {
  readonly offer: Offer
  readonly input: unknown
  readonly mode: Link['mode']
  readonly ids: ChildIds
  /** For mode `background`. */
  readonly background?: BackgroundDelegation
  /** The item of an answer that it is for, instead of a call: the node that runs is the answer. */
  readonly eager?: EagerItem
  /** Of its new conversation, for people and programs; left out: as of every child. */
  readonly about?: Pick<BackgroundSpawn, 'title' | 'metadata'>
}

export interface BackgroundDelegation extends BackgroundSpawn {
  readonly wake: 'auto' | 'passive'
  readonly briefing: string | null
  /** A child of this host to go on with. */
  readonly sessionId: Id | null
}

export type SpawnResult =
  | { readonly link: Link }
  | {
      readonly refused: OutcomeRecord
      readonly agentName: string
      readonly issues: readonly Issue[]
      /** The same place had another delegation before the code ran again. */
      readonly isChanged?: boolean
    }
  | { readonly lost: true }
  /** A person must be asked first: nothing was started. */
  | { readonly ask: Ask }

/**
 * The one way a child is started (I8): the input is checked, the agent is taken, its use is decided, the briefing made,
 * and one commit writes the child. What cannot be done makes no child and costs no model call.
 */
export function spawn(run: NodeRun, delegation: Delegation): SpawnResult | Promise<SpawnResult> {
  return after(prepare(run, delegation), (made) => ('request' in made ? commitSpawn(run, made) : made))
}

/**
 * The same for the task that an answer is about to make: the commit of both is one. Null where anything is to be awaited,
 * asked or refused first.
 */
export function spawnWith(run: NodeRun, delegation: Delegation, taskId: Id): ReadyChild | null {
  const { offer } = delegation
  if (offer.contract !== 'message' && !readAtOnce.has(offer)) return null
  const made = prepare(run, delegation)
  if (made instanceof Promise) {
    readAtOnce.delete(offer)
    // The task asks for the same once more, and tells what went wrong.
    made.catch(() => undefined)
    return null
  }
  return 'request' in made ? new PreparedChild(run.home, taskId, made) : null
}

/** What was allowed a moment ago holds for the first plan only: planned again, on other rows, it is left to the task. */
class PreparedChild implements ReadyChild {
  private readonly home: Home
  private readonly taskId: Id
  private readonly made: Ready
  private state: 'new' | 'settled' | 'left' = 'new'

  constructor(home: Home, taskId: Id, made: Ready) {
    this.home = home
    this.taskId = taskId
    this.made = made
  }

  /** For a task that this very draft has made and claimed: one that is stored may be another's. */
  start(draft: Draft): void {
    if (this.state !== 'new') return this.leave()
    const { agent, request } = this.made
    const task = draft.started.find(({ id }) => id === this.taskId)
    if (task === undefined || task.engineId === null) return
    this.home.agents.bind(request.ids.turn, agent)
    this.state = 'settled'
    const claim = { nodeId: task.id, engineId: task.engineId, epoch: task.epoch }
    if (!('link' in planSpawn(draft, { ...request, claim }))) this.leave()
  }

  leave(): void {
    if (this.state === 'settled') this.home.agents.release(this.made.request.ids.turn)
    this.state = 'left'
  }
}

type Prepared = SpawnResult | Ready

/** All there is to know of a child before it is made. */
interface Ready {
  readonly agent: AnyAgent
  readonly request: Request
}

function prepare(run: NodeRun, delegation: Delegation): Prepared | Promise<Prepared> {
  const read = readAsked(delegation)
  if (!(read instanceof Promise)) readAtOnce.add(delegation.offer)
  return after(read, (known) => begin(run, delegation, known))
}

/** Whose last input was read without waiting: a schema that waits is asked by the task only. */
const readAtOnce: WeakSet<Offer> = new WeakSet()

function readAsked({ offer, input }: Delegation): ReadInput | Promise<ReadInput> {
  if (offer.contract === 'message') return readMessage(offer.name, input)
  return input instanceof Direct ? readGiven(offer.agent, input) : readInput(offer.agent.name, offer.input, input)
}

function begin(run: NodeRun, delegation: Delegation, read: ReadInput): Prepared | Promise<Prepared> {
  const { offer } = delegation
  const { name } = offer.agent
  if (!read.ok) return refuse('invalid_input', name, read)
  return after(takeAgent(run, offer), (taken) => {
    if (typeof taken === 'string') return refuse('unavailable', name, { error: taken })
    return beginAs(taken, run, { ...delegation, read })
  })
}

interface Asked extends Delegation {
  readonly read: Given
}

function beginAs(taken: AnyAgent, run: NodeRun, delegation: Asked): Prepared | Promise<Prepared> {
  const { agent: host, home, node } = run
  const asked = delegation.eager?.item ?? node.input.call?.input ?? null
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
        ? beginKnown(taken, run, delegation)
        : refuse('unavailable', taken.name, { error: reason })
    },
  )
}

function beginKnown(taken: AnyAgent, run: NodeRun, delegation: Asked): Prepared | Promise<Prepared> {
  const { offer, read } = delegation
  const frame = frameOf(run, offer, taken)
  const { safety, workspace } = frame
  return after(brief(run, offer.briefing, { input: read.value, safety, workspace }), (briefed) => {
    if ('failed' in briefed) return refuse('unavailable', taken.name, { error: briefed.failed })
    return after(loadSession(run, offer.session ?? {}, askedSession(offer, read)), (found) => {
      return { agent: taken, request: requestOf(run, delegation, { read, briefed, frame, found }) }
    })
  })
}

/** A host that is code has asked for none yet: the child looks for the one of the environment itself. */
function needsModel({ model, reply }: AnyAgent, host: AgentCore): boolean {
  return model === null && reply === null && host.reply === null
}

interface Request extends SpawnRequest {
  readonly eager: EagerItem | null
}

function commitSpawn(run: NodeRun, { agent, request }: Ready): SpawnResult | Promise<SpawnResult> {
  const { home, node } = run
  home.agents.bind(request.ids.turn, agent)
  const { eager } = request
  const plan = (draft: Draft) => (eager === null ? planSpawn(draft, request) : planEager(draft, eager, request))
  const step = { kind: 'spawn', rootId: node.rootId, plan } as const
  return after(home.ledger.commit(step), (spawned) => {
    if ('link' in spawned) return spawned
    home.agents.release(request.ids.turn)
    if ('lost' in spawned) return spawned
    const isChanged = spawned.refused === 'changed'
    return { ...refuse('unavailable', agent.name, { error: `${spawned.reason}.` }), isChanged }
  })
}

/** A delegation that became no child. */
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

/** What is made, or in words why it cannot be. One that is asked to stop meanwhile has nothing to say. */
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

/** The session that a host's model names. */
function askedSession({ contract }: Offer, { value }: Given): Id | undefined {
  return contract === 'message' ? (value as { session_id?: string }).session_id : undefined
}

function sessionPlan({ contract, session = {} }: Offer, found: FoundSession): SessionPlan | undefined {
  if (contract !== 'message') return undefined
  const { ttlMs = null, max = null, scope = 'host' } = session
  const { document, isElsewhere, ceiling } = found
  return { ttlMs, max, scope, document, isElsewhere, ceiling }
}

interface Parts {
  readonly found: FoundSession
  readonly read: Given
  readonly briefed: Briefed
  readonly frame: Frame
}

function requestOf(
  { agent: host, work, toolkit }: NodeRun,
  { offer, mode, ids, background, eager, about }: Delegation,
  { read, briefed, found, frame: { agent, ceiling, limits, money, treeLimit, retry } }: Parts,
): Request {
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
    briefing: briefed.told ?? saidBefore(read) ?? background?.briefing ?? null,
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

/** A host with this tool can answer a child that asks. */
export const TOOL_TO_ANSWER = 'subagent_send'

/** The arguments of the message contract, or the words that tell a model what is wrong with them. */
function readMessage(toolName: string, input: unknown): ReadInput {
  const { message, session_id: session } = (input ?? {}) as Record<string, unknown>
  if (isLeftOut(message)) return wrong('Message is required')
  if (typeof message !== 'string') return wrong(notAText(toolName, 'message'))
  if (message.trim() === '') return wrong('Message is required')
  if (isLeftOut(session) || session === '') return { ok: true, value: { message } }
  if (typeof session !== 'string') return wrong(notAText(toolName, 'session_id'))
  return { ok: true, value: { message, session_id: session } }
}

/** Models write null for what they leave out. */
function isLeftOut(value: unknown): value is undefined | null {
  return value === undefined || value === null
}

function notAText(toolName: string, field: string): string {
  return `Parameter validation failed for tool '${toolName}': ${field} must be a string\nPlease correct the parameters and try again.`
}

function wrong(error: string): ReadInput {
  return { ok: false, error, issues: [] }
}

/** What is known of a session that its host's own rows do not hold. */
export type FoundSession = Pick<SessionPlan, 'document' | 'isElsewhere' | 'ceiling'>

const NOTHING: FoundSession = { document: null, isElsewhere: false, ceiling: [] }

/**
 * What can be found of the session that a model names, before anything is planned: rules see one tree. Nothing when it
 * cannot be used. Never throws. What a model says that is no id of ours is not even looked for.
 */
function loadSession(
  run: NodeRun,
  { scope, store }: SessionSettings,
  id: Id | undefined,
): FoundSession | Promise<FoundSession> {
  if (!isId(id)) return NOTHING
  const { store: rows } = run.home.ledger
  const row = rows.conversation(id)
  // An id that lives anywhere is not gone: it is never read back from a document.
  if (row !== undefined) return scope === 'owner' ? foundElsewhere(run, row) : NOTHING
  return store === undefined ? NOTHING : after(readBack(run, store, id), asFound)
}

function asFound(document: SessionDocument | null): FoundSession {
  return document === null ? NOTHING : { ...NOTHING, document }
}

/** I9: of what is another owner's nothing is read. */
function foundElsewhere({ home, conversation }: NodeRun, row: Conversation): FoundSession {
  const isOwners = conversation.owner !== null && row.owner === conversation.owner && row.type === 'sub_agent'
  if (!isOwners || row.parentConversationId === conversation.id) return NOTHING
  const document = countedDocument(home.ledger.store, row.id) ?? null
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
