import path from 'node:path'
import type { Tools } from '../../core/agent/definition/agent.ts'
import { DefinitionError } from '../../core/base/error.ts'
import { nodeFs } from '../../core/base/node-system.ts'
import {
  flag,
  int,
  list,
  listOf,
  number,
  type OptionRules,
  oneOf,
  orJust,
  positive,
  readOptions,
  record,
  text,
} from '../../core/base/options.ts'
import { MEMORY_OPTIONS, type MemoryToolsOptions } from '../../core/tools/memory-tools.ts'
import type { SubRecipe } from '../agent-file/recipe.ts'
import { type ChildSettings, MODE_NAMES, type Mode, type OpenSpec, SURFACES, type Surface } from '../inline/spec.ts'
import { openTools } from './tools.ts'

/** A file that can be started by name. By default it has no values, is not locked, and may run beside others. */
export type SubRecipeOption =
  | string
  | (Pick<SubRecipe, 'path'> & Partial<Omit<SubRecipe, 'path' | 'name' | 'line' | 'folder'>>)

export interface OpenOptions {
  /** Recipes and agent files that can be started by these names: a path, or { path, values, ... }. */
  readonly subRecipes?: { readonly [name: string]: SubRecipeOption }
  /** The names of the tools: `subagent`; `delegate` with `load`; `Agent`. Default: `subagent`. */
  readonly surfaces?: readonly Surface[]
  /**
   * Whether recipes, agent files and skills of this project and the user's home can be started by name. Default: no.
   */
  readonly discover?: boolean | string
  /** Whether children may start children with these tools, as deep as budgets allow. Default false. */
  readonly nested?: boolean
  /** `aster`: offers the tools only in mode auto, not to gemini models, and only beside other tools. */
  readonly compat?: 'aster'
  /** The mode of the agent that has the tools; only `compat` uses it. Default auto. */
  readonly mode?: Mode
  /** Settings of children that neither a call nor a definition sets. */
  readonly settings?: ChildSettings
  /** How many background tasks of one conversation may run at once; others wait. Default 5. */
  readonly background?: number
  /** How long `load` returns the result of an ended task before it reports it as expired. Default: a day. */
  readonly keepMs?: number
  /** The time limit of a child. Default: an hour. */
  readonly timeoutMs?: number
  /** The working folder of children. Default: the current folder. For an owner with files of its own it is always its workspace. */
  readonly cwd?: string
  /** Where the extension `memory` of children keeps what it is told, and whose it is. Default: as `memoryTools()`. */
  readonly memory?: MemoryToolsOptions
}

/**
 * Makes the tools with which a model starts subagents that it describes, in words or by the name of a file: `tools: {
 * ...openSubagents({ subRecipes: { stats: 'stats.yaml' } }) }`.
 */
export function openSubagents(options: OpenOptions = {}): Tools {
  return openTools(readOpenOptions(options))
}

const SETTINGS: OptionRules<ChildSettings> = { provider: text, model: text, temperature: number(0), maxTurns: int(1) }

const OPTIONS: OptionRules<OpenOptions> = {
  subRecipes: record,
  surfaces: listOf(oneOf(...SURFACES), SURFACES.map((surface) => `"${surface}"`).join(', ')),
  discover: (value) => (flag(value) === null || text(value) === null ? null : 'true, false or a folder'),
  nested: flag,
  compat: oneOf('aster'),
  mode: oneOf(...MODE_NAMES),
  settings: record,
  background: int(1),
  keepMs: positive,
  timeoutMs: positive,
  cwd: text,
  memory: record,
}

/** Checks the options, so that a mistake throws where you made it. */
export function readOpenOptions(options: OpenOptions): OpenSpec {
  const { surfaces = ['subagent'] } = readOptions('openSubagents()', options, OPTIONS)
  const settings = readOptions('openSubagents(): settings', options.settings ?? {}, SETTINGS)
  if (surfaces.length === 0) refuse(`surfaces are some of ${SURFACES.join(', ')}.`)
  const cwd = path.resolve(options.cwd ?? process.cwd())
  const { memory } = options
  if (memory !== undefined) readOptions('openSubagents(): memory', memory, MEMORY_OPTIONS)
  return {
    surfaces: [...new Set(surfaces)],
    subRecipes: Object.entries(options.subRecipes ?? {}).map(([name, one]) => readSubRecipe(name, one, cwd)),
    discover: folderOf(options.discover, cwd),
    nested: options.nested ?? false,
    compat: options.compat ?? null,
    mode: options.mode ?? 'auto',
    settings,
    background: options.background ?? backgroundLimit(),
    keepMs: options.keepMs ?? keptMs(),
    timeoutMs: options.timeoutMs ?? null,
    cwd,
    ...(memory === undefined ? {} : { memory }),
  }
}

function folderOf(discover: boolean | string | undefined, cwd: string): string | null {
  if (discover === undefined || discover === false) return null
  return discover === true ? cwd : path.resolve(discover)
}

type SubRecipeSettings = Partial<Omit<SubRecipe, 'name' | 'line' | 'folder'>>

const SUB_RECIPE: OptionRules<SubRecipeSettings> = {
  path: text,
  values: record,
  locked: (value) => (flag(value) === null || list(value) === null ? null : 'true, false or a list of names'),
  sequentialWhenRepeated: flag,
  description: orJust(null, text),
}

function readSubRecipe(name: string, given: SubRecipeOption, cwd: string): SubRecipe {
  const one: Partial<SubRecipe> = typeof given === 'string' ? { path: given } : given
  if (typeof one?.path !== 'string') refuse(`subRecipes.${name} is a path, or { path, values, ... }.`)
  readOptions<SubRecipeSettings>(`openSubagents(): subRecipes.${name}`, one, SUB_RECIPE)
  const place = path.resolve(cwd, one.path)
  if (nodeFs.statSync(place, { throwIfNoEntry: false })?.isFile() !== true) {
    refuse(`subRecipes.${name}: Sub-recipe file does not exist: ${place}`)
  }
  const { values = {}, locked = false, sequentialWhenRepeated = false, description = null } = one
  return {
    name,
    path: place,
    folder: path.dirname(place),
    values,
    locked,
    sequentialWhenRepeated,
    description,
    line: null,
  }
}

function backgroundLimit(): number {
  const said = process.env['GOOSE_MAX_BACKGROUND_TASKS']?.trim() ?? ''
  return /^[1-9]\d{0,4}$/.test(said) ? Number(said) : 5
}

const DAY_MS = 86_400_000

function keptMs(): number {
  const said = process.env['GOOSE_COMPLETED_TASK_TTL_SECS']?.trim() ?? ''
  return /^[1-9]\d{0,8}$/.test(said) ? Number(said) * 1_000 : DAY_MS
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `openSubagents(): ${message}`)
}
