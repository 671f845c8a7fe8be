import { type AgentCore, isAgent } from './agent.ts'

/** A secret that a source needs and that is not there. */
export interface MissingSecret {
  readonly key: string
  readonly source: string
  readonly agent: string
}

/** What an agent and those it may delegate to need and have no value for, each key once: ask for it before a run. */
export function missingSecrets(agent: AgentCore): MissingSecret[] {
  const found = new Map<string, MissingSecret>()
  collect(agent, found, new Set())
  return [...found.values()]
}

/** Agents that a function gives are not known before they are used. */
function collect(agent: AgentCore, found: Map<string, MissingSecret>, seen: Set<AgentCore>): void {
  if (seen.has(agent)) return
  seen.add(agent)
  for (const [source, { missing }] of agent.sources) {
    for (const key of missing()) if (!found.has(key)) found.set(key, { key, source, agent: agent.name })
  }
  for (const { config } of agent.subagents.values()) if (isAgent(config.agent)) collect(config.agent, found, seen)
}
