import type { AgentCore } from '../agent/agent.ts'
import { profileOf, storedProfileLayer } from '../agent/conversation-settings.ts'
import type { NodeRun } from '../agent/node-run.ts'
import type { Json } from '../base/json.ts'
import { type Budget, childLimits, moneyOf, smallerBudget, treeLimitOf } from '../grant/budget.ts'
import { freezeLayer, readCeiling } from '../grant/ceiling.ts'
import { delegateLayer, type Grant, useLayer } from '../grant/grant.ts'
import { profileLayer } from '../grant/profile.ts'
import type { Link, Spend, TurnLimits } from '../graph/rows.ts'
import { type Attempts, attemptLimits } from '../tool/attempts.ts'

/** What of an offer binds its children. */
export interface FrameOffer {
  readonly name: string
  readonly grant: Omit<Grant, 'delegate'> | undefined
  readonly budget: Budget | undefined
  readonly profile: string | undefined
  /** Children of the background contract read of profiles in its own words. */
  readonly contract?: Link['contract']
  /** What the call and its host say of how it is tried. */
  readonly attempts?: Attempts | undefined
}

/** What binds a child, whatever it is asked: the layers and budgets above it, frozen (I1). */
export interface Frame {
  readonly above: readonly Json[]
  readonly depth: number
  readonly agent: AgentCore
  readonly budget: Budget | undefined
  /** The profile of the host's conversation: it binds what is below too. */
  readonly hostProfile: string | undefined
  readonly ceiling: readonly Json[]
  readonly limits: TurnLimits
  readonly money: Spend['limit'] | null
  readonly treeLimit: number | null
  readonly retry: Link['retry']
  /** The limits that somebody has set, as a child may be told them. */
  readonly safety: { readonly [name: string]: Json }
  /** The directories it may use. */
  readonly workspace: readonly string[]
}

/** The last frame of an offer: a host mostly delegates again from where it is. */
const frames: WeakMap<FrameOffer, Frame> = new WeakMap()

export function frameOf(
  { agent: host, conversation, turn, home }: NodeRun,
  offer: FrameOffer,
  agent: AgentCore,
): Frame {
  const above = conversation.ceiling
  const { depth } = turn.limits
  const { budget, profiles } = home
  const hostProfile = profileOf(conversation, profiles)
  const last = frames.get(offer)
  const isSame = last?.above === above && last.depth === depth && last.agent === agent && last.budget === budget
  if (last !== undefined && isSame && last.hostProfile === hostProfile) return last
  const passedOn = delegateLayer(host.name, host.grant, smallerBudget(host.budget, offer.budget))
  const budgets = [...readCeiling(above), passedOn].map((layer) => layer.budget)
  const own = [agent.budget, offer.budget, budget]
  const narrowed = offer.grant === undefined ? [] : [useLayer(`${host.name}, ${offer.name}`, offer.grant)]
  const layerOf = offer.contract === 'background' ? storedProfileLayer : profileLayer
  const stored = hostProfile === undefined ? [] : [storedProfileLayer(hostProfile, profiles)]
  const profile = offer.profile === undefined ? [] : [layerOf(offer.profile, profiles)]
  const filed = host.inline?.layers ?? []
  const ceiling = [...above, ...[passedOn, ...filed, ...stored, ...narrowed, ...profile].map(freezeLayer)]
  const { timeoutMs, retry } = attemptLimits([offer.attempts, agent.delegation, home.attempts])
  const frame: Frame = {
    above,
    depth,
    agent,
    budget,
    hostProfile,
    ceiling,
    limits: withinTime(childLimits(own, budgets, depth), timeoutMs),
    money: moneyOf([...own, ...budgets]),
    treeLimit: treeLimitOf([agent.budget, offer.budget]),
    retry,
    safety: { ...[...own, ...budgets].reduce(smallerBudget, undefined) },
    workspace: workspaceOf(home, ceiling, agent),
  }
  frames.set(offer, frame)
  return frame
}

function withinTime(limits: TurnLimits, timeoutMs: number | null): TurnLimits {
  return timeoutMs === null || timeoutMs >= limits.wallMs ? limits : { ...limits, wallMs: timeoutMs }
}

function workspaceOf({ files }: NodeRun['home'], ceiling: readonly Json[], agent: AgentCore): readonly string[] {
  if (files === null) return NONE
  const layers = [...readCeiling(ceiling), useLayer(agent.name, agent.grant)]
  return files.bind(layers, () => false).allowedDirectories()
}

const NONE: readonly string[] = []
