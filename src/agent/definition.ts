import { DefinitionError } from '../base/error.ts'
import { frozenCopy } from '../base/frozen-copy.ts'
import { checkNames } from '../base/options.ts'
import { readSchema, type Schema } from '../base/schema.ts'
import { checkBudget } from '../grant/budget.ts'
import { checkGrant } from '../grant/grant.ts'
import { CONTEXT_TURNS } from '../graph/context-turns.ts'
import type { Model } from '../model/model.ts'
import { readSettings } from '../model/settings.ts'
import { type ModelLike, toModel } from '../model/to-model.ts'
import { checkAttempts } from '../tool/attempts.ts'
import { type AgentCore, type AgentDefinition, checkAgentName, type Subagents } from './agent.ts'
import { readBriefing } from './briefing.ts'
import { checkHooks, OWN_HOOKS } from './hooks/extension.ts'
import { identified } from './identified.ts'
import { readInherit } from './inherited-files.ts'
import { readEager } from './read-eager.ts'
import { readKit } from './read-kit.ts'
import { readRepair } from './repair.ts'
import { type ReplyDefinition, readReply } from './reply.ts'
import type { ReplyCore } from './reply-core.ts'

type Definition = AgentDefinition<Schema | undefined, Schema | undefined>
type CodeDefinition = ReplyDefinition<Schema | undefined, Schema | undefined, Subagents>

const KEYS: ReadonlySet<string> = new Set([
  'name',
  'description',
  'instructions',
  'prompt',
  'model',
  'settings',
  'tools',
  'sources',
  'subagents',
  'toolkit',
  'input',
  'output',
  'repair',
  'eager',
  'grant',
  'budget',
  'hooks',
  'delegation',
  'briefing',
  'toolTrace',
  'acceptTruncated',
  'contextTurns',
  'files',
  'reply',
  'effect',
])

/** Checks a definition and makes it immutable. What cannot work is refused here, not when it runs. */
export function defineAgent(given: Definition | CodeDefinition): AgentCore {
  const definition = given as Definition
  const reply = checkKeys(definition)
  const { name } = definition
  const where = `agent "${name}"`
  if (definition.grant !== undefined) checkGrant(definition.grant, where)
  if (definition.budget !== undefined) checkBudget(definition.budget, where)
  if (definition.delegation !== undefined) checkAttempts(definition.delegation, `${where}, delegation`)
  checkContextTurns(definition.contextTurns ?? CONTEXT_TURNS, where)
  if (definition.hooks !== undefined) checkHooks(definition.hooks, where)
  checkFlags(definition, where)
  const output = definition.output ? readSchema(definition.output, `${where}, output`) : null
  return identified({
    name,
    ...wordsOf(definition),
    model: readModel(definition.model, name),
    settings: frozenCopy(readSettings(definition.settings ?? {}, `${where}.settings`)),
    ...readKit(definition, where),
    meta: definition.toolkit?.meta ?? 'none',
    input: definition.input ? readSchema(definition.input, `${where}, input`) : null,
    output,
    repair: readRepair(definition.repair, output, where),
    eager: readEager(definition.eager, output, where),
    grant: frozenCopy(definition.grant),
    budget: frozenCopy(definition.budget),
    extensions: definition.hooks === undefined ? NO_EXTENSIONS : [{ name: OWN_HOOKS, hooks: definition.hooks }],
    delegation: frozenCopy(definition.delegation),
    briefing: readBriefing(definition.briefing, where),
    toolTrace: definition.toolTrace ?? false,
    acceptTruncated: definition.acceptTruncated ?? false,
    contextTurns: definition.contextTurns ?? CONTEXT_TURNS,
    files: readInherit(definition.files, where),
    reply,
    asked: null,
    manner: null,
    inline: null,
    fileLayers: null,
  })
}

function checkFlags(definition: Definition, where: string): void {
  for (const key of ['toolTrace', 'acceptTruncated'] as const) {
    if (!['undefined', 'boolean'].includes(typeof definition[key])) refuse(`${where}: ${key} must be true or false.`)
  }
}

function wordsOf(given: Definition): Pick<AgentCore, 'description' | 'instructions' | 'prompt'> {
  const { description = '', instructions = '', prompt = null } = given
  return { description, instructions, prompt }
}

function checkKeys(definition: Definition): ReplyCore | null {
  if (typeof definition !== 'object' || definition === null) refuse('give it an object: agent({ name, ... }).')
  const { name, instructions, prompt = '-' } = definition
  checkNames('agent()', definition, KEYS)
  checkAgentName(name, 'agent()')
  const reply = readReply(definition, name)
  if (reply === null && typeof instructions !== 'string') {
    refuse(`"${name}" needs instructions: what the model is told it is and does. Code that answers needs a reply.`)
  }
  if (typeof prompt !== 'string' || prompt.trim() === '')
    refuse(`the prompt of "${name}" must be a text that is not empty.`)
  return reply
}

function readModel(given: ModelLike | undefined, name: string): Model | null {
  if (given === undefined) return null
  const model = toModel(given)
  if (model !== undefined) return model
  return refuse(
    `the model of "${name}" is none: give "provider/model", a model of the AI SDK, or an object with stream(request, { signal }).`,
  )
}

const NO_EXTENSIONS: AgentCore['extensions'] = []

function checkContextTurns(turns: unknown, where: string): void {
  if (Number.isInteger(turns) && Number(turns) >= 1 && Number(turns) <= 1_000) return
  refuse(`${where}: contextTurns is a whole number from 1 to 1000, not ${JSON.stringify(turns)}.`)
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `agent(): ${message}`)
}
