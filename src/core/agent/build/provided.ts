import { messageOf, SubAgentUnavailable } from '../../base/error.ts'
import { isRecord } from '../../base/json.ts'
import { after } from '../../base/maybe.ts'
import type { JsonSchema } from '../../base/schema/schema.ts'
import { type AgentProvider, type AnyAgent, isAgent } from '../definition/agent.ts'

/** An agent, or the promise of one. */
export type AgentOrPromise = AnyAgent | Promise<AnyAgent>

/**
 * Returns the agent of a provider. Throws or rejects with SubAgentUnavailable where it has none that can be offered.
 */
export function providedAgent(provider: AgentProvider, name: string): AgentOrPromise {
  return after(callProvider(provider, name), (agent) => {
    if (!isAgent(agent)) {
      const message = `The subagent "${name}" is not an agent. Make it with agent().`
      throw new SubAgentUnavailable('subagent_unavailable', message)
    }
    checkAgent(agent, `The subagent "${name}"`)
    return agent
  })
}

/** Refuses an agent whose arguments cannot be described to a model, because it cannot be a tool. */
export function checkAgent({ input, name }: AnyAgent, where: string): void {
  if (input === null) return
  const fault = faultIn(input.jsonSchema, '')
  if (fault !== undefined) {
    throw new SubAgentUnavailable('subagent_unavailable', `${where}: the input of "${name}" ${fault}`)
  }
}

/** Uses the first value for the first delegation, and takes a new one for each further delegation. */
export function reuseFirst<Given>(first: Given, take: () => Given): () => Given {
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

const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']

/** Explains why a schema cannot describe the arguments of a tool, as the rest of a sentence; undefined when it can. */
function faultIn(schema: JsonSchema, path: string): string | undefined {
  const { type, properties = {}, required = [], items } = schema
  const wrong = [type ?? []].flat().find((name) => !TYPES.includes(String(name)))
  if (wrong !== undefined) return `says type ${JSON.stringify(wrong)}${at(path)}: there are ${TYPES.join(', ')}.`
  if (!isRecord(properties)) return `has properties that are no object${at(path)}.`
  if (!Array.isArray(required) || required.some((name) => typeof name !== 'string')) {
    return `has a "required" that is not a list of names${at(path)}.`
  }
  for (const [name, inner] of Object.entries(properties)) {
    const fault = isRecord(inner) ? faultIn(inner, path === '' ? name : `${path}.${name}`) : undefined
    if (fault !== undefined) return fault
  }
  return isRecord(items) ? faultIn(items, `${path}[]`) : undefined
}

function at(path: string): string {
  return path === '' ? '' : ` at ${path}`
}
