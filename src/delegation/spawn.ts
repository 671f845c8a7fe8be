import type { AnyAgent } from '../agent/agent.ts'
import type { BriefingPlan } from '../agent/briefing.ts'
import { type ReadInput, readDirect, readInput } from '../agent/input.ts'
import type { NodeRun } from '../agent/node-run.ts'
import { after } from '../base/after.ts'
import { messageOf } from '../base/error.ts'
import type { CheckedSchema, Issue } from '../base/schema.ts'
import type { Ask } from '../graph/approve.ts'
import { refusedOutcome } from '../graph/conclude.ts'
import type { Draft } from '../graph/draft.ts'
import type { TurnBriefing } from '../graph/open-turn.ts'
import type { OutcomeRecord } from '../graph/outcome.ts'
import type { Link } from '../graph/rows.ts'
import { type ChildIds, planSpawn, type SpawnRequest } from '../graph/spawn.ts'
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
  /** The agent, or what its provider gave when the host was read. */
  readonly agent: AnyAgent
  /** The agent for one delegation. Throws when there is none to be had. */
  take(): AnyAgent
}

export interface Delegation {
  readonly offer: Offer
  readonly input: unknown
  readonly mode: Link['mode']
  readonly ids: ChildIds
}

export type SpawnResult =
  | { readonly link: Link }
  | { readonly refused: OutcomeRecord; readonly agentName: string; readonly issues: readonly Issue[] }
  | { readonly lost: true }
  /** A person must be asked first: nothing was started. */
  | { readonly ask: Ask }

/**
 * The one way a child is started (I8): the input is checked, the agent is taken, its use is decided, the briefing made,
 * and one commit writes the child. What cannot be done makes no child and costs no model call.
 */
export function spawn(run: NodeRun, delegation: Delegation): SpawnResult | Promise<SpawnResult> {
  return after(readAsked(delegation), (read) => begin(run, delegation, read))
}

function readAsked({ offer, input, mode }: Delegation): ReadInput | Promise<ReadInput> {
  if (offer.contract === 'message') return readMessage(input)
  return mode === 'called' ? readDirect(offer.agent, input) : readInput(offer.agent.name, offer.input, input)
}

type Asked = Extract<ReadInput, { ok: true }>

function begin(run: NodeRun, delegation: Delegation, read: ReadInput): SpawnResult | Promise<SpawnResult> {
  const { agent: host, home, node } = run
  const { offer } = delegation
  const { name } = offer.agent
  if (!read.ok) return refuse('invalid_input', name, read)
  const taken = takeAgent(offer)
  if (typeof taken === 'string') return refuse('unavailable', name, { error: taken })
  const permission = permit(run, { domain: 'agent', name: taken.name }, node.input.call?.input ?? null)
  if (permission.verdict === 'deny') return refuse('denied', taken.name, { error: permission.reason })
  if (permission.verdict === 'ask') return permission
  if (taken.model === null && home.modelOf(host, run) === null) {
    return refuse('unavailable', taken.name, { error: `Neither ${taken.name} nor its host has a model.` })
  }
  const frame = frameOf(run, offer, taken)
  const { safety, workspace } = frame
  return after(brief(run, offer.briefing, { input: read.value, safety, workspace }), (briefed) => {
    if ('failed' in briefed) return refuse('unavailable', taken.name, { error: briefed.failed })
    return commitSpawn(run, taken, requestOf(run, delegation, { read, briefed, frame }))
  })
}

function commitSpawn(run: NodeRun, agent: AnyAgent, request: SpawnRequest): SpawnResult | Promise<SpawnResult> {
  const { home, node } = run
  home.settleChild(request.ids.turn, agent)
  const step = { kind: 'spawn', rootId: node.rootId, plan: (draft: Draft) => planSpawn(draft, request) } as const
  return after(home.ledger.commit(step), (spawned) => {
    if ('link' in spawned) return spawned
    home.leaveChild(request.ids.turn)
    return 'lost' in spawned ? spawned : refuse('unavailable', agent.name, { error: `${spawned.reason}.` })
  })
}

/** A delegation that became no child. */
export function refuse(
  status: 'invalid_input' | 'unavailable' | 'denied',
  agentName: string,
  { error, issues = [] }: { readonly error: string; readonly issues?: readonly Issue[] },
): SpawnResult {
  return { refused: refusedOutcome(status, error), agentName, issues }
}

function takeAgent(offer: Offer): AnyAgent | string {
  try {
    return offer.take()
  } catch (error) {
    return messageOf(error)
  }
}

function readMessage(input: unknown): ReadInput {
  const { message, session_id: session } = (input ?? {}) as Record<string, unknown>
  if (typeof message !== 'string' || message.trim() === '')
    return { ok: false, error: 'Message is required', issues: [] }
  if (session !== undefined && session !== null && typeof session !== 'string') {
    return { ok: false, error: 'session_id must be a string', issues: [] }
  }
  return { ok: true, value: session ? { message, session_id: session } : { message } }
}

interface Prepared {
  readonly read: Asked
  readonly briefed: Briefed
  readonly frame: Frame
}

function requestOf(
  { agent: host, work }: NodeRun,
  { offer, mode, ids }: Delegation,
  { read, briefed, frame: { agent, ceiling, limits, money } }: Prepared,
): SpawnRequest {
  const input = read.value
  const asked = offer.contract === 'message' ? (input as { message: string; session_id?: string }) : null
  return {
    claim: work.claim,
    ids,
    mode,
    contract: offer.contract,
    agent: { name: agent.name, hash: agent.hash },
    hostName: host.name,
    toolName: offer.name,
    input,
    content: asked?.message ?? read.said?.content ?? (typeof input === 'string' ? input : JSON.stringify(input)),
    briefing: briefed.told ?? saidBefore(read),
    delegationContext: briefed.context,
    ceiling,
    limits,
    money,
    onParentClose: offer.onParentClose,
    sessionId: asked?.session_id ?? null,
    isShared: offer.isShared,
  }
}

/** Messages that were given with the last one. */
function saidBefore({ said }: Asked): TurnBriefing | null {
  return said === undefined || said.before.length === 0 ? null : { content: '', messages: said.before }
}
