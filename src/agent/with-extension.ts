import { DefinitionError } from '../base/error.ts'
import type { AgentCore, AnyAgent, Extension } from './agent.ts'
import { checkExtension, OWN_HOOKS } from './hooks/extension.ts'
import { identified } from './identified.ts'

/** The agent with one more extension; its own hooks stay the last. */
export function withExtension(agent: AgentCore, added: Extension): AgentCore {
  const where = `agent "${agent.name}"`
  checkExtension(added, where)
  const taken = agent.extensions.some(({ name }) => name === added.name)
  if (taken) refuse(`${where} uses an extension "${added.name}" already. Use it once, or rename one of them.`)
  const own = agent.extensions.filter(({ name }) => name === OWN_HOOKS)
  const others = agent.extensions.filter(({ name }) => name !== OWN_HOOKS)
  return identified({ ...agent, extensions: [...others, added, ...own] })
}

/** The methods of all its extensions. Throws where one has the name of another, or of what every agent has. */
export function methodsOf(agent: AnyAgent): PropertyDescriptorMap {
  const methods: PropertyDescriptorMap = {}
  const owners = new Map<string, string>()
  for (const extension of agent.extensions as readonly Extension[]) {
    for (const [name, value] of Object.entries(givenBy(extension, agent))) {
      const owner = Object.hasOwn(agent, name) ? 'every agent' : owners.get(name)
      if (owner !== undefined) refuse(clash({ agent, extension, name, owner }))
      owners.set(name, `the extension "${extension.name}"`)
      methods[name] = { value, enumerable: true }
    }
  }
  return methods
}

function givenBy(extension: Extension, agent: AnyAgent): object {
  if (extension.methods === undefined) return {}
  const given: unknown = extension.methods(agent)
  const where = `agent "${agent.name}": the extension "${extension.name}"`
  if (typeof given !== 'object' || given === null) refuse(`${where}: methods(agent) gives an object of functions.`)
  // An agent that looks like a promise would be called by whoever awaits or returns it.
  if ('then' in given) refuse(`${where} has a method "then": an agent is no promise. Rename it.`)
  const other = Object.entries(given).find(([, value]) => typeof value !== 'function')
  if (other !== undefined) refuse(`${where}: its method "${other[0]}" is no function.`)
  return given
}

interface Clash {
  readonly agent: AnyAgent
  readonly extension: Extension
  readonly name: string
  readonly owner: string
}

function clash({ agent, extension, name, owner }: Clash): string {
  return `agent "${agent.name}": the extension "${extension.name}" has a method "${name}", and so has ${owner}. Rename one of them.`
}

function refuse(message: string): never {
  throw new DefinitionError('definition', message)
}
