import { DefinitionError, messageOf } from '../../base/error.ts'
import { frozenCopy } from '../../base/json.ts'
import { anything, code, flag, int, type OptionRules, oneOf, readOptions, record, text } from '../../base/options.ts'
import { type CheckedSchema, readShownSchema, type Schema } from '../../base/schema/schema.ts'
import { hasField } from '../../fields/locate.ts'
import { type PathPattern, readPath } from '../../fields/path-pattern.ts'
import { checkBudget } from '../../grant/budget.ts'
import { checkGrant } from '../../grant/grant.ts'
import type { Model } from '../../model/model.ts'
import { type ModelLike, readSettings, toModel } from '../../model/named/to-model.ts'
import { ATTEMPTS } from '../../tool/attempts.ts'
import {
  type AgentCore,
  type AgentDefinition,
  checkAgentName,
  type EagerCore,
  isAgent,
  type Subagents,
} from '../definition/agent.ts'
import { readBriefing } from '../definition/briefing.ts'
import { checkHooks, OWN_HOOKS } from '../definition/extension.ts'
import type { ReplyCore } from '../definition/input.ts'
import { readRepair } from '../definition/repair.ts'
import { withIdentity } from './identity.ts'
import { readKit } from './read-kit.ts'
import { readConfig } from './read-subagents.ts'
import { type ReplyDefinition, readReply } from './reply.ts'

type Definition = AgentDefinition<Schema | undefined, Schema | undefined>
type CodeDefinition = ReplyDefinition<Schema | undefined, Schema | undefined, Subagents>

const OPTIONS: OptionRules<Definition> = {
  name: anything,
  description: text,
  instructions: text,
  prompt: text,
  model: anything,
  settings: record,
  tools: anything,
  sources: anything,
  subagents: anything,
  toolkit: record,
  input: anything,
  output: anything,
  repair: anything,
  eager: anything,
  grant: record,
  budget: record,
  hooks: anything,
  delegation: record,
  briefing: anything,
  toolTrace: flag,
  acceptTruncated: flag,
  contextTurns: int(1, 1_000),
  files: oneOf('inherit'),
  reply: code,
  effect: anything,
  needs: anything,
}

/** For an agent that is code, many options are refused by name, whatever their value. */
const NAMES = Object.fromEntries(Object.keys(OPTIONS).map((name) => [name, anything])) as OptionRules<Definition>

/** Checks a definition and makes it immutable. Refuses here what would fail when it runs. */
export function defineAgent(given: Definition | CodeDefinition): AgentCore {
  const definition = given as Definition
  const reply = checkKeys(definition)
  const { name } = definition
  const where = `agent "${name}"`
  if (definition.grant !== undefined) checkGrant(definition.grant, where)
  if (definition.budget !== undefined) checkBudget(definition.budget, where)
  if (definition.delegation !== undefined) readOptions(`${where}, delegation`, definition.delegation, ATTEMPTS)
  if (definition.hooks !== undefined) checkHooks(definition.hooks, where)
  const output = definition.output ? readShownSchema(definition.output, `${where}, output`) : null
  return withIdentity({
    name,
    ...wordsOf(definition),
    model: readModel(definition.model, name),
    settings: frozenCopy(readSettings(definition.settings ?? {}, `${where}.settings`)),
    ...readKit(definition, where),
    meta: definition.toolkit?.meta ?? 'none',
    input: definition.input ? readShownSchema(definition.input, `${where}, input`) : null,
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
    contextTurns: definition.contextTurns ?? null,
    files: definition.files ?? null,
    reply,
    asked: null,
    protocol: null,
    guards: null,
    inline: null,
    isModelOfFile: false,
    fileLayers: null,
  })
}

function wordsOf(given: Definition): Pick<AgentCore, 'description' | 'instructions' | 'prompt'> {
  const { description = '', instructions = '', prompt = null } = given
  return { description, instructions, prompt }
}

function checkKeys(definition: Definition): ReplyCore | null {
  const {
    name,
    instructions,
    prompt = '-',
  } = readOptions('agent()', definition, definition?.reply === undefined ? OPTIONS : NAMES)
  checkAgentName(name, 'agent()')
  const reply = readReply(definition, name)
  if (reply === null && instructions === undefined) {
    refuse(`"${name}" needs instructions: what the model is told it is and does. Code that answers needs a reply.`)
  }
  if (prompt.trim() === '') refuse(`the prompt of "${name}" must be a text that is not empty.`)
  return reply
}

function readModel(given: ModelLike | undefined, name: string): Model | null {
  if (given === undefined) return null
  const model = toModel(given)
  if (model !== undefined) return model
  return refuse(
    `the model of "${name}" is not a model: give "provider/model", a model of the AI SDK, or an object with stream(request, { signal }).`,
  )
}

const NO_EXTENSIONS: AgentCore['extensions'] = []

function refuse(message: string): never {
  throw new DefinitionError('definition', `agent(): ${message}`)
}

/** Settings of a host's subagent that an item's subagent may not have: it has no tool and no session. */
const FOREIGN = ['description', 'toolName', 'group', 'presets', 'memory', 'session', 'hooks', 'promoteAfterMs']

/** The children that items of the answer start, by path; null where there are none. */
function readEager(
  eager: object | undefined,
  output: CheckedSchema | null,
  where: string,
): ReadonlyMap<string, EagerCore> | null {
  if (eager === undefined) return null
  if (typeof eager !== 'object' || eager === null) refuse(`${where}: eager is an object: { 'tasks[*]': { agent } }.`)
  const entries = Object.entries(eager).filter(([, value]) => value !== undefined)
  if (entries.length === 0) return null
  if (output === null) refuse(`${where}: eager starts children for items of the answer: give the agent an output.`)
  return new Map(entries.map(([path, value]) => [path, readOne(value, path, { output, where })]))
}

function readOne(value: unknown, path: string, { output, where }: { output: CheckedSchema; where: string }): EagerCore {
  const place = `${where}, eager[${JSON.stringify(path)}]`
  const { input, ...config } = (
    isSource(value) || typeof value !== 'object' || value === null ? { agent: value } : value
  ) as { readonly input?: unknown; readonly agent?: unknown }
  const foreign = Object.keys(config).find((key) => FOREIGN.includes(key))
  if (foreign !== undefined) refuse(`${place} has no "${foreign}": that is for subagents that a model calls.`)
  if (input !== undefined && typeof input !== 'function') refuse(`${place}.input is a function of the item.`)
  const pattern = patternOf(path, place)
  if (!hasField(output.jsonSchema, pattern)) refuse(`${place}: the output schema has no such field.`)
  return { pattern, config: readConfig(config, place), input: input as EagerCore['input'] }
}

function patternOf(path: string, place: string): PathPattern {
  try {
    return readPath(path)
  } catch (error) {
    return refuse(`${place}: ${messageOf(error)}`)
  }
}

function isSource(value: unknown): boolean {
  return isAgent(value) || typeof value === 'function'
}
