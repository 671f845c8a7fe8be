import { type Budget, smallerBudget } from '../../core/grant/budget.ts'
import type { Grant } from '../../core/grant/grant.ts'
import { matchName } from '../../core/grant/match.ts'
import type { MemoryToolsOptions } from '../../core/tools/memory-tools.ts'
import { type AgentFile, filesOfDefinition } from '../agent-file/agent-file.ts'
import { modelOf, safeName } from '../agent-file/names.ts'
import { namedAgents } from '../discovery/discover.ts'
import { checkStartable } from '../discovery/load-definition.ts'
import { withProjectFiles } from '../discovery/project-files.ts'
import { withSkills } from '../discovery/skills.ts'
import { fileExtensions } from '../extension/extension-sources.ts'
import type { InlineAgent } from '../inline/inline-agent.ts'
import type { Mode, OpenSpec } from '../inline/spec.ts'

/** The settings of whoever runs a file. */
export interface RootOptions {
  readonly model: string | null
  readonly grant: Grant | null
  readonly budget: Budget | undefined
  readonly mode: Mode
  readonly cwd: string
  readonly open: OpenSpec | null
  readonly memory: MemoryToolsOptions | undefined
  /** Whether it is told what AGENTS.md, CLAUDE.md and their like say. */
  readonly projectFiles: boolean
}

/** Builds the agent of a file that is run directly. */
export async function rootInline(file: AgentFile, options: RootOptions): Promise<InlineAgent> {
  const isRecipe = file.dialect === 'recipe'
  const { cwd } = options
  // A tool list without the word for delegation excludes it, and so does a file that denies it.
  const open = file.agents?.length === 0 || file.grant?.deny?.includes('agent:*') === true ? null : options.open
  checkStartable(file)
  const model = options.model ?? modelOf(file)
  return {
    form: 1,
    role: 'root',
    name: safeName(file.name),
    description: file.description,
    instructions: await instructionsOf(file, options),
    summary: false,
    context: null,
    prompt: file.prompt ?? (isRecipe ? 'Begin.' : null),
    model,
    settings: file.settings,
    tools: file.tools,
    extensions: fileExtensions(file),
    inherits: null,
    grant: options.grant,
    narrowing: file.grant,
    ...(file.neverAsks ? { neverAsks: true } : {}),
    ...(file.memory === null ? {} : { remembers: file.memory }),
    ...(file.hooks.length === 0 ? {} : { hooks: file.hooks }),
    mode: options.mode,
    budget: smallerBudget(budgetOf(file), options.budget) ?? {},
    input: file.input,
    output: isRecipe ? null : file.output,
    response: isRecipe ? file.output : null,
    retry: file.retry,
    open: open === null ? null : await withNamedAgents(open, file, cwd),
    cwd,
    definitions: cwd,
    ...(options.memory === undefined ? {} : { memory: options.memory }),
    files: filesOfDefinition(file),
    ...(options.model === null && model !== null ? { namesModel: true as const } : {}),
  }
}

async function instructionsOf(file: AgentFile, { cwd, projectFiles }: RootOptions): Promise<string> {
  const own = await withSkills(file, cwd)
  return projectFiles ? withProjectFiles(own, file, { cwd }) : own
}

/** Adds the agents that a file names. Null if it may start none but these, and none of them exists. */
async function withNamedAgents(open: OpenSpec, file: AgentFile, cwd: string): Promise<OpenSpec | null> {
  const named = open.discover === null ? await namedAgents(file, { cwd }) : []
  const subRecipes = [...open.subRecipes, ...file.subRecipes, ...named]
  const known = [...subRecipes.map(({ name }) => name), 'subagent', 'delegate']
  const isMeant = (pattern: string) => known.some((name) => matchName(pattern, name))
  const isIdle = open.discover === null && file.agents !== null && !file.agents.some(isMeant)
  return isIdle ? null : { ...open, subRecipes }
}

/** The number of turns that goose gives the agent a person runs. */
const ROOT_TURNS = 1_000

function budgetOf({ dialect, budget }: AgentFile): Budget | undefined {
  if (dialect !== 'recipe' && dialect !== 'goose') return budget ?? undefined
  const said = process.env['GOOSE_MAX_TURNS']?.trim() ?? ''
  return { modelCalls: /^[1-9]\d{0,8}$/.test(said) ? Number(said) : ROOT_TURNS, ...budget }
}
