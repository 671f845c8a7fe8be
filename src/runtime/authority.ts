import { profileOf, storedProfileLayer } from '../agent/build/conversation-settings.ts'
import type { AgentCore } from '../agent/definition/agent.ts'
import { fileUseLayers } from '../agent/definition/file-layers.ts'
import { grantAt, offerLayers } from '../delegation/child-authority.ts'
import { type Budget, childLimits, limitsOf, moneyOf, treeLimitOf } from '../grant/budget.ts'
import { layersForSelf, readCeiling } from '../grant/ceiling.ts'
import { delegateLayer, hasSameRules, type Layer, useLayer } from '../grant/grant.ts'
import type { Profiles } from '../grant/profile.ts'
import { hostOf, type RunPlace } from '../graph/reader.ts'
import type { Conversation } from '../graph/rows.ts'
import type { TurnBounds } from '../rules/turn/open-turn.ts'
import type { Store } from '../store/store.ts'
import type { ExecutorParts } from './parts.ts'
import type { AgentFinder } from './resolve-agent.ts'

interface Stack {
  readonly agent: AgentCore
  /** Of the registry, when it was made. */
  readonly version: number
  readonly layers: readonly Layer[]
  /** Of the conversation it was made for. */
  readonly profile: string | undefined
}

/** Every layer that decides for an agent in a run. */
export class LayerStacks {
  private readonly parts: ExecutorParts
  private readonly maker: AgentFinder
  /** The last stack of an agent at the root, or of one under a ceiling: mostly the next node has the same. */
  private stacks: WeakMap<object, Stack> = new WeakMap()

  constructor(parts: ExecutorParts, maker: AgentFinder) {
    this.parts = parts
    this.maker = maker
  }

  /**
   * What was frozen, and what the runtime, its hosts and the agent itself say now: nothing said later widens what was
   * frozen. Under one ceiling it is the same for every node, until an agent of this process changes.
   */
  of(agent: AgentCore, place: RunPlace): readonly Layer[] {
    const { ceiling } = place.conversation
    const { registry, profiles, runtimeLayer } = this.parts
    const { version } = registry
    const key = ceiling.length === 0 ? agent : ceiling
    const last = this.stacks.get(key)
    const profile = profileOf(place.conversation, profiles)
    const isSame = last !== undefined && last.agent === agent && last.version === version && last.profile === profile
    if (isSame) return last.layers
    const frozen = layersForSelf(ceiling)
    const stored = profile === undefined ? [] : [storedProfileLayer(profile, profiles)]
    const own = useLayer(agent.name, grantAt(agent, place.conversation.depth))
    const said = [...this.saidAbove(place), ...stored, ...fileUseLayers(agent), own]
    const live = said.filter((layer) => !frozen.some((one) => hasSameRules(one, layer)))
    const layers = [...runtimeLayer, ...frozen, ...live]
    this.stacks.set(key, { agent, version, layers, profile })
    return layers
  }

  forget(): void {
    this.stacks = new WeakMap()
  }

  /** What its hosts pass on and how they offer it, as they say it today: a change narrows at the next node. */
  private saidAbove(place: RunPlace): Layer[] {
    const { ledger, profiles } = this.parts
    const said: Layer[] = []
    for (let below = place, host = hostOf(ledger.store, place); host !== undefined; ) {
      const agent = this.maker.of(host.turn.id, host.conversation)
      const name = ledger.store.link(below.turn.id)?.toolName ?? ''
      if (agent !== undefined) {
        const passedOn = delegateLayer(agent.name, grantAt(agent, host.conversation.depth))
        said.push(passedOn, ...offerNow(agent, name, profiles))
      }
      below = host
      host = hostOf(ledger.store, below)
    }
    return said
  }
}

/** Of a tool that offers nothing, or no longer, nothing is said. */
function offerNow({ name: hostName, subagents, eager }: AgentCore, name: string, profiles: Profiles): readonly Layer[] {
  const config = subagents.get(name)?.config ?? eager?.get(name)?.config
  if (config === undefined) return []
  return offerLayers(hostName, { name, grant: config.grant, profile: config.profile }, profiles)
}

export interface BoundBy {
  readonly store: Pick<Store, 'turn' | 'turnsOf'>
  /** Undefined where this process has no code for it. */
  readonly agent: AgentCore | undefined
  /** The application's. */
  readonly budget: Budget | undefined
}

/** What a turn put in by hand may use: as little as its agent, those above it and the application say (I1). */
export function turnBounds(conversation: Conversation, { store, agent, budget }: BoundBy): TurnBounds {
  const { ceiling, parentTurnId } = conversation
  const own = [agent === undefined ? lastBudget(store, conversation) : agent.budget, budget]
  const above = readCeiling(ceiling).map((layer) => layer.budget)
  const host = parentTurnId === null ? undefined : store.turn(parentTurnId)
  const limits = host === undefined ? limitsOf([...own, ...above]) : childLimits(own, above, host.limits.depth)
  return { limits, money: moneyOf([...own, ...above]), treeLimit: treeLimitOf(own) }
}

/** What the last turn was bound by, for those who do not know its agent. */
function lastBudget(store: BoundBy['store'], { id, lane }: Conversation): Budget | undefined {
  const own = store.turnsOf(id, { limit: 1 })
  const [last] = own.length > 0 || lane?.from == null ? own : store.turnsOf(lane.from.laneId, { limit: 1 })
  if (last === undefined) return undefined
  return budgetOf({ limits: last.limits, money: last.spend?.limit ?? null, treeLimit: last.tree?.limit ?? null })
}

export function budgetOf({ limits, money, treeLimit }: TurnBounds): Budget {
  return {
    ...limits,
    ...(money?.tokens == null ? {} : { tokens: money.tokens }),
    ...(money?.usd == null ? {} : { usd: money.usd }),
    ...(treeLimit == null ? {} : { treeConcurrency: treeLimit }),
  }
}
