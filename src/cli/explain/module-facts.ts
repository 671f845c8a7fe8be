import type { Request } from '../../doors/grant.ts'
import { EMPTY_AGENT_FILE, type ModelUse, modelUse } from '../../doors/recipe.ts'
import { type AnyAgent, createRuntime, type Grant, isLegateError, type RuntimeOptions } from '../../index.ts'
import { CliError, EXIT } from '../command/command.ts'
import { loadModule } from '../definition/module-agent.ts'
import { cleanText, oneLine } from '../terminal/clean.ts'
import type { Paint } from '../terminal/paint.ts'

/** The facts about an agent in code that can be read without running it. */
export interface AgentFacts {
  readonly name: string
  readonly description: string
  readonly model: ModelUse
  readonly settings: object
  readonly instructions: string
  readonly prompt: string | null
  readonly tools: readonly ToolFacts[]
  readonly subagents: readonly SubagentFacts[]
  readonly sources: readonly SourceFacts[]
  readonly input: unknown
  readonly output: unknown
  readonly grant: Grant | null
  readonly budget: object | null
}

export interface ToolFacts {
  readonly name: string
  readonly description: string
  readonly verdict: 'allow' | 'ask' | 'deny'
  readonly reason: string
}

export interface SubagentFacts {
  readonly tool: string
  /** The name of the agent; null if a function makes it at the start. */
  readonly agent: string | null
  readonly description: string
}

/** A source that must be started before its tools are known. */
export interface SourceFacts {
  readonly name: string
  readonly needs: readonly string[]
}

export interface ModuleFacts {
  readonly agents: readonly AgentFacts[]
  /** The grant of the module's runtime options. */
  readonly grant: Grant | null
}

/** Describes the agents of a module, or the one with this name. `named` is the value of `--model`. */
export async function moduleFacts(
  file: string,
  { agent, model }: { readonly agent?: string | undefined; readonly model?: string | undefined } = {},
): Promise<ModuleFacts> {
  const { agents, ...options } = await loadModule(file)
  const chosen = agent === undefined ? agents : agents.filter(({ name }) => name === agent)
  if (chosen.length === 0) {
    const names = agents.map(({ name }) => oneLine(name)).join(', ')
    const message = `${oneLine(file)} exports no agent "${oneLine(agent ?? '')}". There are: ${names}.`
    throw new CliError(message, EXIT.usage, { namesHelp: false })
  }
  const runtime = decidingRuntime(options)
  try {
    const verdictOf = (one: AnyAgent, request: string) => runtime.explain(one, request)
    const sights = await Promise.all(chosen.map((one) => agentFacts(one, modelOf(one, options, model), verdictOf)))
    return { agents: sights, grant: options.grant ?? null }
  } finally {
    await runtime.close()
  }
}

/** Makes a runtime that decides as the module's own would, and runs nothing. */
function decidingRuntime({ grant, profiles }: RuntimeOptions): ReturnType<typeof createRuntime> {
  try {
    return createRuntime({ ...(grant === undefined ? {} : { grant }), ...(profiles === undefined ? {} : { profiles }) })
  } catch (error) {
    if (isLegateError(error)) throw new CliError(error.message, EXIT.usage, { namesHelp: false })
    throw error
  }
}

async function agentFacts(
  agent: AnyAgent,
  model: ModelUse,
  verdictOf: (agent: AnyAgent, request: string) => Promise<Pick<ToolFacts, 'verdict' | 'reason'>>,
): Promise<AgentFacts> {
  const { name, description, instructions, prompt, settings, grant, budget, input, output } = agent
  const tools: ToolFacts[] = []
  for (const [tool, { description: about }] of agent.tools) {
    const { verdict, reason } = await verdictOf(agent, `tool:${tool}`)
    tools.push({ name: tool, description: about, verdict, reason })
  }
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

/** A host that a secret is part of is not shown: nobody has allowed the secret yet. */
function needText(need: Request): string {
  const isHidden = 'holdsSecret' in need && need.holdsSecret === true
  return `${need.domain}:${isHidden ? '(a host that a secret is part of)' : (need.shown ?? need.name)}`
}

function subagentsOf({ subagents }: AnyAgent): readonly SubagentFacts[] {
  return [...subagents].map(([tool, { config }]) => {
    const { agent, name, description } = config
    if (typeof agent === 'function') return { tool, agent: name ?? null, description: description ?? '' }
    return { tool, agent: name ?? agent.name, description: description ?? agent.description }
  })
}

function sourcesOf({ sources }: AnyAgent): readonly SourceFacts[] {
  return [...sources]
    .filter(([, { tools }]) => tools === null)
    .map(([name, { needs }]) => ({
      name,
      needs: needs.map(needText),
    }))
}

/**
 * Chooses the model: the agent's, then `--model`, then the module's, then the user's. An agent that is code has none.
 */
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

/** Reads provider and name of an AI SDK model. */
function idOf(model: object): string {
  const { id, provider, modelId } = model as Readonly<Record<string, unknown>>
  return typeof id === 'string' ? id : [provider, modelId].filter((part) => typeof part === 'string').join('/')
}

export function modelText({ name, where, trouble }: ModelUse): string {
  const who = name === null ? '' : `${name}, named by ${where}`
  return [who, trouble ?? ''].filter((text) => text !== '').join('; ')
}

/** Formats one line for each fact that has a value. */
export function factLines(facts: readonly (readonly [name: string, value: string])[], paint: Paint): string {
  return facts
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `  ${paint('dim', name.padEnd(9))} ${oneLine(value)}\n`)
    .join('')
}

export function grantLines({ use, ask, free, deny, delegate }: Grant): string {
  return [
    ['use', use],
    ['delegate', delegate],
    ['ask', ask],
    ['free', free],
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
