import { type AgentCore, isAgent } from '../../agent/definition/agent.ts'
import type { Owners } from '../../base/owner-folder.ts'
import type { CheckedSchema, JsonSchema } from '../../base/schema/schema.ts'
import { type Budget, codeBudget, limitsOf, moneyOf, treeLimitOf } from '../../grant/budget.ts'
import type { TurnLimits } from '../../graph/limits.ts'
import { type NeedsParts, ownersOfFiles } from './needs.ts'

/** An agent that a runtime can start, as surfaces list it. */
export interface AgentInfo {
  readonly name: string
  /** Tells a host's model, or a person, when to ask it. Empty where nobody wrote one. */
  readonly description: string
  /** The JSON Schema of its input; null where it takes a message. */
  readonly input: JsonSchema | null
  /** The JSON Schema of its answer; null where it answers with a message. */
  readonly output: JsonSchema | null
  /** The names of the agents that it may delegate to. */
  readonly subagents: readonly string[]
  /** The names of its own tools. Those of sources that must be started first are not known yet. */
  readonly tools: readonly string[]
  /** The name of its model; null where it answers by code, or no model is known yet. */
  readonly model: string | null
  /** `file`: it was made from a recipe or an agent file, and its conversations keep all of it. */
  readonly source: 'code' | 'file'
  /**
   * Whose the files are that it or an agent below it works with: each owner's `own`, or `shared` by all. `undecided`: nobody has
   * said it, and only runs without an owner and those of the person at this machine may start it. Null where none works with files.
   */
  readonly files: Owners | 'undecided' | null
  /** The most that one run of it may use. */
  readonly budget: RunCeiling
}

/** The most that a run may use: its own numbers, and those that hold for it and all below it together. */
export interface RunCeiling extends TurnLimits {
  /** Subagents at a time, of the run and all below it; null for no limit of its own. */
  readonly treeConcurrency: number | null
  /** Tokens of the run and all below it; null for no limit. */
  readonly tokens: number | null
  /** US dollars of the run and all below it; null for no limit. */
  readonly usd: number | null
}

/** The runtime's part of an agent's facts. */
export interface InfoParts {
  readonly budget: Budget | undefined
  readonly modelOf: (agent: AgentCore) => { readonly id: string } | null
  readonly needs: NeedsParts
}

/** Lists agents by name. */
export function agentInfos(agents: Iterable<AgentCore>, parts: InfoParts): AgentInfo[] {
  const infos = [...agents].map((agent) => infoOf(agent, parts))
  return infos.sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)))
}

function infoOf(agent: AgentCore, { budget, modelOf, needs }: InfoParts): AgentInfo {
  const { name, description, input, output, tools, inline } = agent
  const budgets = [agent.reply === null ? agent.budget : codeBudget(agent.budget), budget]
  const money = moneyOf(budgets)
  return {
    name,
    description,
    input: schemaOf(input),
    output: schemaOf(output),
    subagents: subagentNames(agent),
    tools: [...tools.keys()],
    model: agent.reply === null ? (modelOf(agent)?.id ?? null) : null,
    source: inline === null ? 'code' : 'file',
    files: ownersOfFiles(agent, needs),
    budget: {
      ...limitsOf(budgets),
      treeConcurrency: treeLimitOf(budgets),
      tokens: money?.tokens ?? null,
      usd: money?.usd ?? null,
    },
  }
}

/** Some libraries cannot say every schema as JSON Schema: then anything may be sent, and the agent checks it. */
function schemaOf(schema: CheckedSchema | null): JsonSchema | null {
  try {
    return schema?.jsonSchema ?? null
  } catch {
    return {}
  }
}

/** A function that makes an agent is named by its tool, because it is not called to be listed. */
function subagentNames({ subagents }: AgentCore): string[] {
  const names = [...subagents].map(([tool, { config }]) => {
    return config.name ?? (isAgent(config.agent) ? config.agent.name : tool)
  })
  return [...new Set(names)]
}
