import { type ModelLike, toModel } from '../model/to-model.ts'
import { type AgentCore, type AnyAgent, markAgent, type Tools } from './agent.ts'
import { withHash } from './definition.ts'
import { readTools } from './read-tools.ts'

export interface Changes {
  readonly name?: string | undefined
  readonly model?: ModelLike | undefined
  /** Instead of all it has. */
  readonly tools?: Tools | undefined
}

/** An agent with another name, model or set of tools: its hash is another too. The agent itself where nothing changes. */
export function variant(agent: AnyAgent, { name, model, tools }: Changes): AnyAgent {
  if (name === undefined && model === undefined && tools === undefined) return agent
  const changed: Omit<AgentCore, 'hash'> = {
    ...agent,
    name: name ?? agent.name,
    model: toModel(model) ?? agent.model,
    tools: tools === undefined ? agent.tools : readTools(tools, `agent "${agent.name}"`),
  }
  return markAgent(withHash(changed)) as AnyAgent
}
