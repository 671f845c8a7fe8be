import { access, constants } from 'node:fs/promises'
import { messageOf } from '../../base/error.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import { EMPTY_AGENT_FILE } from '../agent-file/empty-agent-file.ts'
import { type Definition, discover } from '../discovery/discover.ts'
import { discoverSkills, type Skill } from '../discovery/skills.ts'
import { loadDefinition } from '../load-definition.ts'
import type { SubRecipe } from '../recipe/recipe.ts'
import { subRecipeValues } from '../recipe/sub-recipes.ts'
import { noticesOf } from '../text/notice.ts'
import { invalid } from './refusal.ts'
import type { OpenSpec, Surface } from './spec.ts'

/** Something that can be started, or read, by its name. */
export type Source =
  | { readonly kind: 'subrecipe'; readonly name: string; readonly description: string; readonly subRecipe: SubRecipe }
  | { readonly kind: 'recipe' | 'agent'; readonly name: string; readonly description: string; readonly file: string }
  | { readonly kind: 'skill'; readonly name: string; readonly description: string; readonly skill: Skill }

/** What an agent may start by name: its sub-recipes first, then what was found, read anew each time. */
export async function sourcesOf({ subRecipes, discover: folder }: OpenSpec): Promise<readonly Source[]> {
  const own = subRecipes.map((subRecipe): Source => {
    return { kind: 'subrecipe', name: subRecipe.name, description: subRecipe.description ?? '', subRecipe }
  })
  if (folder === null) return own
  const [{ definitions }, { skills }] = await Promise.all([discover({ cwd: folder }), discoverSkills({ cwd: folder })])
  const found: Source[] = [
    ...definitions.filter(({ shadowedBy }) => shadowedBy === null).map(definitionSource),
    ...skills.map((skill): Source => ({ kind: 'skill', name: skill.name, description: skill.description, skill })),
  ]
  const taken = new Set(own.map(({ name }) => name))
  return [...own, ...found.filter(({ name }) => (taken.has(name) ? false : taken.add(name)))]
}

function definitionSource({ kind, name, description, file }: Definition): Source {
  return { kind, name, description, file }
}

/** The source of this name. Refuses any other with those there are, in order, and those that are near. */
export function findSource(name: string, sources: readonly Source[], surface: Surface): Source {
  const found = sources.find((one) => one.name === name)
  if (found !== undefined) return found
  const names = sources.map((one) => one.name).sort()
  const near = nearTo(name, names)
  const meant = near.length === 0 ? '' : ` Did you mean: ${near.join(', ')}?`
  if (surface === 'delegate') return invalid(`Source '${name}' not found.${meant}`)
  return invalid(`Unknown subrecipe '${name}'. Available: ${names.join(', ') || 'none'}.${meant}`)
}

const MOST_NEAR = 3

/** One within the other, or nearly the same. */
export function nearTo(name: string, names: readonly string[]): readonly string[] {
  const wanted = name.toLowerCase()
  const isNear = (other: string) => {
    const known = other.toLowerCase()
    return known.includes(wanted) || wanted.includes(known) || isTypo(wanted, known)
  }
  return wanted === '' ? [] : names.filter(isNear).slice(0, MOST_NEAR)
}

/** Up to two letters are other, missing or too much. */
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

/** What a source says when it is started with these values. */
export interface Loaded {
  readonly definition: AgentFile
  /** Values that the call gave and that are locked. */
  readonly refused: readonly string[]
}

export interface LoadOptions {
  readonly parameters: Readonly<Record<string, unknown>>
  /** Reads the file of a `file` parameter, where the agent that calls may. */
  readonly readFile: (file: string) => Promise<string>
}

/** Reads the file of a source, with its values in their places. */
export async function loadSource(source: Source, { parameters, readFile }: LoadOptions): Promise<Loaded> {
  if (source.kind === 'skill') return { definition: skillDefinition(source.skill), refused: [] }
  const file = source.kind === 'subrecipe' ? source.subRecipe.path : source.file
  await checkReadable(file, source.name)
  const given =
    source.kind === 'subrecipe' ? subRecipeValues(source.subRecipe, parameters) : { values: parameters, refused: [] }
  try {
    const definition = await loadDefinition(file, { parameters: given.values, mode: 'lenient', readFile })
    return { definition, refused: given.refused }
  } catch (error) {
    return invalid(`Failed to build subrecipe: ${reasonOf(error)}`)
  }
}

async function checkReadable(file: string, name: string): Promise<void> {
  try {
    await access(file, constants.R_OK)
  } catch (error) {
    invalid(`Failed to load subrecipe '${name}': ${messageOf(error)}`)
  }
}

function reasonOf(error: unknown): string {
  const [notice] = noticesOf(error)
  if (notice === undefined) return messageOf(error)
  return notice.hint === null ? notice.message : `${notice.message} (${notice.hint})`
}

function skillDefinition({ name, description, instructions, file }: Skill): AgentFile {
  return { ...EMPTY_AGENT_FILE, dialect: 'goose', file, name, description, instructions }
}
