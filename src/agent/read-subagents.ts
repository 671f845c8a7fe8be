import { DefinitionError, SubAgentUnavailable } from '../base/error.ts'
import { frozenCopy } from '../base/frozen-copy.ts'
import { toJson } from '../base/json.ts'
import { checkNames } from '../base/options.ts'
import { checkBudget } from '../grant/budget.ts'
import { checkGrant } from '../grant/grant.ts'
import { toModel } from '../model/to-model.ts'
import { readSessionSettings } from '../store/session-store.ts'
import { ATTEMPT_KEYS, checkAttemptNumbers } from '../tool/attempts.ts'
import {
  type AnyAgent,
  checkAgentName,
  isAgent,
  type SubagentConfig,
  type Subagents,
  type SubagentValue,
  type Tools,
} from './agent.ts'
import { readBriefing } from './briefing.ts'
import { checkFit } from './check-fit.ts'
import { readInherit } from './inherited-files.ts'
import { NAME_CLASHES } from './name-clash.ts'
import { checkAgent, providedAgent, sparing } from './provided.ts'
import { readForward } from './read-forward.ts'
import { checkToolName, readTools } from './read-tools.ts'
import { firstSaid } from './said.ts'
import { toolNameOf } from './tool-name.ts'

/** Each subagent with the name of its tool, in one form. What cannot work is refused here, with the reason. */
export function readSubagents(subagents: Subagents, where: string): NamedSubagent[] {
  if (isList(subagents)) return subagents.map((value) => readListed(value, where))
  if (typeof subagents !== 'object' || subagents === null) {
    refuse(`${where}: subagents are an object, { name: agent }, or a list of agents.`)
  }
  return Object.entries(subagents).map(([key, value]) => {
    const config = readConfig(value, `${where}, subagents.${key}`)
    const name = firstSaid(config.toolName) ?? key
    checkToolName(name, where)
    return { name, config, value }
  })
}

export interface NamedSubagent {
  readonly name: string
  readonly config: SubagentConfig
  /** As it was given: the same one may be in several groups. */
  readonly value: unknown
}

const KEYS: ReadonlySet<string> = new Set([
  'agent',
  'name',
  'description',
  'toolName',
  'onNameClash',
  'group',
  'presets',
  'tools',
  'files',
  'model',
  'briefing',
  'memory',
  'grant',
  'budget',
  'profile',
  'hooks',
  'onParentClose',
  'promoteAfterMs',
  'concurrency',
  'concurrencyKey',
  ...ATTEMPT_KEYS,
  'session',
  'forwardEvents',
  'streamOptions',
])

/** One value under `subagents`, checked. */
export function readConfig(value: unknown, where: string): SubagentConfig {
  const given = isSource(value) ? { agent: value as AnyAgent } : value
  const config = typeof given === 'object' && given !== null ? (given as Partial<SubagentConfig>) : {}
  const { agent } = config
  if (!isSource(agent)) refuse(`${where} is not an agent, a function that gives one, or { agent, ... }.`)
  checkNames(`agent(): ${where}`, config, KEYS)
  checkSettings(config, where)
  if (isAgent(agent)) {
    checkAgent(agent, where)
    checkFit(agent, config, where)
  }
  if (isAgent(agent) && config.tools !== undefined) checkClash(agent, config.tools, where)
  return withOwnData(config as SubagentConfig)
}

/** What is plain data in it is copied: nobody can widen it later. */
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
  readInherit(config.files, `agent(): ${where}`)
  readBriefing(config.briefing, where)
  checkChoice(config.onNameClash, NAME_CLASHES, `${where}.onNameClash`)
  checkChoice(config.memory, ['fresh', 'session'], `${where}.memory`)
  checkChoice(config.hooks, ['private', 'inherit'], `${where}.hooks`)
  checkChoice(config.onParentClose, ['cancel', 'abandon'], `${where}.onParentClose`)
  checkPromotion(config.promoteAfterMs, where)
  checkAttemptNumbers(config, where)
  checkConcurrency(config, where)
  for (const key of ['description', 'toolName', 'group', 'profile'] as const) checkText(config[key], `${where}.${key}`)
  readSessionSettings(config.session, `${where}.session`)
  readForward(config, where)
  if (config.name !== undefined) checkAgentName(config.name, where)
  if (config.budget !== undefined) checkBudget(config.budget, where)
  if (config.grant !== undefined) checkLayer(config.grant, where)
  if (config.presets !== undefined) checkPresets(config.presets, where)
  if (config.tools !== undefined) readTools(config.tools, where)
  if (config.model !== undefined && toModel(config.model) === undefined) {
    refuse(`${where}.model is none: give "provider/model", a model of the AI SDK, or an object with stream().`)
  }
}

function checkConcurrency({ concurrency, concurrencyKey }: Partial<SubagentConfig>, where: string): void {
  checkText(concurrencyKey, `${where}.concurrencyKey`)
  if (concurrency === undefined && concurrencyKey !== undefined) {
    refuse(`${where}.concurrencyKey says who shares a number: say the number too, as concurrency.`)
  }
  if (concurrency === undefined || (Number.isSafeInteger(concurrency) && concurrency >= 1)) return
  refuse(`${where}.concurrency must be a whole number of at least 1, not ${JSON.stringify(concurrency)}.`)
}

/** It binds all below the subagent in the same way: there is nothing of its own to pass on. */
function checkLayer(grant: object, where: string): void {
  if (Object.hasOwn(grant, 'delegate')) {
    refuse(`${where}.grant has use, ask and deny: it binds the subagent and all below it, so it has no "delegate".`)
  }
  checkGrant(grant, where)
}

function checkPresets(presets: unknown, where: string): void {
  const isObject = typeof presets === 'object' && presets !== null && !Array.isArray(presets)
  const json = isObject ? toJson(presets) : undefined
  if (json?.ok !== true) refuse(`${where}.presets is an object of JSON values: fields of the input and what they are.`)
}

/** Without a key the name of the tool is derived from the agent's. */
function readListed(value: unknown, where: string): NamedSubagent {
  const config = readConfig(value, `${where}, subagents`)
  const said = firstSaid(config.toolName)
  if (said !== undefined) {
    checkToolName(said, where)
    return { name: said, config, value }
  }
  if (config.name !== undefined) return { name: toolNameOf(config.name), config, value }
  if (isAgent(config.agent)) return { name: toolNameOf(config.agent.name), config, value }
  const agent = providedAgent(config.agent, 'in the list')
  return { name: toolNameOf(agent.name), config: { ...config, agent: sparing(agent, config.agent) }, value }
}

function isSource(value: unknown): value is SubagentConfig['agent'] {
  return isAgent(value) || typeof value === 'function'
}

function checkText(value: unknown, where: string): void {
  if (value !== undefined && typeof value !== 'string') refuse(`${where} must be a text, not ${JSON.stringify(value)}.`)
}

function checkChoice(value: unknown, choices: readonly string[], where: string): void {
  if (value === undefined || choices.includes(String(value))) return
  refuse(`${where} is ${choices.map((choice) => `"${choice}"`).join(' or ')}, not ${JSON.stringify(value)}.`)
}

function isList(subagents: Subagents): subagents is readonly SubagentValue[] {
  return Array.isArray(subagents)
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `agent(): ${message}`)
}

function checkPromotion(afterMs: unknown, where: string): void {
  if (afterMs === undefined || (typeof afterMs === 'number' && Number.isFinite(afterMs) && afterMs > 0)) return
  refuse(`${where}.promoteAfterMs is how long a call waits for its child, in milliseconds: a number above 0.`)
}
