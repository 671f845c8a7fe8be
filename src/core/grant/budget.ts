// Budgets: the numbers beside a grant, and the limits that follow from them.
//
// Owns:      the type that users write, its check, and how several budgets combine.
// Called by: agent definitions and runtime options hold budgets; `runtime/start-run` and `delegation/child-authority` make the
//            limits of a run from them. The dimensions themselves are in `graph/limits`.
// Must stay true:
//   - For each number the smallest that any budget names counts; the default counts only where none names one.
//   - A child never gets more than a budget above it names (I1). Only the root sets how deep delegation may go.

import { DefinitionError } from '../base/error.ts'
import { DEFAULT_LIMITS, eachLimit, LIMITS, type Spending, type TurnLimits } from '../graph/limits.ts'

/** The numbers that hold for a run and all below it together. */
interface TreeBudget {
  /** Subagents of one run and all below it at a time; further ones queue. */
  readonly treeConcurrency?: number
  /** Tokens of one run and all below it. */
  readonly tokens?: number
  /** US dollars of one run and all below it. */
  readonly usd?: number
}

/** The numbers beside a grant. Omitted numbers have defaults. */
export interface Budget extends Partial<TurnLimits>, TreeBudget {}

const BUDGET_KEYS = [...Object.keys(LIMITS), 'treeConcurrency', 'tokens', 'usd'] as (keyof Budget)[]

export const ROOT_WALL_MS: number = 24 * 3_600_000

const ROOT_LIMITS: TurnLimits = { ...DEFAULT_LIMITS, wallMs: ROOT_WALL_MS }

/** The limits of a root run: for each number the smallest that a budget names, else the default. */
export function limitsOf(budgets: readonly (Budget | undefined)[]): TurnLimits {
  return smallest(budgets, ROOT_LIMITS)
}

/**
 * The limits of a child: its own budgets or the defaults, and never more than a budget above it names (I1). Only the root sets
 * how deep delegation may go.
 */
export function childLimits(
  own: readonly (Budget | undefined)[],
  above: readonly (Budget | undefined)[],
  hostDepth: number,
): TurnLimits {
  return eachLimit((name) => {
    const usual = name === 'depth' ? hostDepth : DEFAULT_LIMITS[name]
    const limit = least(own, name) ?? usual
    return Math.min(limit, name === 'depth' ? hostDepth : (least(above, name) ?? limit))
  })
}

/** The spending limit of a run: the smallest that a budget names; null when none names one. */
export function moneyOf(budgets: readonly (Budget | undefined)[]): Spending['limit'] | null {
  const tokens = least(budgets, 'tokens') ?? null
  const usd = least(budgets, 'usd') ?? null
  return tokens === null && usd === null ? null : { tokens, usd }
}

/** How many subagents a run and all below it may have at a time: the smallest number named; null when none is. */
export function treeLimitOf(budgets: readonly (Budget | undefined)[]): number | null {
  return least(budgets, 'treeConcurrency') ?? null
}

// A loop in code is no runaway model: a usual limit would cut a long list of its own.
/** The budget of an agent that is code: only a budget that names `children` limits them. */
export function codeBudget(own: Budget | undefined): Budget {
  return { children: 1_000_000, ...own }
}

/** The bounds of a root run. */
export interface RootBounds {
  readonly limits: TurnLimits
  readonly money: Spending['limit'] | null
  readonly treeLimit: number | null
}

export function rootBounds(budgets: readonly (Budget | undefined)[]): RootBounds {
  return { limits: limitsOf(budgets), money: moneyOf(budgets), treeLimit: treeLimitOf(budgets) }
}

/** Combines two budgets: each number is the smaller of the two. */
export function smallerBudget(a: Budget | undefined, b: Budget | undefined): Budget | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const both: { -readonly [Key in keyof Budget]: Budget[Key] } = {}
  for (const key of BUDGET_KEYS) {
    const said = least([a, b], key)
    if (said !== undefined) both[key] = said
  }
  return both
}

/** For each number the smallest that is named; the default where none is. */
function smallest(budgets: readonly (Budget | undefined)[], defaults: TurnLimits): TurnLimits {
  return eachLimit((name) => least(budgets, name) ?? defaults[name])
}

function least(budgets: readonly (Budget | undefined)[], key: keyof Budget): number | undefined {
  let found: number | undefined
  for (const budget of budgets) {
    const said = budget?.[key]
    if (found === undefined || (said ?? found) < found) found = said
  }
  return found
}

/** Reads a budget out of a row. Older rows say `turns` for `modelCalls`. */
export function storedBudget(budget: Budget & { readonly turns?: number }): Budget {
  if (!Object.hasOwn(budget ?? {}, 'turns')) return budget
  const { turns: modelCalls, ...others } = budget
  return modelCalls === undefined ? others : { ...others, modelCalls }
}

export function checkBudget(budget: Budget, where: string): void {
  if (typeof budget !== 'object' || budget === null) {
    throw new DefinitionError('definition', `${where}: a budget is an object of numbers.`)
  }
  const unknown = Object.keys(budget).filter((key) => !BUDGET_KEYS.includes(key as keyof Budget))
  if (unknown.length > 0) {
    const known = BUDGET_KEYS.join(', ')
    const wrong = unknown.map((key) => `"${key}"`).join(' or ')
    const hint = unknown.includes('turns') ? ' Write "modelCalls" for "turns".' : ''
    throw new DefinitionError('definition', `${where}: a budget has ${known}, not ${wrong}.${hint}`)
  }
  for (const [key, value] of Object.entries(budget)) checkNumber(key, value, where)
}

function checkNumber(key: string, value: number, where: string): void {
  if (key === 'usd' && Number.isFinite(value) && value >= 0) return
  if (key === 'usd') throw new DefinitionError('definition', `${where}: budget.usd must be a number of at least 0.`)
  const least = key === 'tokens' ? 0 : (LIMITS[key as keyof TurnLimits]?.least ?? 1)
  if (Number.isSafeInteger(value) && value >= least) return
  throw new DefinitionError('definition', `${where}: budget.${key} must be a whole number of at least ${least}.`)
}
