import type { AgentCore, EagerCore } from '../agent/definition/agent.ts'
import type { Offer } from './spawn.ts'
import { type SubagentSource, subagentSource } from './subagent.ts'

/** The subagent that items at one path of an agent's answer start. */
export interface EagerOffer extends EagerCore {
  readonly path: string
  readonly source: SubagentSource
  offer(): Offer
}

/** The offers of each agent, made once: the limits of a child are computed once per offer. */
const offers: WeakMap<AgentCore, readonly EagerOffer[]> = new WeakMap()

export function eagerOffers(agent: AgentCore): readonly EagerOffer[] {
  if (agent.eager === null) return NONE
  const known = offers.get(agent)
  if (known !== undefined) return known
  const made = [...agent.eager].map(([path, core]) => eagerOffer(path, core))
  offers.set(agent, made)
  return made
}

/** Offers a child whose input is the item itself: there is no message and no session to continue. */
function eagerOffer(path: string, core: EagerCore): EagerOffer {
  const source = subagentSource(path, { config: core.config, memberOf: [] })
  let made: Offer | undefined
  return {
    ...core,
    path,
    source,
    offer: () => {
      const entry = source.entry()
      made ??= { ...entry, contract: 'typed', input: entry.agent.input }
      return made
    },
  }
}

const NONE: readonly EagerOffer[] = []
