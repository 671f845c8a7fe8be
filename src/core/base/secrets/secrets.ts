import type { Json } from '../json.ts'
import { SECRET_MARK, withoutShapes } from './shapes.ts'

/**
 * Gives a text that may be shown and kept: without these secrets, their pieces and their encoded forms, and without anything
 * that looks like a secret. For errors, command lines and recordings. Data keeps values that only look like secrets: clean it
 * with `Secrets`.
 */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return withoutShapes(new Secrets(secrets).clean(text))
}

/** A shorter value would match everywhere. */
const SHORTEST = 6
/** A longer secret, such as a file of keys, is found by pieces that lie side by side: all of it, or all but the edges of a part. */
const LONG = 8_192
/** Pieces of a secret of this length are removed wherever they stand; shorter ones may be words. */
const PIECE = 12

/**
 * Removes known secrets from texts. Finds them also as URLs, JSON and base64 write them, with white space or invisible
 * characters inside, and split over several texts. Takes time in proportion to the texts, whatever they hold.
 */
export class Secrets {
  /** One finder per length of text to look for. */
  private readonly finders: readonly Finder[]

  constructor(values: Iterable<string>) {
    const pieces = new Set([...new Set(values)].flatMap(formsOf).flatMap(piecesOf))
    const lengths = new Map<number, string[]>()
    for (const piece of pieces) {
      const same = lengths.get(piece.length)
      if (same === undefined) lengths.set(piece.length, [piece])
      else same.push(piece)
    }
    this.finders = [...lengths.values()].map((same) => new Finder(same))
  }

  clean(text: string): string {
    return this.cleanAll([text])[0] ?? ''
  }

  /** Cleans every text in it, and every key. */
  cleanJson(value: Json): Json {
    if (this.finders.length === 0 || value === null || typeof value === 'number') return value
    if (typeof value === 'string') return this.clean(value)
    if (typeof value !== 'object') return value
    if (Array.isArray(value)) return value.map((item) => this.cleanJson(item as Json))
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [this.clean(key), this.cleanJson(item)]))
  }

  /** Cleans texts that a reader sees one after the other: a secret may span several. */
  cleanAll(texts: readonly string[]): string[] {
    const whole = texts.join('')
    const ranges = this.finders.flatMap((finder) => finder.rangesIn(whole))
    if (ranges.length === 0) return [...texts]
    const merged = merge(ranges)
    let [from, first] = [0, 0]
    return texts.map((text) => {
      const start = from
      from += text.length
      while (first < merged.length && endOf(merged[first]) <= start) first++
      return without(text, rangesUntil(merged, first, from), start)
    })
  }
}

/** The secret as it is, and as URLs, JSON and base64 write it. */
function formsOf(secret: string): string[] {
  const plain = secret.trim()
  if (plain.length < SHORTEST) return []
  const coded = [0, 1, 2].map((offset) => base64Of(plain, offset))
  const urlSafe = coded.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))
  const written = [plain, encodeURIComponent(plain.toWellFormed()), JSON.stringify(plain).slice(1, -1)]
  return [...written, ...coded, ...urlSafe, ...passwordsIn(plain)].filter(({ length }) => length >= SHORTEST)
}

/**
 * The part of the base64 that does not depend on its surroundings; `offset` is where the secret begins in a group of three
 * bytes.
 */
function base64Of(secret: string, offset: number): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)])
  const coded = bytes.toString('base64').replace(/=+$/, '')
  return coded.slice(offset === 0 ? 0 : offset + 1, bytes.length % 3 === 0 ? undefined : -1)
}

/** The password in an address such as `postgres://user:password@host/name`, as written and decoded. */
export function passwordsIn(value: string): string[] {
  if (!value.includes('://') || !URL.canParse(value)) return []
  const { password } = new URL(value)
  return [password, decoded(password)]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Pieces of addresses and paths occur in other texts too: these count only as a whole. */
function piecesOf(form: string): string[] {
  const bare = withoutBlanks(form, 0)
  if (bare.length < SHORTEST) return []
  if (bare.length <= PIECE || ADDRESS.test(bare)) return [bare]
  const last = bare.length - PIECE
  const step = bare.length > LONG ? PIECE : 1
  const count = Math.floor(last / step) + 1
  return [...Array.from({ length: count }, (_, at) => bare.slice(at * step, at * step + PIECE)), bare.slice(last)]
}

const ADDRESS = /^[\w+.-]+:\/\/|^(?:~|\.{0,2})\/[^/]+\//

/** White space, and characters that nobody sees: they may stand anywhere inside a secret. */
function isBlank(code: number): boolean {
  if (code > 0x20 && code < 0x7f) return false
  return code <= 0xa0 || BLANKS.has(code)
}

const BLANKS: ReadonlySet<number> = new Set([
  ...[0xad, 0x2028, 0x2029, 0x3000, 0xfeff],
  ...Array.from({ length: 0x10 }, (_, n) => 0x2000 + n),
  ...[0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x202f, 0x205f, 0x2060, 0x2061, 0x2062, 0x2063, 0x2064],
  // Halves of tag characters.
  ...[0xdb40, ...Array.from({ length: 0x80 }, (_, n) => 0xdc00 + n)],
])

/** Where a match begins and ends. */
type Range = readonly [from: number, to: number]

/** Finds texts of one length by a rolling hash. */
class Finder {
  private readonly pieces: ReadonlySet<string>
  private readonly length: number
  private readonly hashes: ReadonlySet<number>
  /** The upper halves of all hashes: one look here rules out most places. */
  private readonly halves: Uint8Array = new Uint8Array(65_536)
  /** The factor by which the oldest character leaves the rolling hash. */
  private readonly power: number

  constructor(pieces: readonly string[]) {
    this.pieces = new Set(pieces)
    this.length = pieces[0]?.length ?? 0
    this.hashes = new Set(pieces.map(hashOf))
    for (const hash of this.hashes) this.halves[hash >>> 16] = 1
    let power = 1
    for (let n = 1; n < this.length; n++) power = Math.imul(power, BASE)
    this.power = power
  }

  rangesIn(text: string): Range[] {
    const { length, power, halves } = this
    const found: Range[] = []
    /** A ring of the last characters that are not blank, and of their places. */
    const codes = new Uint16Array(length)
    const places = new Uint32Array(length)
    let hash = 0
    let slot = 0
    let count = 0
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (isBlank(code)) continue
      hash = (Math.imul((hash - Math.imul(codes[slot] ?? 0, power)) | 0, BASE) + code) | 0
      codes[slot] = code
      places[slot] = at
      slot = slot + 1 === length ? 0 : slot + 1
      count++
      if (count < length || halves[hash >>> 16] === 0 || !this.hashes.has(hash)) continue
      const from = places[slot] ?? at
      if (this.pieces.has(withoutBlanks(text.slice(from, at + 1), length))) add(found, [from, at + 1])
    }
    return found
  }
}

function withoutBlanks(text: string, length: number): string {
  if (text.length === length) return text
  return Array.from({ length: text.length }, (_, at) => text.charAt(at))
    .filter((unit) => !isBlank(unit.charCodeAt(0)))
    .join('')
}

const BASE = 16_777_619

function hashOf(text: string): number {
  let hash = 0
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, BASE) + text.charCodeAt(at)) | 0
  return hash
}

function merge(ranges: readonly Range[]): Range[] {
  const merged: Range[] = []
  for (const range of [...ranges].sort((a, b) => a[0] - b[0])) add(merged, range)
  return merged
}

/** Adds a range, and joins it with earlier ones that it touches. All of them begin before it. */
function add(ranges: Range[], [from, to]: Range): void {
  const last = ranges.at(-1)
  if (last !== undefined && from <= last[1]) ranges[ranges.length - 1] = [last[0], Math.max(last[1], to)]
  else ranges.push([from, to])
}

function endOf(range: Range | undefined): number {
  return range?.[1] ?? 0
}

/** The ranges from `first` on that begin before `end`. */
function rangesUntil(ranges: readonly Range[], first: number, end: number): readonly Range[] {
  let last = first
  while (last < ranges.length && (ranges[last]?.[0] ?? end) < end) last++
  return ranges.slice(first, last)
}

/** The text, which begins at `start`, with a mark for each range that touches it. */
function without(text: string, ranges: readonly Range[], start: number): string {
  let shown = ''
  let at = 0
  for (const [from, to] of ranges) {
    const [first, end] = [Math.max(from - start, at), Math.min(to - start, text.length)]
    if (end <= first) continue
    shown += `${text.slice(at, first)}${SECRET_MARK}`
    at = end
  }
  return shown + text.slice(at)
}
