import path from 'node:path'
import type { Agent } from '../core/agent/definition/agent.ts'
import { anything, code, flag, oneOf, orJust, readOptions, record, text } from '../core/base/options.ts'
import { type Budget, checkBudget } from '../core/grant/budget.ts'
import { checkGrant, type Grant } from '../core/grant/grant.ts'
import type { Content } from '../core/graph/content.ts'
import { namedModel } from '../core/model/named/named-model.ts'
import { asAgent } from '../core/runtime/standalone.ts'
import { MEMORY_OPTIONS, type MemoryToolsOptions } from '../core/tools/memory-tools.ts'
import type { AgentFile } from './agent-file/agent-file.ts'
import { MODE_NAMES, type Mode, type Surface } from './inline/spec.ts'
import { type OpenOptions, readOpenOptions } from './open/open-subagents.ts'
import type { RecipeOptions } from './recipe/load-recipe.ts'
import { buildCore } from './run/inline-core.ts'

export interface RecipeAgentOptions extends Pick<RecipeOptions, 'parameters' | 'ask' | 'readFile'> {
  /** How its file is read: `lenient` goes on where `strict` refuses. Default strict. */
  readonly reading?: 'strict' | 'lenient'
  /** `provider/model`, instead of what the file says. */
  readonly model?: string
  /**
   * The grant of the agent; its file can narrow it and never loosen it. Without one it reaches no files, programs, hosts or
   * secrets, as any agent: `{ use: ['tool:*', 'agent:*', 'model:*', 'file.*:/workspace/**'] }` lets it work on files.
   */
  readonly grant?: Grant
  /** How much one run of it may use. */
  readonly budget?: Budget
  /** How much it does without asking. Default auto. */
  readonly mode?: Mode
  /** Where its programs run. Default: the current folder. For an owner with files of its own they always run in its workspace. */
  readonly cwd?: string
  /** Where its extension `memory`, and that of its children, keeps what it is told, and whose it is. Default: as `memoryTools()`. */
  readonly memory?: MemoryToolsOptions
  /**
   * True: it is told what AGENTS.md, CLAUDE.md and their like say of the project in `cwd`, and so are the agents of files that it
   * starts. They grant nothing. Default false; files that the command line runs are told.
   */
  readonly projectFiles?: boolean
  /** How it may start subagents, beside its own sub-recipes; false: not at all. */
  readonly subagents?: Omit<OpenOptions, 'mode' | 'cwd' | 'memory'> | false
}

/**
 * The agent of a recipe or agent file. Its conversations keep all of it, so any process can go on with them without the
 * file. Throws a RecipeError with file, line and hint.
 */
export async function recipeAgent(
  source: string | AgentFile,
  options: RecipeAgentOptions = {},
): Promise<Agent<Content | undefined, unknown>> {
  readOptions('recipeAgent()', options, OPTIONS)
  const { grant, budget, mode = 'auto', model, subagents = {}, reading = 'strict', projectFiles = false } = options
  if (grant !== undefined) checkGrant(grant, 'recipeAgent()')
  if (budget !== undefined) checkBudget(budget, 'recipeAgent()')
  const { parameters, ask, readFile, memory } = options
  if (memory !== undefined) readOptions('recipeAgent({ memory })', memory, MEMORY_OPTIONS)
  const reader = {
    mode: reading,
    ...(parameters === undefined ? {} : { parameters }),
    ...(ask === undefined ? {} : { ask }),
    ...(readFile === undefined ? {} : { readFile }),
  }
  const { loadDefinition } = await import('./discovery/load-definition.ts')
  const { rootInline } = await import('./run/root-inline.ts')
  const file = typeof source === 'string' ? await loadDefinition(source, reader) : source
  checkParameters(file, parameters ?? {})
  const cwd = path.resolve(options.cwd ?? process.cwd())
  const surfaces = surfacesOf(file)
  const shared = memory === undefined ? {} : { memory }
  const spec = subagents === false ? null : readOpenOptions({ surfaces, ...subagents, mode, cwd, ...shared })
  const open = spec !== null && projectFiles ? { ...spec, projectFiles } : spec
  const root = { model: model ?? null, grant: grant ?? null, budget, mode, cwd, open, memory, projectFiles }
  const inline = await rootInline(file, root)
  return asAgent<Content | undefined, unknown, unknown>(buildCore(inline, undefined, namedModel))
}

/** A name that nobody defined is a slip of the finger: its default would be used. */
function checkParameters({ parameters }: AgentFile, given: Readonly<Record<string, unknown>>): void {
  const rules = Object.fromEntries((parameters ?? []).map(({ key }) => [key, anything]))
  readOptions<Readonly<Record<string, unknown>>>('recipeAgent(): parameters', given, rules)
}

/** Recipes that speak of delegates are written for the tools of that name. */
function surfacesOf({ instructions, prompt, extensions }: AgentFile): readonly Surface[] {
  const isSummoned = extensions?.some(({ name }) => name === 'summon') === true
  const speaksOfIt = /\bdelegates?\b|\bload\(/i.test(`${instructions}\n${prompt ?? ''}`)
  return isSummoned || speaksOfIt ? ['subagent', 'delegate'] : ['subagent']
}

const OPTIONS = {
  parameters: record,
  ask: orJust(false, code),
  readFile: code,
  reading: oneOf('strict', 'lenient'),
  model: text,
  grant: record,
  budget: record,
  mode: oneOf(...MODE_NAMES),
  cwd: text,
  memory: record,
  projectFiles: flag,
  subagents: orJust(false, record),
}
