import {
  type AnyAgent,
  type BackgroundSettings,
  isAgent,
  type SubagentConfig,
  type Subagents,
} from '../../agent/definition/agent.ts'
import { DefinitionError } from '../../base/error.ts'
import { anything, flag, int, listOf, type OptionRules, oneOf, readOptions, record, text } from '../../base/options.ts'
import { type Budget, checkBudget } from '../../grant/budget.ts'
import { BUILT_IN_PROFILES } from '../../grant/profile.ts'
import { normalName } from './read.ts'

export interface BackgroundOptions extends BackgroundSettings {
  /** The agent that runs every child. Default: the host's own definition. */
  readonly agent?: AnyAgent
  /** Agents to choose from by the `name` of the call. If `agent` is set too, it runs every name not listed here. */
  readonly agents?: { readonly [name: string]: AnyAgent }
}

interface SplitSubagents {
  readonly options: BackgroundOptions
  readonly others: Subagents
}

/** Splits subagents into those with `background` and the others. Undefined where none has it. */
export function splitSubagents(subagents: Subagents | undefined): SplitSubagents | undefined {
  if (typeof subagents !== 'object' || subagents === null) return undefined
  const entries = Object.entries(subagents)
  const chosen = entries.filter(([, value]) => isInBackground(value))
  if (chosen.length === 0) return undefined
  const isList = Array.isArray(subagents)
  const others = entries.filter(([, value]) => !isInBackground(value))
  const named = chosen.map(([key, value]) => ownAgent(isList ? null : key, value as BackgroundConfig))
  const [{ settings } = { settings: {} }] = named
  const other = named.find((one) => JSON.stringify(one.settings) !== JSON.stringify(settings))
  if (other !== undefined) refuseOption(other.name, 'has other settings than the first: they are the same for all.')
  return {
    options: { ...settings, agents: Object.fromEntries(named.map(({ name, agent }) => [name, agent])) },
    others: isList ? others.map(([, value]) => value) : Object.fromEntries(others),
  }
}

type BackgroundConfig = SubagentConfig & { readonly background: true | BackgroundSettings }

function isInBackground(value: unknown): value is BackgroundConfig {
  return typeof value === 'object' && value !== null && !isAgent(value) && Object.hasOwn(value, 'background')
}

function ownAgent(key: string | null, { agent, background, ...others }: BackgroundConfig) {
  const name = key ?? (isAgent(agent) ? agent.name : 'in a list')
  if (!isAgent(agent)) refuseOption(name, 'needs an agent that is known from the start, not a function.')
  const isRight = background === true || (typeof background === 'object' && background !== null)
  if (!isRight) refuseOption(name, 'is true, or an object of settings.')
  const [odd] = Object.keys(others)
  if (odd !== undefined) refuseOption(name, `and ${odd} do not go together: give settings as background: { ... }.`)
  return { name, agent, settings: background === true ? {} : background }
}

function refuseOption(name: string, words: string): never {
  throw new DefinitionError('definition', `agent(): subagents.${name}.background ${words}`)
}

export interface BackgroundSpec {
  readonly agent: AnyAgent | undefined
  /** Agents by their normal name (see `normalName`). */
  readonly agents: ReadonlyMap<string, AnyAgent>
  readonly nested: boolean
  readonly wake: 'auto' | 'passive'
  readonly budget: Budget | undefined
  readonly onParentClose: 'cancel' | 'abandon'
  readonly profiles: readonly string[]
  readonly profile: string | undefined
  readonly contextTurns: number | undefined
}

const OPTIONS: OptionRules<BackgroundOptions> = {
  agent: anything,
  agents: record,
  nested: flag,
  wake: oneOf('auto', 'passive'),
  budget: record,
  onParentClose: oneOf('cancel', 'abandon'),
  profiles: listOf(text, 'names'),
  profile: text,
  contextTurns: int(1, 1_000),
}

/** Checks the options, so that a mistake throws where you made it. */
export function readBackground(options: BackgroundOptions): BackgroundSpec {
  readOptions('backgroundSubagents()', options, OPTIONS)
  const { agent, nested = false, wake = 'auto', onParentClose = 'cancel', contextTurns } = options
  if (agent !== undefined) checkAgent(agent, 'agent')
  if (options.budget !== undefined) checkBudget(options.budget, 'backgroundSubagents()')
  const profiles = options.profiles ?? Object.keys(BUILT_IN_PROFILES)
  if (options.profile !== undefined && !profiles.includes(options.profile)) {
    refuse(`the profile "${options.profile}" is none of ${profiles.join(', ')}.`)
  }
  const agents = readAgents(options.agents ?? {})
  return {
    agent,
    agents,
    nested,
    wake,
    budget: options.budget,
    onParentClose,
    profiles,
    profile: options.profile,
    contextTurns,
  }
}

function readAgents(agents: { readonly [name: string]: AnyAgent }): ReadonlyMap<string, AnyAgent> {
  const read = new Map<string, AnyAgent>()
  for (const [name, agent] of Object.entries(agents)) {
    checkAgent(agent, `agents.${name}`)
    const normal = normalName(name)
    if (normal === '') refuse(`agents: "${name}" has no letter or digit a name could be told by.`)
    if (read.has(normal)) refuse(`agents: two of them are "${normal}". Rename one.`)
    read.set(normal, agent)
  }
  return read
}

/** Refuses agents with an input schema: these tools can only send a text. */
function checkAgent(agent: unknown, where: string): void {
  if (!isAgent(agent)) refuse(`${where} is not an agent. Make it with agent({ ... }).`)
  if (agent.input !== null) {
    refuse(
      `${where}: "${agent.name}" has an input schema, and these tools send a text. Offer it as a subagent instead.`,
    )
  }
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `backgroundSubagents(): ${message}`)
}
