import { DefinitionError } from '../../base/error.ts'
import { anything, type OptionRules, readOptions } from '../../base/options.ts'
import { readShownSchema, type Schema } from '../../base/schema/schema.ts'
import { toModel } from '../../model/named/to-model.ts'
import { delegatingTool } from '../../tool/tool.ts'
import { type AgentCore, type AnyAgent, type AutoDefinition, checkAgentName, markAgent } from '../definition/agent.ts'
import { refuseForReply } from '../definition/input.ts'
import { withIdentity } from './identity.ts'

const OPTIONS: OptionRules<AutoDefinition<Schema, Schema>> = {
  name: anything,
  description: anything,
  input: anything,
  output: anything,
  model: anything,
}
const GENERATORS = ['GeneratorFunction', 'AsyncGeneratorFunction']

/** Makes an agent that is a function: its definition is its input and its output. Throws if it cannot work. */
export function autoCore(base: AgentCore | null, definition: AutoDefinition<Schema, Schema>): Partial<AgentCore> {
  checkAuto(definition)
  const { name = 'auto', description, input, output, model } = definition
  const said = `You are the function "${name}": ${description}\nThe last message is what it is called with, as JSON. Answer with what it gives back, and nothing else.`
  const where = `auto("${name}")`
  return {
    name,
    description,
    instructions: base === null || base.instructions === '' ? said : `${base.instructions}\n\n${said}`,
    input: readShownSchema(input, `${where}, input`),
    output: readShownSchema(output, `${where}, output`),
    ...(model === undefined ? {} : { model: toModel(model) ?? refuse(`the model of "${name}" is not a model.`) }),
  }
}

/** Makes a function from an agent with tools, a model and the like: all of it belongs to the function too. */
export function autoFromAgent(agent: AgentCore, definition: AutoDefinition<Schema, Schema>): AgentCore {
  refuseForReply(agent, 'a function')
  return withIdentity({ ...agent, ...autoCore(agent, definition) })
}

/**
 * Makes a function that is also its agent and a tool that starts it: call it, stream it, or put it into `tools` or
 * `subagents`.
 */
export function makeCallable(agent: AnyAgent, call: (input: unknown, options?: object) => Promise<unknown>): AnyAgent {
  const { input, description } = agent
  if (input === null) refuse('a function needs an input.')
  const tool = delegatingTool(description, input, { agent })
  const made = Object.defineProperties(call, {
    ...Object.getOwnPropertyDescriptors(tool),
    ...Object.getOwnPropertyDescriptors(agent),
  })
  return markAgent(made as unknown as AnyAgent)
}

function checkAuto(definition: AutoDefinition<Schema, Schema>): void {
  if (typeof definition === 'function') {
    const isGenerator = GENERATORS.includes((definition as object).constructor.name)
    refuse(
      isGenerator
        ? 'a generator cannot be implemented by a model: it gives one value. Describe the function: auto({ description, input, output }).'
        : 'types are gone when code runs. Describe the function: auto({ name, description, input, output }).',
    )
  }
  const given = readOptions('auto()', definition, OPTIONS)
  if (given.name !== undefined) checkAgentName(given.name, 'auto()')
  if (typeof given.description !== 'string' || given.description.trim() === '') {
    refuse('it needs a description: what the function does, in words.')
  }
  for (const key of ['input', 'output'] as const) if (given[key] === undefined) refuse(`it needs an ${key}: a schema.`)
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `auto(): ${message}`)
}
