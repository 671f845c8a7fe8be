import type { SubRecipe } from '../recipe/recipe.ts'

/** Whose way the tools have: Aster's `subagent`, goose's `delegate` and `load`, or `Agent`. */
export const SURFACES = ['subagent', 'delegate', 'Agent'] as const
export type Surface = (typeof SURFACES)[number]

export const MODE_NAMES = ['auto', 'approve', 'smart_approve', 'chat'] as const
export type Mode = (typeof MODE_NAMES)[number]

/** Settings of a child where neither its call nor its definition says them. */
export interface ChildSettings {
  readonly provider?: string
  readonly model?: string
  readonly temperature?: number
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
