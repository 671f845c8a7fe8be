import { EVERYTHING, type Grant } from '../../grant/grant.ts'
import type { Tool } from '../../tool/tool.ts'
import type { SubRecipe } from '../recipe/recipe.ts'

/** Whose way the tools have: Aster's `subagent`, goose's `delegate` and `load`, or `Agent`. */
export const SURFACES = ['subagent', 'delegate', 'Agent'] as const
export type Surface = (typeof SURFACES)[number]

export const MODE_NAMES = ['auto', 'approve', 'smart_approve', 'chat'] as const
export type Mode = (typeof MODE_NAMES)[number]

/** Settings of a child where neither its call nor its definition says them. */
export interface ChildSettings {
  /** The provider of the model, such as `openai`. */
  readonly provider?: string
  /** The name of the model. */
  readonly model?: string
  /** How freely the model chooses its words. */
  readonly temperature?: number
  /** The most model calls of one child. */
  readonly maxTurns?: number
}

/** How an agent may start subagents that it describes itself. Plain data. */
export interface OpenSpec {
  readonly surfaces: readonly Surface[]
  readonly subRecipes: readonly SubRecipe[]
  /** Folder whose definitions, and those of the user's home, may be started by name too; null for none. */
  readonly discover: string | null
  readonly nested: boolean
  readonly compat: 'aster' | null
  readonly mode: Mode
  readonly settings: ChildSettings
  /** How many background children one conversation may have at work; more wait their turn. */
  readonly background: number
  /** How long results of background children can be read. */
  readonly keepMs: number
  readonly timeoutMs: number | null
  /** Where children work, unless they say otherwise. */
  readonly cwd: string
}

const CHANGES = ['file.write:**', 'file.delete:**', 'exec:*', 'net:*']

/**
 * How much an agent does without asking, as layers: `auto` adds nothing, `approve` asks for every tool, `smart_approve`
 * for what changes files, runs programs or reaches hosts, `chat` has no tools.
 */
export const MODES: Readonly<Record<Mode, Grant>> = Object.freeze({
  auto: { use: EVERYTHING },
  approve: { use: EVERYTHING, ask: ['tool:*', ...CHANGES] },
  smart_approve: { use: EVERYTHING, ask: CHANGES },
  chat: { use: ['model:*'] },
})

const open: WeakSet<Tool> = new WeakSet()

/** Marks a tool that starts subagents which a model describes: a child is not shown it, and refused when it calls it. */
export function markOpen(tool: Tool): Tool {
  open.add(tool)
  return tool
}

export function isOpenTool(tool: Tool): boolean {
  return open.has(tool)
}
