import { isContextTurns } from '../../agent/build/conversation-settings.ts'
import type { Json } from '../../base/json.ts'
import { CONTEXT_TURNS } from '../../graph/kinds.ts'
import type { Wait } from '../../graph/rows.ts'
import type { ToolRefusal } from './row-tool.ts'

type Fields = { readonly [key: string]: unknown }

/** Reads the fields of a call strictly: a wrong field is refused with a code, and no value is coerced. */
export class FieldReader {
  private readonly prefix: string
  private readonly fields: Fields

  constructor(tool: string, fields: Fields) {
    this.prefix = `cybros.${tool}.`
    this.fields = fields
  }

  refuse(code: string, message: string, details: ToolRefusal['details'] = {}): never {
    throw new RefusedInput({ code: `${this.prefix}${code}`, message, details })
  }

  text(field: string): string {
    const value = this.fields[field]
    if (typeof value === 'string' && value.trim() !== '') return value
    return this.refuse(`${field}_is_required`, `${field} is required`)
  }

  optionalText(field: string): string | null {
    const value = this.fields[field]
    if (value === undefined || value === null) return null
    if (typeof value !== 'string') return this.refuse(`${field}_must_be_a_string`, `${field} must be a string`)
    return value.trim() === '' ? null : value
  }

  /** Reads an integer; null if the field is absent. */
  integer(field: string, { least, most }: { readonly least: number; readonly most: number }): number | null {
    const value = this.fields[field]
    if (value === undefined || value === null) return null
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
      const details = { value_class: classOf(value) }
      return this.refuse(`${field}_must_be_an_integer`, `${field} must be an integer`, details)
    }
    if (value >= least && value <= most) return value
    return this.refuse(`${field}_out_of_range`, `${field} must be between ${least} and ${most}`, { [field]: value })
  }

  profile(known: readonly string[]): string | null {
    const given = this.fields['policy_profile'] ?? this.fields['agent_profile']
    if (given === undefined || given === null) return null
    if (typeof given === 'string' && known.includes(given)) return given
    const shown: Json = typeof given === 'string' ? given : classOf(given)
    const message = `policy_profile must be one of ${known.join(', ')}`
    return this.refuse('invalid_policy_profile', message, { policy_profile: shown })
  }

  /** Reads a list of ids; null means all. */
  ids(field: string): readonly string[] | null {
    const value = this.fields[field]
    if (value === undefined || value === null) return null
    const isList = Array.isArray(value) && value.length > 0 && value.length <= MOST_IDS
    if (isList && value.every((id) => typeof id === 'string')) return value
    return this.refuse(`${field}_must_be_a_list`, `${field} must be a list of 1 to ${MOST_IDS} ids`)
  }

  join(): Wait['join'] {
    const value = this.fields['join'] ?? 'settled'
    if (value === 'all' || value === 'any' || value === 'settled') return value
    if (typeof value === 'number' && Number.isInteger(value) && value >= 1) return value
    return this.refuse('invalid_join', 'join is "all", "any", "settled" or how many must complete', {
      join: typeof value === 'string' ? value : classOf(value),
    })
  }

  losers(): 'leave' | 'cancel' {
    const value = this.fields['losers'] ?? 'leave'
    if (value === 'leave' || value === 'cancel') return value
    return this.refuse('invalid_losers', 'losers is "leave" or "cancel"')
  }
}

const MOST_IDS = 100

/** Thrown when a field of a call is invalid. */
export class RefusedInput extends Error {
  readonly refusal: ToolRefusal

  constructor(refusal: ToolRefusal) {
    super(refusal.message)
    this.refusal = refusal
  }
}

/** Normalizes the name of an agent: `My Agent` becomes `my_agent`. */
export function normalName(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_|_$/g, '')
}

export function agentKeyOf(name: string): string {
  const normal = normalName(name)
  return normal === '' ? 'subagent' : `subagent:${normal}`
}

/** Tells whether a key belongs to the conversation of a child. */
export function isSubagentKey(key: unknown): key is string {
  return typeof key === 'string' && (key === 'subagent' || key.startsWith('subagent:'))
}

/** Chooses how many rounds a child sees if its call does not say: the first valid number given, or 50. */
export function inheritedTurns(...said: readonly unknown[]): number {
  return said.find(isContextTurns) ?? CONTEXT_TURNS
}

function classOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value
}
