import { after } from '../base/after.ts'
import { messageOf, SubAgentUnavailable } from '../base/error.ts'
import { type AgentProvider, type AnyAgent, isAgent } from './agent.ts'
import { schemaFault } from './schema-fault.ts'

/** An agent, or the promise of one. */
export type Promised = AnyAgent | Promise<AnyAgent>

/** The agent that a provider gives. Throws or rejects with SubAgentUnavailable where it gives none that can be offered. */
export function providedAgent(provider: AgentProvider, name: string): Promised {
  return after(callProvider(provider, name), (agent) => {
    if (!isAgent(agent)) {
      const message = `The subagent "${name}" is not an agent. Make it with agent().`
      throw new SubAgentUnavailable('subagent_unavailable', message)
    }
    checkAgent(agent, `The subagent "${name}"`)
    return agent
  })
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
export function sparing<Given>(first: Given, take: () => Given): () => Given {
  let spare: Given | undefined = first
  return () => {
    const taken = spare ?? take()
    spare = undefined
    return taken
  }
}

function callProvider(provider: AgentProvider, name: string): unknown {
  const onError = (error: unknown): never => {
    throw new SubAgentUnavailable('subagent_unavailable', `The provider of "${name}" failed: ${messageOf(error)}`, {
      cause: error,
    })
  }
  try {
    const given: unknown = provider()
    return isThenable(given) ? Promise.resolve(given).catch(onError) : given
  } catch (error) {
    return onError(error)
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
