import { EVERYTHING, type Grant } from '../../core/grant/grant.ts'
import type { Tool } from '../../core/tool/tool.ts'
import type { MemoryToolsOptions } from '../../core/tools/memory-tools.ts'
import type { SubRecipe } from '../agent-file/recipe.ts'

/** The styles of the tools: Aster's `subagent`, goose's `delegate` with `load`, or `Agent`. */
export const SURFACES = ['subagent', 'delegate', 'Agent'] as const
export type Surface = (typeof SURFACES)[number]

export const MODE_NAMES = ['auto', 'approve', 'smart_approve', 'chat'] as const
export type Mode = (typeof MODE_NAMES)[number]

/** Settings of a child that neither its call nor its definition sets. */
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
  /** The folder whose definitions, with those of the user's home, can be started by name; null for none. */
  readonly discover: string | null
  readonly nested: boolean
  readonly compat: 'aster' | null
  readonly mode: Mode
  readonly settings: ChildSettings
  /** How many background children of one conversation may run at once; others wait. */
  readonly background: number
  /** How long results of background children can be read. */
  readonly keepMs: number
  readonly timeoutMs: number | null
  /** The working folder of children that choose none. */
  readonly cwd: string
  /** True where children are told what AGENTS.md, CLAUDE.md and their like say. */
  readonly projectFiles?: true
  /** How the extension `memory` of children keeps what it is told, where that is not as usual. */
  readonly memory?: MemoryToolsOptions
}

/** The task after an answer whose hooks decide whether it is the last one. */
export const STOP = 'recipe__stop'

const CHANGES = ['file.write:**', 'file.delete:**', 'exec:*', 'net:*']

/**
 * The modes as layers: `auto` adds nothing, `approve` asks for every tool, `smart_approve` asks for whatever changes
 * files, runs programs or contacts hosts, `chat` has no tools.
 */
export const MODES: Readonly<Record<Mode, Grant>> = Object.freeze({
  auto: { use: EVERYTHING },
  approve: { use: EVERYTHING, ask: ['tool:*', ...CHANGES] },
  smart_approve: { use: EVERYTHING, ask: CHANGES },
  chat: { use: ['model:*'] },
})

const open: WeakSet<Tool> = new WeakSet()

/** Marks a tool that starts subagents described by a model: children do not see it, and are refused if they call it. */
export function markOpen(tool: Tool): Tool {
  open.add(tool)
  return tool
}

export function isOpenTool(tool: Tool): boolean {
  return open.has(tool)
}
