import type { Block } from '../../core/graph/content.ts'
import { errorEnd, type ToolEnd } from '../../core/tool/result.ts'
import type { Surface } from '../inline/spec.ts'

/** Reads the arguments of a call field by field. A wrong type is refused; null counts as absent. */
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

  /** Reads a text; a blank one counts as absent. */
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

const MOST_IMAGES = 20
/** The most base64 characters of all images together. */
const MOST_CHARS = 20_000_000

/** Reads the images of a call in order. Anything else is refused before a child starts. */
export function readImages(given: readonly unknown[] | null): readonly Block[] {
  const items = given ?? []
  if (items.length > MOST_IMAGES) invalid(`Invalid parameters: images: at most ${MOST_IMAGES}, not ${items.length}`)
  let chars = 0
  return items.map((item, at) => {
    const place = `images[${at}]`
    const image = new Arguments(item, place)
    const data = image.text('data') ?? missing(place, 'data')
    const mediaType = image.text('mime_type') ?? missing(place, 'mime_type')
    chars += data.length
    if (chars > MOST_CHARS) invalid(`Invalid parameters: images: together at most ${MOST_CHARS / 1e6} MB as base64`)
    if (!/^image\/[\w.+-]+$/.test(mediaType)) {
      invalid(`Invalid parameters: ${place}.mime_type: ${JSON.stringify(mediaType.slice(0, 60))} is no image type`)
    }
    if (data.length % 4 === 1 || !/^[A-Za-z0-9+/\s]+(?:={1,2}\s*)?$/.test(data))
      invalid(`Invalid parameters: ${place}.data is not base64`)
    return { type: 'image', mediaType, data }
  })
}

function missing(place: string, field: string): never {
  return invalid(`Invalid parameters: ${place}: missing field \`${field}\``)
}

type Code = 'INVALID_PARAMS' | 'INVALID_REQUEST' | 'INTERNAL_ERROR'

/** Thrown to refuse a call before a child starts: words for the model, a code for programs. */
export class OpenRefusal extends Error {
  readonly code: Code

  constructor(code: Code, message: string) {
    super(message)
    this.code = code
  }
}

export function invalid(message: string): never {
  throw new OpenRefusal('INVALID_PARAMS', message)
}

/** Turns a refusal into the end of its node. goose begins its texts with `Error: `. */
export function refusedCall({ code, message }: OpenRefusal, surface: Surface): ToolEnd {
  const end = errorEnd(surface === 'delegate' ? `Error: ${message}` : message)
  return { ...end, output: { ...end.output, metadata: { error: { code, message } } } }
}
