import { DefinitionError } from '../base/error.ts'
import type { TurnLimits } from '../graph/rows.ts'

/** The numbers beside a grant. What is left out has the default. */
export interface Budget {
  /** Model calls of one run. */
  readonly turns?: number
  readonly toolCalls?: number
  /** Subagents one run may start. */
  readonly children?: number
  /** Subagents of one run at the same time; more wait their turn. */
  readonly concurrency?: number
  /** How deep delegation may go below the root. */
  readonly depth?: number
  readonly wallMs?: number
}

const HOUR_MS = 3_600_000

export const DEFAULT_LIMITS: TurnLimits = Object.freeze({
  turns: 25,
  toolCalls: 1_000,
  children: 100,
  concurrency: 20,
  depth: 3,
  wallMs: HOUR_MS,
})

export const ROOT_WALL_MS: number = 24 * HOUR_MS

/** The limits of one run: the smallest of what each budget says. `hostDepth` is null at the root. */
export function limitsOf(budgets: readonly (Budget | undefined)[], hostDepth: number | null): TurnLimits {
  const depth = least(budgets, 'depth', hostDepth ?? DEFAULT_LIMITS.depth)
  return {
    turns: least(budgets, 'turns', DEFAULT_LIMITS.turns),
    toolCalls: least(budgets, 'toolCalls', DEFAULT_LIMITS.toolCalls),
    children: least(budgets, 'children', DEFAULT_LIMITS.children),
    concurrency: least(budgets, 'concurrency', DEFAULT_LIMITS.concurrency),
    depth: hostDepth === null ? depth : Math.min(depth, hostDepth),
    wallMs: least(budgets, 'wallMs', hostDepth === null ? ROOT_WALL_MS : DEFAULT_LIMITS.wallMs),
  }
}

/** The smallest value any budget names; the default when none does. */
function least(budgets: readonly (Budget | undefined)[], key: keyof Budget, byDefault: number): number {
  let smallest: number | undefined
  for (const budget of budgets) {
    const said = budget?.[key]
    if (said !== undefined && (smallest === undefined || said < smallest)) smallest = said
  }
  return smallest ?? byDefault
}

export function checkBudget(budget: Budget, where: string): void {
  for (const [key, value] of Object.entries(budget)) {
    if (!(key in DEFAULT_LIMITS)) {
      const known = Object.keys(DEFAULT_LIMITS).join(', ')
      throw new DefinitionError('definition', `${where}: a budget has ${known}, not "${key}".`)
    }
    const least = key === 'depth' || key === 'children' || key === 'toolCalls' ? 0 : 1
    if (!Number.isSafeInteger(value) || value < least) {
      throw new DefinitionError('definition', `${where}: budget.${key} must be a whole number of at least ${least}.`)
    }
  }
}
