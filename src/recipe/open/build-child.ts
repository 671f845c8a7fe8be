import type { AgentCore } from '../../agent/agent.ts'
import type { NodeRun } from '../../agent/node-run.ts'
import { EVERYTHING } from '../../grant/grant.ts'
import type { Block, Content } from '../../graph/content.ts'
import type { ModelSettings } from '../../model/model.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import { sourceName } from '../extension/source-name.ts'
import { extensionNames } from '../run/inherit.ts'
import type { InlineAgent } from '../run/inline-agent.ts'
import { choiceOf, chooseModel } from './choose-model.ts'
import type { OpenCall } from './read-call.ts'
import { invalid } from './refusal.ts'
import type { Loaded } from './sources.ts'
import type { ChildSettings, OpenSpec } from './spec.ts'

/** A child as it will be started. */
export interface BuiltChild {
  readonly inline: InlineAgent
  /** Its first message. */
  readonly input: Content
  /** What the host should know of how it was started. */
  readonly notes: readonly string[]
}

interface ChildParts {
  readonly call: OpenCall
  readonly loaded: Loaded | null
  readonly spec: OpenSpec
  /** Where its programs run. */
  readonly cwd: string
}

/** Makes a child of a call and of what it names. Throws an OpenRefusal where that cannot be. */
export function buildChild(run: NodeRun, { call, loaded, spec, cwd }: ChildParts): BuiltChild {
  checkHidden(call.instructions)
  const definition = loaded?.definition ?? null
  const extensions = chosenExtensions(run.agent, call.extensions, definition)
  const config = { ...configured(), ...spec.settings }
  const inline: InlineAgent = {
    ...(definition === null ? AD_HOC : described(definition, spec)),
    name: safeName(call.source ?? (call.surface === 'delegate' ? 'delegate' : 'subagent')),
    instructions: definition?.instructions ?? '',
    summary: call.summary,
    context: call.context,
    model: chooseModel(run, [call.settings, choiceOf(run, definition ?? {}), config]),
    settings: settingsOf(run.agent, { call: call.settings, definition, config }),
    extensions: extensions.own,
    inherits: extensions.inherits,
    budget: { ...definition?.budget, ...turnsOf(call.settings, definition, config) },
    cwd,
    definitions: spec.cwd,
  }
  const refused = (loaded?.refused ?? []).map((key) => `The value of "${key}" is locked: yours was not used.`)
  const unknown = (loaded?.unknown ?? []).map((key) => `There is no parameter "${key}": your value was not used.`)
  return { inline, input: firstMessage(call, definition), notes: [...extensions.notes, ...refused, ...unknown] }
}

type Described = Omit<
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
>

/** A child of a task in words. What it may do is what its host passes on. */
const AD_HOC: Described = {
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

function described(definition: AgentFile, spec: OpenSpec): Described {
  const { description, tools, grant, neverAsks, output, retry, subRecipes } = definition
  return {
    ...AD_HOC,
    description,
    tools,
    narrowing: grant,
    ...(neverAsks ? { neverAsks } : {}),
    output: isRecipe(definition) ? null : output,
    response: isRecipe(definition) ? output : null,
    retry,
    open: subRecipes.length === 0 ? null : { ...spec, subRecipes },
  }
}

function isRecipe(definition: AgentFile | null): boolean {
  return definition?.dialect === 'recipe'
}

/** Characters that no person sees and every model reads. */
function checkHidden(text: string | null): void {
  if (/[\u{E0000}-\u{E007F}]/u.test(text ?? '')) invalid('Recipe contains potentially harmful content')
}

/** What it is asked: its own prompt and what the call adds, in this order, then the images. */
function firstMessage({ instructions, images }: OpenCall, definition: AgentFile | null): Content {
  const own = definition?.prompt ?? null
  const parts = [own, instructions].filter((part): part is string => part !== null && part.trim() !== '')
  const text = parts.length === 0 ? stockPrompt(definition) : parts.join('\n\n')
  if (images.length === 0) return text
  return [{ type: 'text', text } satisfies Block, ...images]
}

/** A recipe begins by itself; an agent or a skill is to do what it is for. */
function stockPrompt(definition: AgentFile | null): string {
  return isRecipe(definition) ? 'Begin.' : 'Begin the work that your instructions describe, and report what you did.'
}

interface Chosen {
  readonly own: InlineAgent['extensions']
  readonly inherits: InlineAgent['inherits']
  readonly notes: readonly string[]
}

/**
 * The extensions of a recipe are all that it has. An agent file, and a recipe without any, has its host's; the servers of
 * an agent file come beside them. What the call lists only narrows.
 */
function chosenExtensions(host: AgentCore, asked: readonly string[] | null, definition: AgentFile | null): Chosen {
  const listed = definition?.extensions ?? []
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

interface SettingSources {
  readonly call: ChildSettings
  readonly definition: AgentFile | null
  readonly config: ChildSettings
}

function settingsOf(host: AgentCore, { call, definition, config }: SettingSources): ModelSettings {
  const temperature =
    call.temperature ?? definition?.settings.temperature ?? config.temperature ?? host.settings.temperature
  return { ...host.settings, ...definition?.settings, ...(temperature === undefined ? {} : { temperature }) }
}

function turnsOf(
  call: ChildSettings,
  definition: AgentFile | null,
  config: ChildSettings,
): { readonly turns?: number } {
  const turns = call.maxTurns ?? definition?.budget?.turns ?? config.maxTurns
  return turns === undefined ? {} : { turns: Math.min(turns, Number.MAX_SAFE_INTEGER) }
}

/** What the environment says for all children. */
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

/** A name as agents have it. */
function safeName(name: string): string {
  const safe = name
    .replace(/[^\p{L}\p{N}_ .:@-]+/gu, '_')
    .replace(/^[^\p{L}\p{N}_]+/u, '')
    .slice(0, 100)
  return safe === '' ? 'subagent' : safe
}
