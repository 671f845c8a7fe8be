import type { AgentCore, AnyAgent } from '../agent/definition.ts'
import { type ReadInput, readInput } from '../agent/input.ts'
import type { NodeRun } from '../agent/node-run.ts'
import { after } from '../base/after.ts'
import { messageOf } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import type { CheckedSchema } from '../base/schema.ts'
import { type Budget, childLimits, moneyOf, smallerBudget } from '../grant/budget.ts'
import { freezeLayer, readCeiling } from '../grant/ceiling.ts'
import { delegateLayer } from '../grant/grant.ts'
import { profileLayer } from '../grant/profile.ts'
import type { Ask } from '../graph/approve.ts'
import { refusedOutcome } from '../graph/conclude.ts'
import type { Draft } from '../graph/draft.ts'
import type { OutcomeRecord } from '../graph/outcome.ts'
import type { Link, Spend, TurnLimits } from '../graph/rows.ts'
import { type ChildIds, planSpawn, type SpawnRequest } from '../graph/spawn.ts'
import { permit } from '../tool/permit.ts'
import { briefingText, snapshot } from './briefing.ts'

/** How a host offers one of its subagents. */
export interface Offer {
  /** The tool's name. */
  readonly name: string
  readonly contract: Link['contract']
  /** What its input must be; null for a text. */
  readonly input: CheckedSchema | null
  readonly briefing: 'none' | 'snapshot'
  readonly budget: Budget | undefined
  readonly profile: string | undefined
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
  | { readonly refused: OutcomeRecord; readonly agentName: string }
  | { readonly lost: true }
  /** A person must be asked first: nothing was started. */
  | { readonly ask: Ask }

/**
 * The one way a child is started (I8): the input is checked, the agent is taken, its use is decided, the briefing made,
 * and one commit writes the child. What cannot be done makes no child and costs no model call.
 */
export function spawn(run: NodeRun, delegation: Delegation): SpawnResult | Promise<SpawnResult> {
  const { offer, input } = delegation
  const read = offer.contract === 'message' ? readMessage(input) : readInput(offer.agent.name, offer.input, input)
  return after(read, (checked) => begin(run, delegation, checked))
}

function begin(run: NodeRun, delegation: Delegation, input: ReadInput): SpawnResult | Promise<SpawnResult> {
  const { agent: host, home, node } = run
  const { name } = delegation.offer.agent
  if (!input.ok) return refuse('invalid_input', name, input.error)
  const taken = takeAgent(delegation.offer)
  if (typeof taken === 'string') return refuse('unavailable', name, taken)
  const permission = permit(run, { domain: 'agent', name: taken.name }, node.input.call?.input ?? null)
  if (permission.verdict === 'deny') return refuse('denied', taken.name, permission.reason)
  if (permission.verdict === 'ask') return permission
  if (taken.model === null && home.modelOf(host, run) === null) {
    return refuse('unavailable', taken.name, `Neither ${taken.name} nor its host has a model.`)
  }
  const request = requestOf(run, delegation, { agent: taken, input: input.value })
  home.settleChild(request.ids.turn, taken)
  const step = { kind: 'spawn', rootId: node.rootId, plan: (draft: Draft) => planSpawn(draft, request) } as const
  return after(home.ledger.commit(step), (spawned) => {
    if ('link' in spawned) return spawned
    home.leaveChild(request.ids.turn)
    return 'lost' in spawned ? spawned : refuse('unavailable', taken.name, `${spawned.reason}.`)
  })
}

/** A delegation that became no child. */
export function refuse(
  status: 'invalid_input' | 'unavailable' | 'denied',
  agentName: string,
  message: string,
): SpawnResult {
  return { refused: refusedOutcome(status, message), agentName }
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

function requestOf(
  run: NodeRun,
  { offer, mode, ids }: Delegation,
  { agent, input }: { agent: AgentCore; input: Json },
): SpawnRequest {
  const { node, agent: host, home, work } = run
  const context = offer.briefing === 'none' ? null : snapshot(home.ledger.store, node, input)
  const { ceiling, limits, money } = frameOf(run, offer, agent)
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
    content: asked?.message ?? (typeof input === 'string' ? input : JSON.stringify(input)),
    briefing: context === null ? null : briefingText(host.name, context),
    delegationContext: context ?? { input_payload: input },
    ceiling,
    limits,
    money,
    onParentClose: offer.onParentClose,
    sessionId: asked?.session_id ?? null,
    isShared: offer.isShared,
  }
}

/** What binds a child, whatever it is asked: the layers and budgets above it, frozen (I1). */
interface Frame {
  readonly above: readonly Json[]
  readonly depth: number
  readonly agent: AgentCore
  readonly budget: Budget | undefined
  readonly ceiling: readonly Json[]
  readonly limits: TurnLimits
  readonly money: Spend['limit'] | null
}

/** The last frame of an offer: a host mostly delegates again from where it is. */
const frames: WeakMap<Offer, Frame> = new WeakMap()

function frameOf({ agent: host, conversation, turn, home }: NodeRun, offer: Offer, agent: AgentCore): Frame {
  const above = conversation.ceiling
  const { depth } = turn.limits
  const { budget } = home
  const last = frames.get(offer)
  const isSame = last?.above === above && last.depth === depth && last.agent === agent && last.budget === budget
  if (last !== undefined && isSame) return last
  const passedOn = delegateLayer(host.name, host.grant, smallerBudget(host.budget, offer.budget))
  const budgets = [...readCeiling(above), passedOn].map((layer) => layer.budget)
  const limits = childLimits([agent.budget, offer.budget, budget], budgets, depth)
  const money = moneyOf([agent.budget, offer.budget, budget, ...budgets])
  const profile = offer.profile === undefined ? [] : [freezeLayer(profileLayer(offer.profile, home.profiles))]
  const frame = { above, depth, agent, budget, ceiling: [...above, freezeLayer(passedOn), ...profile], limits, money }
  frames.set(offer, frame)
  return frame
}
