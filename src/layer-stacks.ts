import type { AgentCore } from './agent/agent.ts'
import { profileOf, storedProfileLayer } from './agent/conversation-settings.ts'
import { fileUseLayers } from './agent/file-layers.ts'
import { grantAt } from './agent/inherited-files.ts'
import type { AgentFinder } from './agent-finder.ts'
import { offerLayers } from './delegation/frame.ts'
import type { ExecutorParts } from './executor-parts.ts'
import { boundBy } from './grant/ceiling.ts'
import { delegateLayer, type Layer, saysSame, useLayer } from './grant/grant.ts'
import type { Profiles } from './grant/profile.ts'
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
   * What was frozen, and what the runtime, its hosts and the agent itself say now: nothing said later widens what was
   * frozen. Under one ceiling it is the same for every node, until an agent of this process changes.
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
    const frozen = boundBy(ceiling)
    const stored = profile === undefined ? [] : [storedProfileLayer(profile, profiles)]
    const own = useLayer(agent.name, grantAt(agent, place.conversation.depth))
    const said = [...this.saidAbove(place), ...stored, ...fileUseLayers(agent), own]
    const live = said.filter((layer) => !frozen.some((one) => saysSame(one, layer)))
    const layers = [...runtimeLayer, ...frozen, ...live]
    this.stacks.set(key, { agent, version, layers, profile })
    return layers
  }

  forget(): void {
    this.stacks = new WeakMap()
  }

  /** What its hosts pass on and how they offer it, as they say it today: a change narrows at the next node. */
  private saidAbove(place: Place): Layer[] {
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
