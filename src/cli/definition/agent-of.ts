import { type AnyAgent, agent, type ModelLike } from '../../index.ts'
import { type AgentFile, modelOf } from '../../recipe/index.ts'
import { rootGrant } from './root-grant.ts'

/** The agent that a definition describes. `model` replaces what the file names. */
export function agentOf(definition: AgentFile, model: ModelLike | undefined): AnyAgent {
  const { name, description, instructions, settings, output, budget, input } = definition
  const chosen = model ?? modelOf(definition, new Map())
  return agent({
    name,
    description,
    instructions,
    settings,
    grant: rootGrant(),
    ...(chosen === null ? {} : { model: chosen }),
    ...(output === null ? {} : { output }),
    ...(input === null ? {} : { input }),
    ...(budget === null ? {} : { budget }),
  }) as AnyAgent
}
