// Finds the recipes and agent files of a project and a user, by name.
//
// Owns: which of several definitions with one name is used (the nearest), and what a mention `@name` means.
// Called by: `legate doctor` and `chat`, `openSubagents({ discover })`, and files that name other agents.
//
// Must stay true:
// - It runs nothing and asks nobody.
// - A broken file becomes a notice and hides no other file.
// - Files are read anew each time: a definition that was just written is found.

import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { trimEnd } from '../../core/base/text.ts'
import { isAbsent } from '../../core/base/text-tree/tree.ts'
import { matchName } from '../../core/grant/match.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import type { SubRecipe } from '../agent-file/recipe.ts'
import { parseAgentFile } from '../dialects/load-agent-file.ts'
import { recipeTree } from '../recipe/read-recipe.ts'
import { openRecipe } from '../recipe/recipe-source.ts'
import { Fields } from '../text/fields.ts'
import { type Notice, NoticeReport, noticesOf, refuseFile } from '../text/notice.ts'
import { readTextNow } from '../text/read-text.ts'
import { parseYaml } from '../text/yaml.ts'
import { recipeName } from './load-definition.ts'
import { checkDiscovery, type DiscoveryOptions } from './options.ts'
import { type DefinitionPlace, definitionPlaces, filesBelow } from './places.ts'

/** A recipe or agent that was found, and whether a nearer one of its name replaces it. */
export interface Definition {
  readonly name: string
  readonly kind: 'recipe' | 'agent'
  readonly dialect: string
  readonly file: string
  readonly scope: 'project' | 'home'
  readonly description: string
  /** The file that is used instead; null if this one is used. */
  readonly shadowedBy: string | null
  /** Whether models are not offered it, because its file says so. */
  readonly isHidden: boolean
  readonly notices: readonly Notice[]
}

export interface DiscoveryResult {
  /** The definitions in search order: the first of a name is used. */
  readonly definitions: readonly Definition[]
  /** Files that could not be read, or that share a name in one folder. */
  readonly notices: readonly Notice[]
}

/** Finds every definition of a project, anew each time. It runs nothing, and a broken file does not affect others. */
export async function discover(options: DiscoveryOptions = {}): Promise<DiscoveryResult> {
  const definitions: Definition[] = []
  const notices: Notice[] = []
  const first = new Map<string, { readonly file: string; readonly folder: string }>()
  const files = definitionPlaces(options).flatMap((place) => filesIn(place).map((file) => ({ file, place })))
  for (const [at, { file, place }] of files.entries()) {
    if (at % 100 === 99) await setImmediate()
    const found = await readFound(file, place, notices)
    if (found === undefined) continue
    const nearer = first.get(found.name)
    if (nearer?.folder === place.folder) notices.push(duplicateNotice(found, nearer.file))
    if (nearer === undefined) first.set(found.name, { file, folder: place.folder })
    definitions.push(nearer === undefined ? found : { ...found, shadowedBy: nearer.file })
  }
  return { definitions, notices }
}

/**
 * Finds the definition of this name. Throws a RecipeError that lists similar names, or both files of an ambiguous one.
 */
export function findDefinition(name: string, { definitions, notices }: DiscoveryResult): Definition {
  const found = definitions.find((one) => one.name === name && one.shadowedBy === null)
  const clash = notices.find(({ code, message }) => code === 'ambiguous' && message.includes(`"${name}"`))
  if (clash !== undefined) throw refuseFile({ ...clash, hint: clash.hint ?? '' }, clash.file)
  if (found !== undefined) return found
  const off = notices.find(({ code, message }) => code === 'disabled' && message.startsWith(`"${name}" `))
  if (off !== undefined) throw refuseFile({ ...off, hint: 'Remove it to run it.' }, off.file)
  const near = nearNames(name, [...new Set(definitions.map((one) => one.name))])
  const rest = near.length === 0 ? 'Use load() to see available sources.' : `Did you mean: ${near.join(', ')}?`
  throw refuseFile({ code: 'not_found', message: `Source '${name}' not found. ${rest}` }, name)
}

/** Finds the definitions that a message mentions with an @; other words stay text. */
export function mentionedIn(text: string, definitions: readonly Definition[]): readonly Definition[] {
  const words = Array.from(text.matchAll(/(?<![\w@])@([\p{L}\p{N}_][\p{L}\p{N}_./-]*)/gu), ([, word = '']) => word)
  const named = new Set(words.flatMap((word) => [word, trimEnd(word, './-')]))
  return definitions.filter(({ name, shadowedBy }) => shadowedBy === null && named.has(name))
}

function nearNames(name: string, names: readonly string[]): string[] {
  const asked = name.toLowerCase()
  return names
    .filter((one) => asked.includes(one.toLowerCase()) || one.toLowerCase().includes(asked))
    .sort()
    .slice(0, 3)
}

/**
 * Lists the files of a place. If a recipe exists in several forms, the documented order applies: .yaml, .yml, .json.
 */
function filesIn({ folder, kind, isShared, inside }: DefinitionPlace): string[] {
  if (kind === 'recipe') {
    const isWanted = (name: string) => /^[^_.].*\.(?:ya?ml|json)$/i.test(name)
    const files = filesBelow(folder, { isWanted, isDeep: !isShared, inside })
    return files.sort((a, b) => formRank(a) - formRank(b))
  }
  return filesBelow(folder, { isWanted: (name) => /^[^_.].*\.(?:md|toml)$/i.test(name), isDeep: true, inside })
}

function formRank(file: string): number {
  return /\.yaml$/i.test(file) ? 0 : /\.yml$/i.test(file) ? 1 : 2
}

async function readFound(file: string, place: DefinitionPlace, notices: Notice[]): Promise<Definition | undefined> {
  let text = ''
  try {
    text = readTextNow(file)
    const found = place.kind === 'agent' ? await agentIn(text, file, notices) : await recipeIn(text, file, place)
    return found === undefined ? undefined : { ...found, file, scope: place.scope, kind: place.kind, shadowedBy: null }
  } catch (error) {
    const [notice] = noticesOf(error)
    if (notice === undefined) throw error
    if (!place.isShared || isSurelyRecipe(text)) notices.push(notice)
    return undefined
  }
}

/** Whether a file that cannot be read and lies among others is a recipe, as far as one can see. */
function isSurelyRecipe(text: string): boolean {
  return /^["']?title["']?[ \t]*:/m.test(text) && /^["']?(?:instructions|prompt)["']?[ \t]*:/m.test(text)
}

type DefinitionHead = Pick<Definition, 'name' | 'description' | 'dialect' | 'isHidden' | 'notices'>

async function agentIn(text: string, file: string, notices: Notice[]): Promise<DefinitionHead | undefined> {
  const agent: AgentFile | undefined = await parseAgentFile(text, file, { mode: 'lenient' })
  if (agent === undefined) return undefined
  if (agent.isDisabled) {
    notices.push(...agent.notices.filter(({ code }) => code === 'disabled'))
    return undefined
  }
  const { name, description, dialect, isHidden } = agent
  return { name, description, dialect, isHidden, notices: agent.notices }
}

/** Reads the part of a recipe that a list needs; whoever loads it checks the rest. */
async function recipeIn(
  text: string,
  file: string,
  { isShared }: DefinitionPlace,
): Promise<DefinitionHead | undefined> {
  if (isShared && !(/\btitle\b/.test(text) && /\b(?:instructions|prompt)\b/.test(text))) return undefined
  const report = new NoticeReport(file, true)
  const parsed = await parseYaml(text)
  const tree = parsed.ok ? parsed.tree : (await openRecipe(file, report)).tree
  const fields = new Fields(recipeTree(tree), report)
  if (isShared && (isAbsent(fields.get('title')) || fields.get('title')?.kind !== 'leaf')) return undefined
  const description = fields.requiredText('description')
  fields.requiredText('title')
  if (!isShared) report.check()
  return { name: recipeName(file), description, dialect: 'recipe', isHidden: false, notices: [] }
}

function duplicateNotice({ name, file }: Definition, other: string): Notice {
  const message = `"${name}" is the name of two definitions in one folder; the other is ${other}`
  const hint = 'Rename one of them.'
  if (recipeName(other) === name && recipeName(file) === name) {
    return { level: 'warning', code: 'shadowed', message, file, line: null, hint }
  }
  return { level: 'error', code: 'ambiguous', message, file, line: 1, hint }
}

/** Finds the definitions that a file says it delegates to, so that it can start them by name. */
export async function namedAgents(agent: AgentFile, options: DiscoveryOptions): Promise<readonly SubRecipe[]> {
  const { reaches, subRecipes, file } = agent
  if (reaches.length === 0) return []
  const own = new Set(subRecipes.map(({ name }) => name))
  const found = await definitionsFor(options)
  // A hidden one must be named: a star does not offer it to models.
  const isMeant = (one: Definition) =>
    reaches.some((name) => name === one.name || (!one.isHidden && matchName(name, one.name)))
  return found.filter((one) => isMeant(one) && one.file !== file && !own.has(one.name)).map(subRecipeOf)
}

/** Warns about each agent that a file names and that does not exist. */
export async function missingAgents(agent: AgentFile, options: DiscoveryOptions = {}): Promise<readonly Notice[]> {
  checkDiscovery('missingAgents(agent, options)', options)
  const names = agent.reaches.filter((name) => !name.includes('*'))
  if (names.length === 0) return []
  const known = new Set([...agent.subRecipes, ...(await definitionsFor(options))].map(({ name }) => name))
  return [...new Set(names)].filter((name) => !known.has(name)).map((name) => missing(name, agent.file))
}

async function definitionsFor(options: DiscoveryOptions): Promise<readonly Definition[]> {
  const { definitions } = await discover(options)
  return definitions.filter(({ shadowedBy }) => shadowedBy === null)
}

function missing(name: string, file: string): Notice {
  const message = `the agent \`${name}\` that it delegates to is not found here`
  const hint = 'legate doctor lists the definitions it finds. Add its file, or remove its name.'
  return { level: 'warning', code: 'not_found', message, file, line: null, hint }
}

const MOST_CHARS = 160

function subRecipeOf({ name, file, description }: Definition): SubRecipe {
  const line = description.replace(/\s+/g, ' ').trim()
  return {
    name,
    path: file,
    folder: path.dirname(file),
    values: {},
    locked: false,
    sequentialWhenRepeated: false,
    description: line.length <= MOST_CHARS ? line : `${line.slice(0, MOST_CHARS - 1).toWellFormed()}…`,
    line: null,
  }
}
