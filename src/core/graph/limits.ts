// The dimensions of budgets: the numbers that limit a run, and the account of what the run has used.
//
// Owns:      each dimension's name, default, smallest value, words, and the counter it is held against; the account of a run.
// Called by: `grant/budget` makes limits of budgets; rules count in the account, and ask what is left.
// Must stay true:
//   - Every run has a number for every limit, and a zero for every counter that has not counted yet.
//   - A rule counts in the commit that uses something (I7). Nothing counts later, or twice.
//
// To add a dimension: a line in `TurnLimits`, `LIMITS` and `eachLimit`, and its counter in `Account`, `EMPTY_ACCOUNT` and
// `changedAccount`; then its place in the text of a row (`store/codec/parts`), and the rule that counts and refuses.

import { patched } from '../base/keep-shape.ts'
import { NO_USAGE, type Usage } from './content.ts'

/** The limits of one run. Users write them in a `Budget`, so these comments are the reference. */
export interface TurnLimits {
  /** Model calls of one run. Default 25. */
  readonly modelCalls: number
  /** Tool calls of one run. Default 1000. */
  readonly toolCalls: number
  /** Subagents one run may start. Default 100; no limit for an agent that is code (`reply`). */
  readonly children: number
  /** Subagents of one run at the same time; more wait their turn. Default 20. */
  readonly concurrency: number
  /** How deep delegation may go below the root. Default 3. */
  readonly depth: number
  /** How long one run may take, in milliseconds. Default: an hour; at the root a day. */
  readonly wallMs: number
}

interface Limit {
  /** The number of a run whose budgets do not name one. */
  readonly usual: number
  /** The smallest number that a budget may name. */
  readonly least: 0 | 1
  /** The counter of the account that must stay within it; absent: its rule compares something else, such as a clock. */
  readonly counter?: Exclude<keyof Account, 'usage' | 'uncertain'>
  /** Words for the thing counted, after a number. */
  readonly unit?: string
}

export const LIMITS: { readonly [Name in keyof TurnLimits]: Limit } = {
  modelCalls: { usual: 25, least: 1, counter: 'modelCalls', unit: 'model calls' },
  toolCalls: { usual: 1_000, least: 0, counter: 'toolCalls', unit: 'tool calls' },
  children: { usual: 100, least: 0, counter: 'children' },
  concurrency: { usual: 20, least: 1 },
  depth: { usual: 3, least: 0 },
  wallMs: { usual: 3_600_000, least: 1 },
}

/** Makes limits from a number for each name. All limits are made here, so they have one shape. */
export function eachLimit(of: (name: keyof TurnLimits) => number): TurnLimits {
  return {
    modelCalls: of('modelCalls'),
    toolCalls: of('toolCalls'),
    children: of('children'),
    concurrency: of('concurrency'),
    depth: of('depth'),
    wallMs: of('wallMs'),
  }
}

export const DEFAULT_LIMITS: TurnLimits = Object.freeze(eachLimit((name) => LIMITS[name].usual))

/** The amounts that the run has used and started. One account per run; a child's usage is added when it ends (I7). */
export interface Account {
  readonly modelCalls: number
  readonly toolCalls: number
  readonly children: number
  /** Children that may run now; at most `limits.concurrency`. */
  readonly live: number
  /** The ordinal of the next delegation without a key to let run: first come, first served. */
  readonly nextRelease: number
  readonly usage: Usage
  /** Ids of the nodes that ended `uncertain`, here and below, and that no person has settled. */
  readonly uncertain: readonly string[]
}

export const EMPTY_ACCOUNT: Account = {
  modelCalls: 0,
  toolCalls: 0,
  children: 0,
  live: 0,
  nextRelease: 0,
  usage: NO_USAGE,
  uncertain: [],
}

export function changedAccount(account: Account, patch: Partial<Account>): Account {
  const copy: Account = {
    modelCalls: account.modelCalls,
    toolCalls: account.toolCalls,
    children: account.children,
    live: account.live,
    nextRelease: account.nextRelease,
    usage: account.usage,
    uncertain: account.uncertain,
  }
  return patched(copy, patch)
}

/** A run with its limits and what it has used of them: a turn has both. */
interface MeteredRun {
  readonly limits: TurnLimits
  readonly account: Account
}

/** True where the run has a model call left, beside the wrap-up. */
export function mayCall({ account, limits }: MeteredRun): boolean {
  return account.modelCalls < limits.modelCalls
}

/** How many more tool calls a run may make. */
export function toolCallsLeft({ account, limits }: MeteredRun): number {
  return Math.max(0, limits.toolCalls - account.toolCalls)
}

/** Says a limit in words: `1 model call`, `25 model calls`. */
export function amountOf(limits: TurnLimits, name: 'modelCalls' | 'toolCalls'): string {
  const unit = LIMITS[name].unit ?? name
  return `${limits[name]} ${limits[name] === 1 ? unit.replace(/s$/, '') : unit}`
}

/** Tells people that a run ended at a limit. */
export function limitReached(limits: TurnLimits, name: 'modelCalls' | 'toolCalls'): string {
  return `The limit of ${amountOf(limits, name)} was reached.`
}

/** Tokens and US dollars. */
export interface Money {
  readonly tokens: number
  readonly usd: number
}

/** The spending of a run and all below it. */
export interface Spending {
  /** Null for no limit. */
  readonly limit: { readonly tokens: number | null; readonly usd: number | null }
  readonly spent: Money
  /** Reserved for calls that are in progress. */
  readonly held: Money
}

/** The delegations of a run and of all below it. */
export interface TreePlaces {
  /** How many may run at a time; null where only a run above has a limit. */
  readonly limit: number | null
  /** How many may run now; not counted without a limit. */
  readonly live: number
  /** Ids of the runs whose next delegation waits for room here: first come, first served. */
  readonly waiting: readonly string[]
}

/** The counter for a run that limits the delegations of its tree; null without a limit. */
export function newTreePlaces(limit: number | null): TreePlaces | null {
  return limit === null ? null : { limit, live: 0, waiting: [] }
}

/** How many delegations that share a key may run at the same time. */
export interface KeyLimit {
  readonly key: string
  readonly limit: number
}

/** The delegations of a conversation that share a key. */
export interface KeyPlaces {
  readonly key: string
  /** How many may run now. */
  readonly live: number
  /** Ids of delegations that wait: first come, first served. */
  readonly waiting: readonly string[]
}
