import { statSync } from 'node:fs'
import type { Keeper } from '../../core/files/files.ts'
import type { SubRecipe } from '../agent-file/recipe.ts'
import type { OpenSpec, Surface } from '../inline/spec.ts'
import { describeRecipe } from '../recipe/load-recipe.ts'
import { fixedDescription } from './schemas.ts'
import { sourcesOf } from './sources.ts'

/** Writes the description of a tool that starts subagents: a fixed part, and the names this agent may start. */
export async function describeOpen(spec: OpenSpec, surface: Surface, isKept: Keeper): Promise<string> {
  const lines = await Promise.all(spec.subRecipes.map(subRecipeLine))
  const parts = [fixedDescription(surface)]
  if (lines.length > 0) parts.push(`Available subrecipes:\n${lines.join('\n')}`)
  const others = (await sourcesOf(spec, isKept)).filter(({ kind }) => kind !== 'subrecipe')
  if (others.length > 0) {
    const named = others.map(
      ({ name, kind, description }) => `• ${name} (${kind}) - ${cut(description || 'No description')}`,
    )
    parts.push(`Other sources:\n${named.join('\n')}\n${MENTIONS}`)
  }
  return parts.join('\n\n')
}

const MENTIONS =
  'If the user writes @name, start the source of that name; if the user names it without @, or what is asked fits its description, start it where that helps.'

const MOST_CHARS = 160

function cut(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= MOST_CHARS ? line : `${line.slice(0, MOST_CHARS - 1)}…`
}

async function subRecipeLine(sub: SubRecipe): Promise<string> {
  const sequential = sub.sequentialWhenRepeated ? ' [run sequentially, not in parallel]' : ''
  const { params, description } = await paramsOf(sub)
  const said = (sub.description ?? '').trim() || description || 'No description'
  return `• ${sub.name}${sequential} - ${said}${params.length === 0 ? '' : ` (params: ${params.join(', ')})`}`
}

interface RecipeParams {
  readonly params: readonly string[]
  readonly description: string
}

interface CachedParams extends RecipeParams {
  readonly stamp: string
}

const kept: Map<string, CachedParams> = new Map()
const MOST_KEPT = 256

/** Lists the parameters of a sub-recipe; read again when the file changes, and empty if it is unreadable. */
async function paramsOf({ path, folder, values }: SubRecipe): Promise<RecipeParams> {
  const key = `${path}\n${Object.keys(values).join('\n')}`
  const stamp = stampOf(path)
  const known = kept.get(key)
  if (known !== undefined && known.stamp === stamp) return known
  const found = await readParams(path, folder, values)
  if (kept.size >= MOST_KEPT) kept.clear()
  kept.set(key, { ...found, stamp })
  return found
}

async function readParams(file: string, folder: string, values: SubRecipe['values']): Promise<RecipeParams> {
  try {
    const { parameters, description } = await describeRecipe(file, { mode: 'lenient', folder })
    const open = parameters.filter(({ key }) => !Object.hasOwn(values, key))
    const params = open.map(({ key, requirement, default: fallback }) => {
      return `${key} [${requirement === 'required' && fallback === null ? 'required' : 'optional'}]`
    })
    return { params, description: cut(description) }
  } catch {
    return NO_PARAMS
  }
}

const NO_PARAMS: RecipeParams = { params: [], description: '' }

function stampOf(file: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(file)
    return `${mtimeMs}/${size}/${ino}`
  } catch {
    return 'none'
  }
}
