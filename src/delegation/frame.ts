import { storedProfileLayer } from '../agent/build/conversation-settings.ts'
import type { AgentCore } from '../agent/definition/agent.ts'
import { fileDelegateLayers } from '../agent/definition/file-layers.ts'
import type { NodeRun } from '../agent/hooks/node-run.ts'
import type { Json } from '../base/json.ts'
import { type Budget, childLimits, moneyOf, smallerBudget, treeLimitOf } from '../grant/budget.ts'
import { boundBelow, boundBy, freezeLayer } from '../grant/ceiling.ts'
import {
  DEFAULT_USE,
  delegateLayer,
  type Grant,
  type Layer,
  narrowingLayer,
  ownLayers,
  saysSame,
} from '../grant/grant.ts'
import { type Profiles, profileLayer } from '../grant/profile.ts'
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

/** What binds a child, whatever it is asked: the layers and budgets above it and its own grant, frozen (I1). */
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
  { agent: host, conversation, turn, profile: hostProfile, home }: NodeRun,
  offer: FrameOffer,
  agent: AgentCore,
): Frame {
  const above = conversation.ceiling
  const { depth } = turn.limits
  const { budget, profiles } = home.settings
  const last = frames.get(offer)
  const isSame = last?.above === above && last.depth === depth && last.agent === agent && last.budget === budget
  if (last !== undefined && isSame && last.hostProfile === hostProfile) return last
  const passedOn = delegateLayer(host.name, grantAt(host, conversation.depth), smallerBudget(host.budget, offer.budget))
  const frozen = boundBelow(above).filter((layer) => layer.budget !== undefined || !saysSame(layer, passedOn))
  const budgets = [...frozen, passedOn].map((layer) => layer.budget)
  const own = [agent.budget, offer.budget, budget]
  const stored = hostProfile === undefined ? [] : [storedProfileLayer(hostProfile, profiles)]
  const offered = offerLayers(host.name, offer, profiles)
  const layers = [
    ...frozen,
    passedOn,
    ...fileDelegateLayers(host),
    ...stored,
    ...offered,
    ...ownLayers(agent.name, grantAt(agent, conversation.depth + 1)),
  ]
  const ceiling = layers.map(freezeLayer)
  const { timeoutMs, retry } = attemptLimits([offer.attempts, agent.delegation, home.settings.attempts])
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
    workspace: workspaceOf(home.settings, ceiling),
  }
  frames.set(offer, frame)
  return frame
}

/** What an offer says of its subagent's authority: as it is made it is frozen, and as it is said later it narrows. */
export function offerLayers(hostName: string, offer: OfferGrant, profiles: Profiles): readonly Layer[] {
  const layerOf = offer.contract === 'background' ? storedProfileLayer : profileLayer
  return [
    ...(offer.grant === undefined ? [] : [narrowingLayer(`${hostName}, ${offer.name}`, offer.grant)]),
    ...(offer.profile === undefined ? [] : [layerOf(offer.profile, profiles)]),
  ]
}

type OfferGrant = Pick<FrameOffer, 'name' | 'grant' | 'profile' | 'contract'>

function withinTime(limits: TurnLimits, timeoutMs: number | null): TurnLimits {
  return timeoutMs === null || timeoutMs >= limits.wallMs ? limits : { ...limits, wallMs: timeoutMs }
}

function workspaceOf({ files }: NodeRun['home']['settings'], ceiling: readonly Json[]): readonly string[] {
  return files === null ? NONE : files.bind(boundBy(ceiling), () => false).allowedDirectories()
}

const NONE: readonly string[] = []

const USE_WITH_FILES: readonly string[] = Object.freeze([...DEFAULT_USE, 'file.*:**'])

/**
 * An agent's own grant where it runs. One that inherits files and does not say itself what it may use takes what its host
 * passes on of them; at the root there is no host, and nothing to take.
 */
export function grantAt({ grant, files }: Pick<AgentCore, 'grant' | 'files'>, depth: number): Grant | undefined {
  if (files === null || depth === 0 || grant?.use !== undefined) return grant
  return { ...grant, use: USE_WITH_FILES }
}
