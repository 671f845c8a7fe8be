import { type AnyAgent, isAgent } from '../../agent/definition/agent.ts'
import { DefinitionError } from '../../base/error.ts'
import { anything, flag, int, listOf, type OptionRules, oneOf, readOptions, record, text } from '../../base/options.ts'
import { type Budget, checkBudget } from '../../grant/budget.ts'
import { BUILT_IN_PROFILES } from '../../grant/profile.ts'
import { normalName } from './read.ts'

export interface BackgroundOptions {
  /** The agent that runs every child. Default: the host's own definition. */
  readonly agent?: AnyAgent
  /** Agents to choose from by the `name` of the call. If `agent` is set too, it runs every name not listed here. */
  readonly agents?: { readonly [name: string]: AnyAgent }
  /**
   * Lets the children of this host start children of their own with these tools, as deep as budgets allow. Default
   * false.
   */
  readonly nested?: boolean
  /**
   * How a host learns that a child ended while it was not waiting: `auto` queues one turn in its conversation,
   * `passive` keeps the result as a row until the host asks for it. Default auto.
   */
  readonly wake?: 'auto' | 'passive'
  /** How much each child may use. */
  readonly budget?: Budget
  /** Whether children are cancelled or continue when the run that started them is cancelled. Default: cancel. */
  readonly onParentClose?: 'cancel' | 'abandon'
  /** The profiles a model may choose from. Default: the built-in ones. */
  readonly profiles?: readonly string[]
  /** The profile of children whose call names none. Default: the profile of the host's conversation, or full. */
  readonly profile?: string
  /** The number of rounds for children whose call gives none. Default: the host conversation's number, or 50. */
  readonly contextTurns?: number
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
