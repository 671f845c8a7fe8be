import { invalid } from './refusal.ts'

/** The arguments of a call, field by field. What has another type is refused; null counts as left out. */
export class Arguments {
  readonly fields: Readonly<Record<string, unknown>>
  private readonly at: string

  constructor(given: unknown, at = '') {
    this.at = at
    if (typeof given !== 'object' || given === null || Array.isArray(given)) this.wrong('', given, 'an object')
    this.fields = given as Readonly<Record<string, unknown>>
  }

  has(key: string): boolean {
    return this.value(key) !== undefined
  }

  /** Blank counts as left out. */
  text(key: string): string | null {
    const value = this.value(key)
    if (value === undefined) return null
    if (typeof value !== 'string') this.wrong(key, value, 'a string')
    return value.trim() === '' ? null : value
  }

  flag(key: string): boolean | null {
    const value = this.value(key)
    if (value === undefined) return null
    if (typeof value !== 'boolean') this.wrong(key, value, 'a boolean')
    return value
  }

  number(key: string): number | null {
    const value = this.value(key)
    if (value === undefined) return null
    if (typeof value !== 'number' || !Number.isFinite(value)) this.wrong(key, value, 'a number')
    return value
  }

  list(key: string): readonly unknown[] | null {
    const value = this.value(key)
    if (value === undefined) return null
    if (!Array.isArray(value)) this.wrong(key, value, 'a sequence')
    return value
  }

  texts(key: string): readonly string[] | null {
    const items = this.list(key)
    for (const [at, item] of (items ?? []).entries()) {
      if (typeof item !== 'string') this.wrong(`${key}[${at}]`, item, 'a string')
    }
    return items as readonly string[] | null
  }

  object(key: string): Arguments | null {
    const value = this.value(key)
    return value === undefined ? null : new Arguments(value, key)
  }

  refuseUnknown(known: readonly string[]): void {
    const unknown = Object.keys(this.fields).find((key) => !known.includes(key))
    if (unknown !== undefined) invalid(`Invalid parameters: unknown field \`${unknown}\``)
  }

  private value(key: string): unknown {
    return Object.hasOwn(this.fields, key) ? (this.fields[key] ?? undefined) : undefined
  }

  private wrong(key: string, value: unknown, expected: string): never {
    const where = [this.at, key].filter((part) => part !== '').join('.')
    return invalid(
      `Invalid parameters: ${where === '' ? '' : `${where}: `}invalid type: ${kindOf(value)}, expected ${expected}`,
    )
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'sequence'
  if (typeof value === 'string') return `string ${JSON.stringify(value.slice(0, 40))}`
  if (typeof value === 'number') return `${Number.isInteger(value) ? 'integer' : 'floating point'} \`${value}\``
  return typeof value === 'boolean' ? `boolean \`${value}\`` : 'map'
}
