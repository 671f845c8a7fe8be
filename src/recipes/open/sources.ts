import path from 'node:path'
import { isLegateError } from '../../core/base/error.ts'
import type { Keeper } from '../../core/files/files.ts'
import { type AgentFile, EMPTY_AGENT_FILE } from '../agent-file/agent-file.ts'
import type { SubRecipe } from '../agent-file/recipe.ts'
import { type Definition, discover } from '../discovery/discover.ts'
import { loadDefinition } from '../discovery/load-definition.ts'
import { withProjectFiles } from '../discovery/project-files.ts'
import { discoverSkills, type Skill, withSkills } from '../discovery/skills.ts'
import type { OpenSpec, Surface } from '../inline/spec.ts'
import { subRecipeValues } from '../recipe/sub-recipes.ts'
import { type NoticeCode, noticesOf } from '../text/notice.ts'
import { readText } from '../text/read-text.ts'
import { invalid } from './arguments.ts'

/** A recipe, agent or skill that can be started or read by name. */
export type Source =
  | { readonly kind: 'subrecipe'; readonly name: string; readonly description: string; readonly subRecipe: SubRecipe }
  | { readonly kind: 'recipe' | 'agent'; readonly name: string; readonly description: string; readonly file: string }
  | { readonly kind: 'skill'; readonly name: string; readonly description: string; readonly skill: Skill }

/**
 * Lists what an agent may start by name: its sub-recipes first, then what discovery finds, read anew each time. Files
 * that rules withhold, and those that hide from models, are left out.
 */
export async function sourcesOf(
  { subRecipes, discover: folder }: OpenSpec,
  isKept: Keeper,
): Promise<readonly Source[]> {
  const own = subRecipes.map((subRecipe): Source => {
    return { kind: 'subrecipe', name: subRecipe.name, description: subRecipe.description ?? '', subRecipe }
  })
  if (folder === null) return own
  const [{ definitions }, { skills }] = await Promise.all([discover({ cwd: folder }), discoverSkills({ cwd: folder })])
  const found: Source[] = [
    ...definitions
      .filter(({ shadowedBy, isHidden, file }) => shadowedBy === null && !isHidden && !isKept(file))
      .map(definitionSource),
    ...skills.filter(({ file }) => !isKept(file)).map(skillSource),
  ]
  const taken = new Set(own.map(({ name }) => name))
  return [...own, ...found.filter(({ name }) => (taken.has(name) ? false : taken.add(name)))]
}

function definitionSource({ kind, name, description, file }: Definition): Source {
  return { kind, name, description, file }
}

function skillSource(skill: Skill): Source {
  return { kind: 'skill', name: skill.name, description: skill.description, skill }
}

/** Finds the source of this name. An unknown name is refused with a list of all names and of similar ones. */
export function findSource(name: string, sources: readonly Source[], surface: Surface): Source {
  const found = sources.find((one) => one.name === name)
  if (found !== undefined) return found
  const names = sources.map((one) => one.name).sort()
  const near = similarNames(name, names)
  const meant = near.length === 0 ? '' : ` Did you mean: ${near.join(', ')}?`
  if (surface === 'delegate') return invalid(`Source '${name}' not found.${meant}`)
  return invalid(`Unknown subrecipe '${name}'. Available: ${names.join(', ') || 'none'}.${meant}`)
}

const MOST_NEAR = 3

/** Finds similar names: one contains the other, or they are nearly equal. */
export function similarNames(name: string, names: readonly string[]): readonly string[] {
  const wanted = name.toLowerCase()
  const isNear = (other: string) => {
    const known = other.toLowerCase()
    return known.includes(wanted) || wanted.includes(known) || isTypo(wanted, known)
  }
  return wanted === '' ? [] : names.filter(isNear).slice(0, MOST_NEAR)
}

/** Tells whether two names differ by at most two letters. */
function isTypo(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 2 || Math.min(a.length, b.length) < 4 || Math.max(a.length, b.length) > 64)
    return false
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return (row[b.length] ?? 9) <= 2
}

/** A source with its values filled in. */
export interface LoadedSource {
  readonly definition: AgentFile
  /** Locked values that the call tried to set. */
  readonly refused: readonly string[]
  /** Values that match no parameter of the file. */
  readonly unknown: readonly string[]
}

export interface SourceOptions {
  readonly parameters: Readonly<Record<string, unknown>>
  /** Reads a file that a model names, if the calling agent may. */
  readonly readFile: (given: string) => Promise<string>
  /** Tells which files rules withhold from that agent. */
  readonly isKept: Keeper
  /** The project whose skills a file may start with. */
  readonly cwd: string
  /** Whether the child is told what AGENTS.md, CLAUDE.md and their like say. */
  readonly projectFiles: boolean
}

/** Reads the file of a source and fills in its values. */
export async function loadSource(source: Source, others: SourceOptions): Promise<LoadedSource> {
  const { parameters, isKept } = others
  if (source.kind === 'skill') return { definition: skillDefinition(source.skill), refused: [], unknown: [] }
  const place = sourceFile(source)
  await checkReadable(place, source.name)
  const given =
    source.kind === 'subrecipe' ? subRecipeValues(source.subRecipe, parameters) : { values: parameters, refused: [] }
  const isOfCall = (key: string) => Object.hasOwn(parameters, key) && !given.refused.some((locked) => locked === key)
  const options = {
    parameters: given.values,
    mode: 'lenient',
    isKept,
    ...place.inside,
    readFile: (named: string, key: string) =>
      isOfCall(key) ? others.readFile(named) : readValue(named, place, others),
  } as const
  try {
    const read = await loadDefinition(place.file, options)
    const own = await withSkills(read, others.cwd, isKept)
    const told = others.projectFiles ? await withProjectFiles(own, read, { cwd: others.cwd, isKept }) : own
    const definition = { ...read, instructions: told }
    const locked = new Set<string>(given.refused)
    const known = new Set(definition.parameters.map(({ key }) => key))
    const unknown = Object.keys(parameters).filter((key) => !known.has(key) && !locked.has(key))
    return { definition, refused: given.refused, unknown }
  } catch (error) {
    return invalid(`Failed to build subrecipe: ${loadFailure(error)}`)
  }
}

/** The file of a source and, for a sub-recipe, the folder that must contain it. */
export function sourceFile(source: Exclude<Source, { kind: 'skill' }>): SourceFile {
  if (source.kind !== 'subrecipe') return { file: source.file, inside: {} }
  const { path: file, folder } = source.subRecipe
  return { file, inside: { folder } }
}

interface SourceFile {
  readonly file: string
  readonly inside: { readonly folder?: string }
}

/**
 * Reads a file parameter: beside the recipe if the recipe names it, else among the runtime's files. A second name beside the recipe
 * may be one of a file elsewhere.
 */
async function readValue(named: string, { inside: { folder } }: SourceFile, others: SourceOptions): Promise<string> {
  try {
    if (folder !== undefined)
      return await readText(path.resolve(folder, named), { inside: folder, isKept: others.isKept, hasOneName: true })
  } catch {
    // No such file can be read there.
  }
  return others.readFile(named)
}

/** Reports a missing file, or one outside its folder, before anything else. */
async function checkReadable({ file, inside: { folder } }: SourceFile, name: string): Promise<void> {
  try {
    await readText(file, folder === undefined ? {} : { inside: folder })
  } catch (error) {
    invalid(`Failed to load subrecipe '${name}': ${loadFailure(error)}`)
  }
}

/** Tells a model why a file cannot be used, without quoting it: it may not be a recipe at all. */
export function loadFailure(error: unknown): string {
  const [notice] = noticesOf(error)
  if (notice === undefined) return isLegateError(error) ? error.message : 'it cannot be used'
  const { code, message, line, hint } = notice
  if (QUOTING.has(code)) return `it is no valid definition${line === null ? '' : `, see line ${line}`}`
  return hint === null ? message : `${message} (${hint})`
}

/** Kinds of findings that quote the file. */
const QUOTING: ReadonlySet<NoticeCode> = new Set([
  ...(['syntax', 'invalid_value', 'unknown_key', 'schema', 'extension', 'retry', 'template'] as const),
])

function skillDefinition({ name, description, instructions, file }: Skill): AgentFile {
  return { ...EMPTY_AGENT_FILE, dialect: 'goose', file, name, description, instructions }
}
