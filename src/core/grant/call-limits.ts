import { DefinitionError } from '../base/error.ts'
import { int, type OptionRules, readOptions, record } from '../base/options.ts'

/** How many model calls may be made. */
export interface RateLimit {
  /** At the same time. Default: any number. */
  readonly concurrency?: number
  /** In any minute. Default: any number. */
  readonly perMinute?: number
}

/** Limits of model calls, over all processes that share the store. */
export interface CallLimits {
  /** For each owner that `owners` does not name. */
  readonly owner?: RateLimit
  /** For single owners, by their id. */
  readonly owners?: { readonly [id: string]: RateLimit }
  /** For models by name: `openai/*`. All calls that a pattern matches share its limit. */
  readonly models?: { readonly [pattern: string]: RateLimit }
}

const LIMITS: OptionRules<CallLimits> = { owner: record, owners: record, models: record }
const RATE: OptionRules<RateLimit> = { concurrency: int(1), perMinute: int(1, 1_000_000) }

/** Throws a DefinitionError for limits that cannot be meant. */
export function checkLimits(limits: CallLimits, where: string): void {
  const { owner, owners = {}, models = {} } = readOptions(where, limits, LIMITS)
  const named = [...Object.entries(owners), ...Object.entries(models)]
  for (const [name, limit] of [...(owner === undefined ? [] : [['owner', owner] as const]), ...named]) {
    if (record(limit) !== null) throw new DefinitionError('definition', `${where}: ${name} must be an object.`)
    readOptions(`${where}: ${name}`, limit, RATE)
  }
}
