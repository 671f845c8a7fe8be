import { DefinitionError, SubAgentUnavailable } from '../../base/error.ts'
import { nodeCrypto } from '../../base/hash.ts'
import { frozenCopy, toJson } from '../../base/json.ts'
import { anything, int, type OptionRules, oneOf, positive, readOptions, record, text } from '../../base/options.ts'
import { checkBudget } from '../../grant/budget.ts'
import { checkGrant } from '../../grant/grant.ts'
import { toModel } from '../../model/named/to-model.ts'
import { readSessionSettings } from '../../store/session-store.ts'
import { ATTEMPTS } from '../../tool/attempts.ts'
import { RESET_TOOLS } from '../../tool/groups.ts'
import { READ_RESULT } from '../../tool/result.ts'
import { isTool, type Tool } from '../../tool/tool.ts'
import { fromAiSdkTool, isForeignTool } from '../../tools/from-ai-sdk-tool.ts'
import {
  type AgentCore,
  type AgentProvider,
  type AnyAgent,
  checkAgentName,
  isAgent,
  type SubagentConfig,
  type Subagents,
  type SubagentValue,
  type Tools,
} from '../definition/agent.ts'
import { readBriefing } from '../definition/briefing.ts'
import { NAME_CLASHES, readForward } from '../definition/subagent-options.ts'
import { checkAgent, providedAgent, reuseFirst } from './provided.ts'

/** Reads each subagent with the name of its tool into one form. Refuses here, with the reason, what could not work. */
export function readSubagents(subagents: Subagents, where: string): NamedSubagent[] {
  if (isList(subagents)) return subagents.map((value, index) => readListed(value, index, where))
  if (typeof subagents !== 'object' || subagents === null) {
    refuse(`${where}: subagents are an object, { name: agent }, or a list of agents.`)
  }
  return Object.entries(subagents).map(([key, value]) => {
    const config = readConfig(value, `${where}, subagents.${key}`)
    const name = firstText(config.toolName) ?? key
    checkToolName(name, where)
    return { name, config, value }
  })
}

export interface NamedSubagent {
  readonly name: string
  readonly config: SubagentConfig
  /** The value as given: it may be in several groups. */
  readonly value: unknown
}

const OPTIONS: OptionRules<SubagentConfig> = {
  agent: anything,
  name: anything,
  description: text,
  toolName: text,
  onNameClash: oneOf(...NAME_CLASHES),
  group: text,
  presets: anything,
  tools: anything,
  files: oneOf('inherit'),
  model: anything,
  briefing: anything,
  memory: oneOf('fresh', 'session'),
  grant: anything,
  budget: record,
  profile: text,
  hooks: oneOf('private', 'inherit'),
  onParentClose: oneOf('cancel', 'abandon'),
  background: anything,
  promoteAfterMs: positive,
  concurrency: int(1),
  concurrencyKey: text,
  ...ATTEMPTS,
  session: anything,
  forwardEvents: anything,
  streamOptions: record,
}

/** Checks one value under `subagents`. */
export function readConfig(value: unknown, where: string): SubagentConfig {
  const given = isSource(value) ? { agent: value as AnyAgent } : value
  const config = typeof given === 'object' && given !== null ? (given as Partial<SubagentConfig>) : {}
  const { agent } = config
  if (!isSource(agent)) refuse(`${where} is not an agent, a function that gives one, or { agent, ... }.`)
  readOptions(`agent(): ${where}`, config, OPTIONS)
  if (config.background !== undefined) {
    refuse(`${where}.background: only the subagents of agent({ subagents }) work in the background.`)
  }
  checkSettings(config, where)
  if (isAgent(agent)) {
    checkAgent(agent, where)
    checkFit(agent, config, where)
  }
  if (isAgent(agent) && config.tools !== undefined) checkClash(agent, config.tools, where)
  return withOwnData(config as SubagentConfig)
}

/** Copies the plain data in it, so that nobody can widen it later. */
function withOwnData(config: SubagentConfig): SubagentConfig {
  const { grant, budget, presets } = config
  return {
    ...config,
    ...(grant === undefined ? {} : { grant: frozenCopy(grant) }),
    ...(budget === undefined ? {} : { budget: frozenCopy(budget) }),
    ...(presets === undefined ? {} : { presets: frozenCopy(presets) }),
  }
}

function checkClash({ subagents }: AnyAgent, tools: Tools, where: string): void {
  const taken = Object.keys(tools).find((name) => subagents.has(name))
  if (taken === undefined) return
  const message = `${where}.tools: "${taken}" is a tool and a subagent. Rename one of them.`
  throw new SubAgentUnavailable('subagent_unavailable', message)
}

function checkSettings(config: Partial<SubagentConfig>, where: string): void {
  readBriefing(config.briefing, where)
  if (config.concurrency === undefined && config.concurrencyKey !== undefined) {
    refuse(`${where}.concurrencyKey says who shares a number: say the number too, as concurrency.`)
  }
  readSessionSettings(config.session, `${where}.session`)
  readForward(config, where)
  if (config.name !== undefined) checkAgentName(config.name, where)
  if (config.budget !== undefined) checkBudget(config.budget, where)
  if (config.grant !== undefined) checkLayer(config.grant, where)
  if (config.presets !== undefined) checkPresets(config.presets, where)
  if (config.tools !== undefined) readTools(config.tools, where)
  if (config.model !== undefined && toModel(config.model) === undefined) {
    refuse(`${where}.model is not a model: give "provider/model", a model of the AI SDK, or an object with stream().`)
  }
}

/** The grant binds everything below the subagent too, so it has no `delegate` of its own. */
function checkLayer(grant: object, where: string): void {
  if (Object.hasOwn(grant, 'delegate')) {
    refuse(
      `${where}.grant has use, ask, free and deny: it binds the subagent and all below it, so it has no "delegate".`,
    )
  }
  checkGrant(grant, where)
}

function checkPresets(presets: unknown, where: string): void {
  const isObject = typeof presets === 'object' && presets !== null && !Array.isArray(presets)
  const json = isObject ? toJson(presets) : undefined
  if (json?.ok !== true) refuse(`${where}.presets is an object of JSON values: fields of the input and what they are.`)
}

/** Without a key, the tool's name comes from the agent's name, or from its place where that is not known yet. */
function readListed(value: unknown, index: number, where: string): NamedSubagent {
  const config = readConfig(value, `${where}, subagents`)
  const said = firstText(config.toolName)
  if (said !== undefined) {
    checkToolName(said, where)
    return { name: said, config, value }
  }
  if (config.name !== undefined) return { name: toolNameOf(config.name), config, value }
  if (isAgent(config.agent)) return { name: toolNameOf(config.agent.name), config, value }
  const given = providedAgent(config.agent, 'in the list')
  const later = given instanceof Promise
  if (later) given.catch(() => undefined)
  const name = toolNameOf(later ? `agent_${index + 1}` : given.name)
  return { name, config: { ...config, agent: reuseFirst<ReturnType<AgentProvider>>(given, config.agent) }, value }
}

function isSource(value: unknown): value is SubagentConfig['agent'] {
  return isAgent(value) || typeof value === 'function'
}

function isList(subagents: Subagents): subagents is readonly SubagentValue[] {
  return Array.isArray(subagents)
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `agent(): ${message}`)
}

/** Refuses settings that this agent cannot use: a misspelt preset would leave to the model what it must not set. */
export function checkFit(agent: AgentCore, given: Partial<SubagentConfig>, where: string): void {
  const { presets, memory, session } = given
  const fields = fieldsOf(agent)
  const unknown = Object.keys(presets ?? {}).find((field) => fields !== undefined && !fields.includes(field))
  if (unknown !== undefined) {
    refuseFit(`${where}.presets: the input of "${agent.name}" has no "${unknown}". It has ${fields?.join(', ')}.`)
  }
  if (memory !== undefined && agent.input === null) {
    const advice = `Leave memory out, or give "${agent.name}" an input.`
    refuseFit(
      `${where}.memory: a subagent without an input keeps its sessions, and its host names the one it means. ${advice}`,
    )
  }
  if (session !== undefined && agent.input !== null) {
    const advice = `Leave session out. With memory: 'session' its delegations share one conversation.`
    refuseFit(`${where}.session: "${agent.name}" has an input, and only a subagent without one has sessions. ${advice}`)
  }
}

/** Undefined where any field is allowed, or the fields are unknown. */
function fieldsOf({ input }: AgentCore): readonly string[] | undefined {
  if (input === null) return MESSAGE_FIELDS
  const { properties = {}, additionalProperties } = input.jsonSchema as {
    readonly properties?: object
    readonly additionalProperties?: unknown
  }
  const fields = Object.keys(properties)
  if (additionalProperties === false) return fields
  return fields.length === 0 || additionalProperties !== undefined ? undefined : fields
}

const MESSAGE_FIELDS: readonly string[] = ['message', 'session_id']

function refuseFit(message: string): never {
  throw new SubAgentUnavailable('subagent_unavailable', message)
}

const LONGEST = 64
const LONGEST_STEM = 50

/**
 * Derives the tool name of an agent that has none: `call_` and the agent's name in characters every provider takes. A
 * name that loses characters or is too long gets a short digest, so that two such names differ.
 */
export function toolNameOf(agentName: string): string {
  const lower = agentName.toLowerCase()
  const stem = lower
    .replace(/[^a-z0-9_-]+/g, '_')
    .replace(/_+/g, '_')
    .replace(/^_|_$/g, '')
  const name = `call_${stem === '' ? 'agent' : stem}`
  const isExact = /^[a-z0-9_\-\s]*$/.test(lower)
  if (isExact && name.length <= LONGEST) return name
  const withDigest = `${name}_${digest(agentName)}`
  if (withDigest.length <= LONGEST) return withDigest
  return `${`call_${stem.slice(0, LONGEST_STEM)}`.replace(/_$/, '')}_${digest(agentName)}`
}

/** First 8 digits of the name's version 3 UUID without a namespace: the form other programs derive. */
function digest(name: string): string {
  return nodeCrypto().createHash('md5').update(name, 'utf8').digest('hex').slice(0, 8)
}

/** False for a text of nothing but spaces. */
export function hasText(text: string | undefined): boolean {
  return text !== undefined && text.trim() !== ''
}

export function firstText(...texts: readonly (string | undefined)[]): string | undefined {
  return texts.find(hasText)?.trim()
}

/** The tools of a definition by their names. */
export function readTools(tools: Tools, where: string): ReadonlyMap<string, Tool> {
  if (typeof tools !== 'object' || tools === null || Array.isArray(tools)) {
    refuse(`${where}: tools are an object, { name: tool({ ... }) }: the key is the name.`)
  }
  const read = new Map<string, Tool>()
  for (const [name, tool] of Object.entries(tools)) {
    checkToolName(name, where)
    read.set(name, isTool(tool) ? tool : foreignTool(tool, `${where}: tools.${name}`))
  }
  return read
}

function foreignTool(given: unknown, where: string): Tool {
  if (!isForeignTool(given)) refuse(`${where} is not a tool. Make it with tool({ ... }).`)
  return fromAiSdkTool(given, `agent(): ${where}`)
}

export function checkToolName(name: string, where: string): void {
  if (name === READ_RESULT || name === RESET_TOOLS)
    refuse(`${where}: the tool "${name}" is built in. Give yours another name.`)
  if (/^[a-zA-Z0-9_-]{1,64}$/.test(name)) return
  refuse(`${where}: "${name.slice(0, 80)}" is not a name for a tool: models accept a-z, A-Z, 0-9, _ and -, at most 64.`)
}
