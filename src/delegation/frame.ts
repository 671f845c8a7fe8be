import type { AgentCore } from '../agent/agent.ts'
import type { NodeRun } from '../agent/node-run.ts'
import type { Json } from '../base/json.ts'
import { type Budget, childLimits, moneyOf, smallerBudget } from '../grant/budget.ts'
import { freezeLayer, readCeiling } from '../grant/ceiling.ts'
import { delegateLayer, type Grant, useLayer } from '../grant/grant.ts'
import { profileLayer } from '../grant/profile.ts'
import type { Spend, TurnLimits } from '../graph/rows.ts'

/** What of an offer binds its children. */
export interface FrameOffer {
  readonly name: string
  readonly grant: Omit<Grant, 'delegate'> | undefined
  readonly budget: Budget | undefined
  readonly profile: string | undefined
}

/** What binds a child, whatever it is asked: the layers and budgets above it, frozen (I1). */
export interface Frame {
  readonly above: readonly Json[]
  readonly depth: number
  readonly agent: AgentCore
  readonly budget: Budget | undefined
  readonly ceiling: readonly Json[]
  readonly limits: TurnLimits
  readonly money: Spend['limit'] | null
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
  const last = frames.get(offer)
  const isSame = last?.above === above && last.depth === depth && last.agent === agent && last.budget === budget
  if (last !== undefined && isSame) return last
  const passedOn = delegateLayer(host.name, host.grant, smallerBudget(host.budget, offer.budget))
  const budgets = [...readCeiling(above), passedOn].map((layer) => layer.budget)
  const own = [agent.budget, offer.budget, budget]
  const narrowed = offer.grant === undefined ? [] : [useLayer(`${host.name}, ${offer.name}`, offer.grant)]
  const profile = offer.profile === undefined ? [] : [profileLayer(offer.profile, profiles)]
  const ceiling = [...above, ...[passedOn, ...narrowed, ...profile].map(freezeLayer)]
  const frame: Frame = {
    above,
    depth,
    agent,
    budget,
    ceiling,
    limits: childLimits(own, budgets, depth),
    money: moneyOf([...own, ...budgets]),
    safety: { ...[...own, ...budgets].reduce(smallerBudget, undefined) },
    workspace: workspaceOf(home, ceiling, agent),
  }
  frames.set(offer, frame)
  return frame
}

function workspaceOf({ files }: NodeRun['home'], ceiling: readonly Json[], agent: AgentCore): readonly string[] {
  if (files === null) return NONE
  const layers = [...readCeiling(ceiling), useLayer(agent.name, agent.grant)]
  return files.bind(layers, () => false).allowedDirectories()
}

const NONE: readonly string[] = []
