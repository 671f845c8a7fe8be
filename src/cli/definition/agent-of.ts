import { type AnyAgent, agent, type ModelLike, type Subagents } from '../../index.ts'
import type { AgentFile } from '../../recipe/index.ts'
import { rootGrant } from './root-grant.ts'

/** The agent that a definition describes. Without a model it has that of its host. */
export function agentOf(definition: AgentFile, model: ModelLike | undefined, subagents: Subagents = {}): AnyAgent {
  const { name, description, instructions, settings, output, budget, input } = definition
  return agent({
    name,
    description,
    instructions,
    settings,
    subagents,
    grant: rootGrant(),
    ...(model === undefined ? {} : { model }),
    ...(output === null ? {} : { output }),
    ...(input === null ? {} : { input }),
    ...(budget === null ? {} : { budget }),
  }) as AnyAgent
}
