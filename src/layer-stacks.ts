import type { AgentCore } from './agent/agent.ts'
import { profileOf, storedProfileLayer } from './agent/conversation-settings.ts'
import type { AgentFinder } from './agent-finder.ts'
import type { ExecutorParts } from './executor-parts.ts'
import { readCeiling } from './grant/ceiling.ts'
import { delegateLayer, type Layer, saysSame, useLayer } from './grant/grant.ts'
import { hostOf, type Place } from './graph/child/host-of.ts'

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
   * The runtime's layers, what was frozen, what its hosts say now, its own. Under one ceiling it is the same for every
   * node, until an agent of this process changes.
   */
  of(agent: AgentCore, place: Place): readonly Layer[] {
    const { ceiling } = place.conversation
    const { registry, profiles, runtimeLayer } = this.parts
    const { version } = registry
    const key = ceiling.length === 0 ? agent : ceiling
    const last = this.stacks.get(key)
    const profile = profileOf(place.conversation, profiles)
    const isSame = last !== undefined && last.agent === agent && last.version === version && last.profile === profile
    if (isSame) return last.layers
    const frozen = readCeiling(ceiling)
    const own = useLayer(agent.name, agent.grant)
    const stored = profile === undefined ? [] : [storedProfileLayer(profile, profiles)]
    const narrowed = agent.inline?.layers ?? []
    const live = this.live(frozen, place)
    const layers = [...runtimeLayer, ...frozen, ...live, ...stored, ...narrowed, own]
    this.stacks.set(key, { agent, version, layers, profile })
    return layers
  }

  forget(): void {
    this.stacks = new WeakMap()
  }

  /** What hosts pass on today, where it is not what was frozen: a change narrows at the next node, and never widens. */
  private live(ceiling: readonly Layer[], place: Place): Layer[] {
    const { store } = this.parts.ledger
    const live: Layer[] = []
    for (let host = hostOf(store, place); host !== undefined; host = hostOf(store, host)) {
      const agent = this.maker.of(host.turn.id, host.conversation)
      if (agent === undefined) continue
      const layer = delegateLayer(agent.name, agent.grant)
      if (!ceiling.some((frozen) => saysSame(frozen, layer))) live.push(layer)
    }
    return live
  }
}
