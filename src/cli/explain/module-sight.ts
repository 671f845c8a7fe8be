import { EMPTY_AGENT_FILE, type ModelUse, modelUse } from '../../doors/recipe.ts'
import { type AnyAgent, createRuntime, type Grant, isLegateError, type RuntimeOptions } from '../../index.ts'
import { CliError, EXIT } from '../command/command.ts'
import { loadModule } from '../definition/module-agent.ts'
import { cleanText, oneLine } from '../terminal/clean.ts'
import type { Paint } from '../terminal/paint.ts'

/** What can be said of an agent in code without running it. */
export interface AgentSight {
  readonly name: string
  readonly description: string
  readonly model: ModelUse
  readonly settings: object
  readonly instructions: string
  readonly prompt: string | null
  readonly tools: readonly ToolSight[]
  readonly subagents: readonly SubagentSight[]
  readonly sources: readonly SourceSight[]
  readonly input: unknown
  readonly output: unknown
  readonly grant: Grant | null
  readonly budget: object | null
}

export interface ToolSight {
  readonly name: string
  readonly description: string
  readonly verdict: 'allow' | 'ask' | 'deny'
  readonly reason: string
}

export interface SubagentSight {
  readonly tool: string
  /** Null where a function gives it, when it is started. */
  readonly agent: string | null
  readonly description: string
}

/** What must be started before its tools are known. */
export interface SourceSight {
  readonly name: string
  readonly needs: readonly string[]
}

export interface ModuleSight {
  readonly agents: readonly AgentSight[]
  /** What the module says of the runtime. */
  readonly grant: Grant | null
}

/** The agents of a module, or the one of this name. `named` is the model of `--model`. */
export async function moduleSight(
  file: string,
  { agent, model }: { readonly agent?: string | undefined; readonly model?: string | undefined } = {},
): Promise<ModuleSight> {
  const { agents, ...options } = await loadModule(file)
  const chosen = agent === undefined ? agents : agents.filter(({ name }) => name === agent)
  if (chosen.length === 0) {
    const names = agents.map(({ name }) => oneLine(name)).join(', ')
    const message = `${oneLine(file)} exports no agent "${oneLine(agent ?? '')}". There are: ${names}.`
    throw new CliError(message, EXIT.usage, { namesHelp: false })
  }
  const runtime = lookingAt(options)
  try {
    const verdictOf = (one: AnyAgent, request: string) => runtime.explain(one, request)
    const sights = chosen.map((one) => sightOf(one, modelOf(one, options, model), verdictOf))
    return { agents: sights, grant: options.grant ?? null }
  } finally {
    await runtime.close()
  }
}

/** Decides as the module's own runtime would, and does nothing else. */
function lookingAt({ grant, profiles }: RuntimeOptions): ReturnType<typeof createRuntime> {
  try {
    return createRuntime({ ...(grant === undefined ? {} : { grant }), ...(profiles === undefined ? {} : { profiles }) })
  } catch (error) {
    if (isLegateError(error)) throw new CliError(error.message, EXIT.usage, { namesHelp: false })
    throw error
  }
}

type VerdictOf = (agent: AnyAgent, request: string) => Pick<ToolSight, 'verdict' | 'reason'>

function sightOf(agent: AnyAgent, model: ModelUse, verdictOf: VerdictOf): AgentSight {
  const { name, description, instructions, prompt, settings, grant, budget, input, output } = agent
  const decided = (request: string) => {
    const { verdict, reason } = verdictOf(agent, request)
    return { verdict, reason }
  }
  const tools = [...agent.tools].map(([tool, { description: about }]) => {
    return { name: tool, description: about, ...decided(`tool:${tool}`) }
  })
  return {
    name,
    description,
    model,
    settings,
    instructions,
    prompt,
    tools,
    subagents: subagentsOf(agent),
    sources: sourcesOf(agent),
    input: input?.jsonSchema ?? null,
    output: output?.jsonSchema ?? null,
    grant: grant ?? null,
    budget: budget ?? null,
  }
}

function subagentsOf({ subagents }: AnyAgent): readonly SubagentSight[] {
  return [...subagents].map(([tool, { config }]) => {
    const { agent, name, description } = config
    if (typeof agent === 'function') return { tool, agent: name ?? null, description: description ?? '' }
    return { tool, agent: name ?? agent.name, description: description ?? agent.description }
  })
}

function sourcesOf({ sources }: AnyAgent): readonly SourceSight[] {
  return [...sources]
    .filter(([, { tools }]) => tools === null)
    .map(([name, { needs }]) => ({
      name,
      needs: needs.map((need) => `${need.domain}:${need.shown ?? need.name}`),
    }))
}

/** Its own, else that of the command line, else the module's, else the user's. Code that answers has none. */
function modelOf(agent: AnyAgent, options: RuntimeOptions, named: string | undefined): ModelUse {
  if (agent.reply !== null) return { name: null, where: 'its code', trouble: null }
  if (agent.model !== null) return { name: agent.model.id, where: 'its code', trouble: null }
  if (named !== undefined) return namedModel(named, '--model')
  if (typeof options.model === 'string') return namedModel(options.model, 'the module')
  if (options.model !== undefined) return { name: idOf(options.model), where: 'the module', trouble: null }
  return modelUse(EMPTY_AGENT_FILE)
}

function namedModel(name: string, where: string): ModelUse {
  return { ...modelUse({ ...EMPTY_AGENT_FILE, model: name }), where }
}

/** A model of the AI SDK has a provider and a name of its own. */
function idOf(model: object): string {
  const { id, provider, modelId } = model as Readonly<Record<string, unknown>>
  return typeof id === 'string' ? id : [provider, modelId].filter((part) => typeof part === 'string').join('/')
}

export function modelText({ name, where, trouble }: ModelUse): string {
  const who = name === null ? '' : `${name}, named by ${where}`
  return [who, trouble ?? ''].filter((text) => text !== '').join('; ')
}

/** A line for each that has something to say. */
export function factLines(facts: readonly (readonly [name: string, value: string])[], paint: Paint): string {
  return facts
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `  ${paint('dim', name.padEnd(9))} ${oneLine(value)}\n`)
    .join('')
}

export function grantLines({ use, ask, deny, delegate }: Grant): string {
  return [
    ['use', use],
    ['delegate', delegate],
    ['ask', ask],
    ['deny', deny],
  ]
    .flatMap(([name, rules]) => (rules === undefined ? [] : [`${String(name).padEnd(9)} ${[...rules].join(' ')}`]))
    .join('\n')
}

export function section(title: string, text: string, paint: Paint): string {
  if (text.trim() === '') return ''
  const lines = cleanText(text.trimEnd()).split('\n')
  return `${paint('bold', title)}\n${lines.map((line) => `  ${line}`.trimEnd()).join('\n')}\n`
}
