// Computes the authority of a child: the layers and budgets above it, its own grant, and the limits of its offer.
//
// Called by: `spawn` for each new child; `runtime/authority` for layers of running nodes.
//
// Must stay true:
// - Layers only narrow: a child can do at most what its host can (I1).
// - A child's own grant is frozen with its row; an offer that changes later can narrow it, never widen it.

import { storedProfileLayer } from '../agent/build/conversation-settings.ts'
import type { AgentCore } from '../agent/definition/agent.ts'
import { fileDelegateLayers } from '../agent/definition/file-layers.ts'
import type { NodeRun } from '../agent/hooks/node-run.ts'
import type { Json } from '../base/json.ts'
import { type Budget, childLimits, codeBudget, moneyOf, smallerBudget, treeLimitOf } from '../grant/budget.ts'
import { budgetsIn, ceilingBelow, freezeLayer, layersForChildren, layersForSelf } from '../grant/ceiling.ts'
import {
  DEFAULT_USE,
  delegateLayer,
  type Grant,
  hasSameRules,
  type Layer,
  narrowingLayer,
  ownLayers,
} from '../grant/grant.ts'
import { type Profiles, profileLayer } from '../grant/profile.ts'
import type { Spending, TurnLimits } from '../graph/limits.ts'
import type { Link } from '../graph/rows.ts'
import { type Attempts, attemptLimits } from '../tool/attempts.ts'

/** The parts of an offer that bind its children. */
export interface AuthorityOffer {
  readonly name: string
  readonly grant: Omit<Grant, 'delegate'> | undefined
  readonly budget: Budget | undefined
  readonly profile: string | undefined
  /** Children of the background contract read stored profiles, whose words differ. */
  readonly contract?: Link['contract']
  /** The retry settings of the call and its host. */
  readonly attempts?: Attempts | undefined
}

/** The authority of a child, whatever its input: the layers and budgets above it and its own grant, frozen (I1). */
export interface ChildAuthority {
  /** The ceilings of the host's conversation and turn. The child's turn takes over the latter. */
  readonly above: readonly Json[]
  readonly aboveTurn: readonly Json[]
  readonly depth: number
  readonly agent: AgentCore
  readonly budget: Budget | undefined
  /** The profile of the host's conversation, which also binds everything below it. */
  readonly hostProfile: string | undefined
  readonly ceiling: readonly Json[]
  readonly limits: TurnLimits
  readonly money: Spending['limit'] | null
  readonly treeLimit: number | null
  readonly retry: Link['retry']
  /** The limits in force, in the form a briefing shows to the child. */
  readonly safety: { readonly [name: string]: Json }
  /** The directories the child may use. */
  readonly workspace: readonly string[]
}

/** The last frame of each offer, kept because a host usually delegates again from the same place. */
const lastAuthorities: WeakMap<AuthorityOffer, ChildAuthority> = new WeakMap()

export function childAuthority(
  { agent: host, conversation, turn, profile: hostProfile, home }: NodeRun,
  offer: AuthorityOffer,
  agent: AgentCore,
): ChildAuthority {
  const above = conversation.ceiling
  const aboveTurn = turn.ceiling
  const { depth } = turn.limits
  const { budget, profiles } = home.settings
  const last = lastAuthorities.get(offer)
  const isSame = last?.above === above && last.depth === depth && last.agent === agent && last.budget === budget
  if (last !== undefined && isSame && last.aboveTurn === aboveTurn && last.hostProfile === hostProfile) return last
  const passedOn = delegateLayer(host.name, grantAt(host, conversation.depth), smallerBudget(host.budget, offer.budget))
  const frozen = layersForChildren(above).filter(
    (layer) => layer.budget !== undefined || layer.perDay !== undefined || !hasSameRules(layer, passedOn),
  )
  const turnBelow = ceilingBelow(aboveTurn)
  const budgets = [...[...frozen, passedOn].map((layer) => layer.budget), ...budgetsIn(turnBelow)]
  const own = [agent.reply === null ? agent.budget : codeBudget(agent.budget), offer.budget, budget]
  const stored = hostProfile === undefined ? [] : [storedProfileLayer(hostProfile, profiles)]
  const offered = offerLayers(host.name, offer, profiles)
  const layers = [
    ...frozen,
    passedOn,
    ...fileDelegateLayers(host),
    ...stored,
    ...offered,
    ...ownLayers(agent.name, grantAt(agent, conversation.depth + 1), namedSecrets(agent)),
  ]
  const ceiling = layers.map(freezeLayer)
  const { timeoutMs, retry } = attemptLimits([offer.attempts, agent.delegation, home.settings.attempts])
  const frame: ChildAuthority = {
    above,
    aboveTurn,
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
    workspace: workspaceOf(home.settings, [...ceiling, ...turnBelow]),
  }
  lastAuthorities.set(offer, frame)
  return frame
}

/**
 * Reads the authority an offer gives its subagent. It is frozen when the child starts; later changes can only narrow
 * it.
 */
export function offerLayers(
  hostName: string,
  offer: Pick<AuthorityOffer, 'name' | 'grant' | 'profile' | 'contract'>,
  profiles: Profiles,
): readonly Layer[] {
  const layerOf = offer.contract === 'background' ? storedProfileLayer : profileLayer
  return [
    ...(offer.grant === undefined ? [] : [narrowingLayer(`${hostName}, ${offer.name}`, offer.grant)]),
    ...(offer.profile === undefined ? [] : [layerOf(offer.profile, profiles)]),
  ]
}

function withinTime(limits: TurnLimits, timeoutMs: number | null): TurnLimits {
  return timeoutMs === null || timeoutMs >= limits.wallMs ? limits : { ...limits, wallMs: timeoutMs }
}

function workspaceOf({ files }: NodeRun['home']['settings'], ceiling: readonly Json[]): readonly string[] {
  return files === null ? NONE : files.bind(layersForSelf(ceiling), () => false).allowedDirectories()
}

const NONE: readonly string[] = []

/** The secrets that its code names for its own sources: its own layer allows them, and passes them to nobody. */
export function namedSecrets({ sources }: Pick<AgentCore, 'sources'>): readonly string[] {
  if (sources.size === 0) return NONE
  const named = [...sources.values()].flatMap(({ origin, secrets }) => (origin.by === 'code' ? secrets : NONE))
  return [...new Set(named)]
}

const USE_WITH_FILES: readonly string[] = Object.freeze([...DEFAULT_USE, 'file.*:**'])

/**
 * Returns an agent's own grant at its depth. An agent that inherits files and has no `use` of its own takes over what
 * its host passes on; at the root there is no host and so nothing to take.
 */
export function grantAt({ grant, files }: Pick<AgentCore, 'grant' | 'files'>, depth: number): Grant | undefined {
  if (files === null || depth === 0 || grant?.use !== undefined) return grant
  return { ...grant, use: USE_WITH_FILES }
}
