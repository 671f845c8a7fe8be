import { messageOf, SubAgentUnavailable } from '../base/error.ts'
import { type AnyAgent, isAgent } from './agent.ts'
import { schemaFault } from './schema-fault.ts'

/** The agent that a provider gives. Throws SubAgentUnavailable, with the reason, where it gives none that can be offered. */
export function providedAgent(provider: () => AnyAgent, name: string): AnyAgent {
  const agent = callProvider(provider, name)
  if (!isAgent(agent)) {
    const message = `The subagent "${name}" is not an agent. Make it with agent().`
    throw new SubAgentUnavailable('subagent_unavailable', message)
  }
  checkAgent(agent, `The subagent "${name}"`)
  return agent
}

/** An agent that cannot be offered as a tool: its arguments could not be told to a model. */
export function checkAgent({ input, name }: AnyAgent, where: string): void {
  if (input === null) return
  const fault = schemaFault(input)
  if (fault !== undefined) {
    throw new SubAgentUnavailable('subagent_unavailable', `${where}: the input of "${name}" ${fault}`)
  }
}

/** What was given first is used for the first delegation. */
export function sparing(first: AnyAgent, take: () => AnyAgent): () => AnyAgent {
  let spare: AnyAgent | undefined = first
  return () => {
    const taken = spare ?? take()
    spare = undefined
    return taken
  }
}

function callProvider(provider: () => AnyAgent, name: string): AnyAgent {
  try {
    return provider()
  } catch (error) {
    throw new SubAgentUnavailable('subagent_unavailable', `The provider of "${name}" failed: ${messageOf(error)}`, {
      cause: error,
    })
  }
}
