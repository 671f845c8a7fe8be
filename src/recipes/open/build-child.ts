import type { AgentCore } from '../../core/agent/definition/agent.ts'
import type { NodeRun } from '../../core/agent/hooks/node-run.ts'
import { messageOf } from '../../core/base/error.ts'
import { EVERYTHING } from '../../core/grant/grant.ts'
import type { Block, Content } from '../../core/graph/content.ts'
import type { ModelSettings } from '../../core/model/model.ts'
import {
  aliasOf,
  defaultModelOf,
  fullModelName,
  isNoModel,
  providerTrouble,
} from '../../core/model/named/model-names.ts'
import { sourceName } from '../../core/tool/source.ts'
import { type AgentFile, filesOfDefinition } from '../agent-file/agent-file.ts'
import { safeName } from '../agent-file/names.ts'
import { withMemory } from '../extension/extension-sources.ts'
import { extensionNames, type InlineAgent } from '../inline/inline-agent.ts'
import type { ChildSettings, OpenSpec } from '../inline/spec.ts'
import { invalid } from './arguments.ts'
import type { OpenCall } from './read-call.ts'
import type { LoadedSource } from './sources.ts'

/** A child that is ready to start. */
export interface BuiltChild {
  readonly inline: InlineAgent
  /** Its first message. */
  readonly input: Content
  /** Notes for the host about how the child was started. */
  readonly notes: readonly string[]
}

interface ChildParts {
  readonly call: OpenCall
  readonly loaded: LoadedSource | null
  readonly spec: OpenSpec
  /** The working folder of its programs. */
  readonly cwd: string
  /** The file of the definition that a run of the tree may write; null for none. */
  readonly withheld: string | null
}

/** Builds a child from a call and the file it names. Throws an OpenRefusal if that is not possible. */
export function buildChild(run: NodeRun, { call, loaded, spec, cwd, withheld }: ChildParts): BuiltChild {
  checkHidden(call.instructions)
  const definition = loaded?.definition ?? null
  const extensions = chosenExtensions(run.agent, call.extensions, definition)
  const config = { ...configured(), ...spec.settings }
  const model = chooseModel(run, [call.settings, choiceOf(run, definition ?? {}), config])
  const inline: InlineAgent = {
    ...(definition === null ? AD_HOC : described(definition, spec)),
    name: safeName(call.source ?? (call.surface === 'delegate' ? 'delegate' : 'subagent')),
    instructions: definition?.instructions ?? '',
    summary: call.summary,
    context: call.context,
    model,
    settings: settingsOf(run.agent, call.settings, definition, config),
    extensions: extensions.own,
    inherits: extensions.inherits,
    budget: { ...definition?.budget, ...turnsOf(call.settings, definition, config) },
    cwd,
    definitions: spec.cwd,
    ...(spec.memory === undefined ? {} : { memory: spec.memory }),
    files: definition === null ? [] : filesOfDefinition(definition),
    ...(withheld === null ? {} : { withheld }),
    ...(model !== null && isNamed([call.settings, definition ?? {}]) ? { namesModel: true as const } : {}),
  }
  const refused = (loaded?.refused ?? []).map((key) => `The value of "${key}" is locked: yours was not used.`)
  const unknown = (loaded?.unknown ?? []).map((key) => `There is no parameter "${key}": your value was not used.`)
  return { inline, input: firstMessage(call, definition), notes: [...extensions.notes, ...refused, ...unknown] }
}

/** Tells whether the call or the file, and not the code, chooses the model. */
function isNamed(choices: readonly ModelChoice[]): boolean {
  return choices.some(({ provider, model }) => blank(provider) !== null || withoutInherit(model) !== null)
}

type ChildDefinition = Omit<
  InlineAgent,
  | 'name'
  | 'instructions'
  | 'summary'
  | 'context'
  | 'model'
  | 'settings'
  | 'extensions'
  | 'inherits'
  | 'budget'
  | 'cwd'
  | 'definitions'
  | 'memory'
  | 'files'
  | 'withheld'
  | 'namesModel'
>

/** The definition of a child described in words. It may do what its host passes on. */
const AD_HOC: ChildDefinition = {
  form: 1,
  role: 'child',
  description: 'Ad-hoc subagent task',
  prompt: null,
  tools: { allow: null, deny: [] },
  grant: { use: EVERYTHING },
  narrowing: null,
  mode: 'auto',
  input: null,
  output: null,
  response: null,
  retry: null,
  open: null,
}

function described(definition: AgentFile, spec: OpenSpec): ChildDefinition {
  const { description, tools, grant, neverAsks, hooks, memory, output, retry, subRecipes } = definition
  return {
    ...AD_HOC,
    description,
    tools,
    narrowing: grant,
    ...(neverAsks ? { neverAsks } : {}),
    ...(memory === null ? {} : { remembers: memory }),
    ...(hooks.length === 0 ? {} : { hooks }),
    output: isRecipe(definition) ? null : output,
    response: isRecipe(definition) ? output : null,
    retry,
    open: subRecipes.length === 0 ? null : { ...spec, subRecipes },
  }
}

function isRecipe(definition: AgentFile | null): boolean {
  return definition?.dialect === 'recipe'
}

/** Refuses characters that models read and people cannot see. */
function checkHidden(text: string | null): void {
  if (/[\u{E0000}-\u{E007F}]/u.test(text ?? '')) invalid('Recipe contains potentially harmful content')
}

/** Builds the first message: the file's own prompt, the text of the call, then the images. */
function firstMessage({ instructions, images }: OpenCall, definition: AgentFile | null): Content {
  const own = definition?.prompt ?? null
  const parts = [own, instructions].filter((part): part is string => part !== null && part.trim() !== '')
  const text = parts.length === 0 ? stockPrompt(definition) : parts.join('\n\n')
  if (images.length === 0) return text
  return [{ type: 'text', text } satisfies Block, ...images]
}

/** The message for a call without text: a recipe begins by itself, an agent or a skill is asked to do its work. */
function stockPrompt(definition: AgentFile | null): string {
  return isRecipe(definition) ? 'Begin.' : 'Begin the work that your instructions describe, and report what you did.'
}

interface ExtensionChoice {
  readonly own: InlineAgent['extensions']
  readonly inherits: InlineAgent['inherits']
  readonly notes: readonly string[]
}

/**
 * Chooses the extensions. A recipe has only its own. An agent file, or a recipe without any, has its host's, plus its
 * own servers. The list of the call can only narrow.
 */
function chosenExtensions(
  host: AgentCore,
  asked: readonly string[] | null,
  definition: AgentFile | null,
): ExtensionChoice {
  const listed = definition === null ? [] : withMemory(definition)
  const isAsked = (name: string) => asked === null || asked.some((one) => sourceName(one) === sourceName(name))
  const own = listed.filter(({ name }) => isAsked(name))
  const ownNames = listed.map(({ name }) => name)
  if (isRecipe(definition) && definition?.extensions != null) {
    return { own, inherits: null, notes: missing(asked, ownNames) }
  }
  const known = extensionNames(host)
  const inherits = asked === null ? 'all' : known.filter(isAsked)
  return { own, inherits, notes: missing(asked, [...known, ...ownNames]) }
}

function missing(asked: readonly string[] | null, known: readonly string[]): readonly string[] {
  const names = new Set(known.map(sourceName))
  const unknown = [...new Set(asked ?? [])].filter((name) => !names.has(sourceName(name)))
  if (unknown.length === 0) return []
  const others = known.length === 0 ? 'There is none.' : `There are: ${known.join(', ')}.`
  return [`Extensions not found: ${unknown.join(', ')}. ${others}`]
}

function settingsOf(
  host: AgentCore,
  call: ChildSettings,
  definition: AgentFile | null,
  config: ChildSettings,
): ModelSettings {
  const temperature =
    call.temperature ?? definition?.settings.temperature ?? config.temperature ?? host.settings.temperature
  return { ...host.settings, ...definition?.settings, ...(temperature === undefined ? {} : { temperature }) }
}

function turnsOf(
  call: ChildSettings,
  definition: AgentFile | null,
  config: ChildSettings,
): { readonly turns?: number } {
  const turns = call.maxTurns ?? definition?.budget?.modelCalls ?? config.maxTurns
  return turns === undefined ? {} : { turns: Math.min(turns, Number.MAX_SAFE_INTEGER) }
}

/** Reads the settings that the environment gives all children. */
function configured(): ChildSettings {
  const provider = variable('GOOSE_SUBAGENT_PROVIDER')
  const model = variable('GOOSE_SUBAGENT_MODEL')
  const said = variable('GOOSE_SUBAGENT_MAX_TURNS') ?? variable('ASTER_SUBAGENT_MAX_TURNS') ?? ''
  return {
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(/^[1-9]\d{0,8}$/.test(said) ? { maxTurns: Number(said) } : {}),
  }
}

function variable(name: string): string | undefined {
  const value = process.env[name]?.trim()
  return value === undefined || value === '' ? undefined : value
}

/** The choice of one of those who may choose a model; blank means no choice. */
export interface ModelChoice {
  readonly provider?: string | null | undefined
  readonly model?: string | null | undefined
}

/**
 * Chooses the model of a child as `provider/model`; null for its host's. The first choice that says anything decides. A
 * provider alone means the model named with it in a later choice, or its default.
 */
function chooseModel(run: NodeRun, choices: readonly ModelChoice[]): string | null {
  const said = choices.map(({ provider, model }) => ({ provider: blank(provider), model: withoutInherit(model) }))
  const at = said.findIndex(({ provider, model }) => provider !== null || model !== null)
  const first = said[at]
  if (first === undefined) return null
  const hosts = hostModel(run)
  const rest = [...said.slice(at + 1), hosts]
  const name =
    first.model === null ? byProvider(first.provider ?? '', rest) : byModel(run, first.model, { first, rest })
  if (name === `${hosts.provider}/${hosts.model}`) return null
  check(run, name)
  return name
}

/** Reads the choice of a file: its model decides its provider, even if its host has another. */
function choiceOf({ home: { agents } }: NodeRun, { provider, model }: ModelChoice): ModelChoice {
  const said = withoutInherit(model)
  if (said === null || blank(provider) !== null || agents.hasModelNamed(said)) return { provider, model: said }
  return { provider: null, model: fullModelName(said) ?? said }
}

interface ReadChoice {
  readonly provider: string | null
  readonly model: string | null
}

function byProvider(provider: string, rest: readonly ReadChoice[]): string {
  const same = rest.find((one) => one.provider === provider && one.model !== null)
  const model = same?.model ?? defaultModelOf(provider)
  if (model !== undefined) return `${provider}/${model}`
  return invalid(
    `Failed to create provider '${provider}': ${providerTrouble(provider) ?? 'it has no default model; name one'}`,
  )
}

function byModel(
  run: NodeRun,
  model: string,
  { first, rest }: { first: ReadChoice; rest: readonly ReadChoice[] },
): string {
  if (first.provider !== null) return `${first.provider}/${model}`
  if (run.home.agents.hasModelNamed(model) || model.includes('/')) return model
  return aliasOf(model) ?? `${rest.find(({ provider }) => provider !== null)?.provider ?? 'unknown'}/${model}`
}

/** Refuses, before anything starts, a provider that is unknown or has no key. */
function check(run: NodeRun, name: string): void {
  if (run.home.agents.hasModelNamed(name)) return
  const provider = name.slice(0, Math.max(0, name.indexOf('/')))
  try {
    const trouble = providerTrouble(provider)
    if (trouble !== undefined) invalid(`Failed to create provider '${provider}': ${trouble}`)
    run.home.agents.modelNamed(name).id.toString()
  } catch (error) {
    invalid(
      `Failed to create provider '${provider}': ${messageOf(error).replace(/^Failed to create provider '[^']*': /, '')}`,
    )
  }
}

function hostModel(run: NodeRun): ReadChoice {
  const id = run.model?.id ?? ''
  const slash = id.indexOf('/')
  return slash < 1 ? { provider: null, model: null } : { provider: id.slice(0, slash), model: id.slice(slash + 1) }
}

function blank(text: string | null | undefined): string | null {
  return text == null || text.trim() === '' ? null : text.trim()
}

/** Treats `inherit` and `default`, in any case, as no choice. */
function withoutInherit(model: string | null | undefined): string | null {
  const said = blank(model)
  return said === null || isNoModel(said) ? null : said
}
