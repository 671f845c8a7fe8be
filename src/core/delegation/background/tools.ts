import type { AnyAgent, Subagents, Tools } from '../../agent/definition/agent.ts'
import type { NodeRun } from '../../agent/hooks/node-run.ts'
import { DefinitionError } from '../../base/error.ts'
import type { Tool } from '../../tool/tool.ts'
import type { OfferPlace } from '../../tool/toolkit.ts'
import { type BackgroundOptions, type BackgroundSpec, readBackground, splitSubagents } from './options.ts'
import { rowTool } from './row-tool.ts'
import { DESCRIPTIONS, schemasOf } from './schemas.ts'

type ToolName = keyof typeof DESCRIPTIONS

/**
 * Makes the tools with which an agent starts subagents that work beside it, and talks to them: `tools: {
 * ...backgroundSubagents() }`. The agent is notified of each end exactly once.
 */
export function backgroundSubagents(options: BackgroundOptions = {}): Tools & { readonly [Name in ToolName]: Tool } {
  const spec = readBackground(options)
  const schemas = schemasOf(spec)
  const names = Object.keys(schemas) as ToolName[]
  const made = names.map((name): [ToolName, Tool] => {
    const startsChild = name === 'subagent_spawn' || name === 'subagent_run'
    const input = schemas[name]
    const alsoTakes = startsChild ? ['agent_profile'] : []
    const operation = async (run: NodeRun, input: { readonly [key: string]: unknown }) =>
      (await import('./operate.ts')).runBackgroundTool(run, input, { tool: name, spec })
    const isShown = ({ depth }: OfferPlace) => !startsChild || spec.nested || depth === 0
    const description = DESCRIPTIONS[name]
    const own = rowTool({ name, description, input, alsoTakes, startsChild, isShown, operation })
    specs.set(own, spec)
    return [name, own]
  })
  return Object.fromEntries(made) as { readonly [Name in ToolName]: Tool }
}

interface HostDefinition {
  readonly subagents?: Subagents
  readonly tools?: Tools
}

/** Gives a host the tools to start those of its subagents that have `background`. */
export function withBackground(definition: object): object {
  const { subagents, tools = {} } = (definition ?? {}) as HostDefinition
  const split = splitSubagents(subagents)
  if (split === undefined) return definition
  const made = backgroundSubagents(split.options)
  const taken = Object.keys(made).find((name) => Object.hasOwn(tools, name))
  if (taken !== undefined) {
    const message = `agent(): subagents with background bring the tool "${taken}", which is among its tools already.`
    throw new DefinitionError('definition', message)
  }
  return { ...definition, subagents: split.others, tools: { ...tools, ...made } }
}

const specs: WeakMap<Tool, BackgroundSpec> = new WeakMap()

/** Tells whether a tool starts or talks to children in the background. */
export function isBackgroundTool(tool: Tool): boolean {
  return specs.has(tool)
}

/**
 * Lists the agents that an agent's tools may start in the background. The runtime must know them wherever it knows that
 * agent.
 */
export function backgroundAgents(tools: ReadonlyMap<string, Tool>): readonly AnyAgent[] {
  const found = new Set<AnyAgent>()
  for (const tool of tools.values()) {
    const spec = specs.get(tool)
    if (spec?.agent !== undefined) found.add(spec.agent)
    for (const agent of spec?.agents.values() ?? []) found.add(agent)
  }
  return [...found]
}
