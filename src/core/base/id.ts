// Ids: fresh, derived and foreign ones, all in the form of a UUIDv7.
//
// Owns:      how ids are made, and how people shorten and type them.
// Called by: the runtime makes fresh ids for new trees; rules derive the ids of tasks and children; doors map foreign keys.
// Must stay true:
//   - An equal parent and label give equal ids in every process, so a repeated expand or spawn finds what it made before.
//   - Ids carry no order (sequences and ordinals do) and no authority (I9).

import { LegateError } from './error.ts'
import { nodeCrypto, sha256 } from './hash.ts'

/** A random UUIDv7 of the given wall time in milliseconds. Ids say nothing about order; sequences do. */
export function freshId(now: number, random: () => number = randomWord): string {
  return freshIds(now, 1, random)[0] as string
}

/** Several at once: one random draw, told apart by their last 8 characters. */
export function freshIds(now: number, count: number, random: () => number = randomWord): string[] {
  writeTime(now)
  writeWords(random(), random())
  return spreadIds(random(), count)
}

/**
 * Derives ids that are equal in every process for equal parent and label: UUIDv7s with the parent's time. The ids of one list
 * differ in their last 8 characters, and a longer list begins with the shorter one.
 */
export function deriveIds(parentId: string, label: string, count: number): string[] {
  if (parentId.length !== ID_LENGTH) throw new LegateError('internal', `"${parentId}" is not an id.`)
  if (!Number.isInteger(count) || count < 0 || count > maxDerived) {
    throw new LegateError('internal', `Cannot derive ${count} ids; ask for 0 to ${maxDerived}.`)
  }
  for (let at = 0; at < TIME_LENGTH; at++) id[at] = parentId.charCodeAt(at)
  return spreadIds(mix(parentId, label), count)
}

/** A text that others have chosen, with everything that distinguishes it from an equal text elsewhere. */
export interface ForeignKey {
  /** Null where the text belongs to nobody. */
  readonly owner: string | null
  /** Where the text comes from: equal texts of two surfaces never mean one thing. */
  readonly surface: string
  readonly agent: string
  readonly key: string
  /** A further part: the hash of the deleted tree that had the id of this text before. */
  readonly after?: string
}

/**
 * The id that stands for a foreign text in every process: 122 bits of the SHA-256 of its parts, each after its length, so that
 * no two lists of parts give one text. Its time part carries no time.
 */
export function foreignId({ owner, surface, agent, key, after }: ForeignKey): string {
  // JSON distinguishes the null of "nobody" from a text, and keeps a broken surrogate as it is.
  const given = [owner, surface, agent, key, ...(after === undefined ? [] : [after])]
  const parts = given.map((part) => JSON.stringify(part))
  const hex = sha256(parts.map((part) => `${part.length}:${part}`).join(''))
  const variant = VARIANTS[Number.parseInt(hex.slice(31, 32), 16) & 3] ?? '8'
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7${hex.slice(12, 15)}-${variant}${hex.slice(15, 18)}-${hex.slice(18, 30)}`
}

/** True for an id in the one form we write: lower case, dashes, version 7. */
export function isId(text: unknown): text is string {
  return typeof text === 'string' && idForm.test(text)
}

/** The form that people read and type: the last 8 characters. */
export function shortId(id: string): string {
  return id.slice(-8)
}

/**
 * True where the id ends in the letters that a person typed; case and dashes do not matter. An empty ending matches nothing.
 */
export function matchesId(id: string, ending: string): boolean {
  const wanted = bare(ending)
  return wanted !== '' && bare(id).endsWith(wanted)
}

const ID_LENGTH = 36
/** The characters in which the ids of one list differ. */
const WORD_LENGTH = 8
const maxDerived = 100_000
const maxTime = 2 ** 48 - 1
const idForm = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const DIGITS = Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0))
const VARIANTS = '89ab'

/**
 * The characters of the id that is being written: `tttttttt-tttt-7rrr-vrrr-rrrrwwwwwwww`. A text that is put together from parts is
 * slower to read ever after, and takes ten times the room.
 */
const id = Array.from('00000000-0000-7000-8000-000000000000', (character) => character.charCodeAt(0))
/** The characters of its time, `tttttttt-tttt`. */
const TIME_LENGTH = 13

/** Writes the first digits of a word of 32 bits. */
function writeDigits(at: number, word: number, count: number): void {
  for (let digit = 0; digit < count; digit++) id[at + digit] = DIGITS[(word >>> (28 - 4 * digit)) & 15] ?? 0
}

function writeTime(now: number): void {
  const whole = now >= 0 ? Math.min(Math.floor(now), maxTime) : 0
  const low = whole % 2 ** 16
  writeDigits(0, (whole - low) / 2 ** 16, 8)
  writeDigits(9, low << 16, 4)
}

/** Writes two random words between the time and the word in which the ids of one list differ. */
function writeWords(high: number, middle: number): void {
  writeDigits(15, high, 3)
  id[19] = VARIANTS.charCodeAt(high & 3)
  writeDigits(20, high << 12, 3)
  writeDigits(24, high << 24, 2)
  writeDigits(26, middle, 2)
}

/** Random words, drawn many at a time: one draw takes as long as a hundred ids. */
const drawn = new Uint32Array(1024)
let used = drawn.length

/** A random whole number below 2 ** 32. */
export function randomWord(): number {
  if (used === drawn.length) {
    // Not getRandomValues: it belongs to another module, which would have to be loaded too.
    nodeCrypto().randomFillSync(drawn)
    used = 0
  }
  return drawn[used++] ?? 0
}

/** Between one id of a list and the next. An odd number meets no word twice, and neighbours look different. */
const STEP = 0x9e3779b1

/** Writes the last word of each id of a list. */
function spreadIds(low: number, count: number): string[] {
  const ids: string[] = []
  for (let ordinal = 0; ordinal < count; ordinal++) {
    writeDigits(28, low + Math.imul(ordinal, STEP), WORD_LENGTH)
    ids.push(String.fromCharCode(...id))
  }
  return ids
}

const SLASH = 47

/**
 * Mixes `parentId/label` into 96 bits, writes 64 of them and gives the last word. It need not be secret: ids are no authority, and only our code chooses the input; a
 * cryptographic hash would be the most expensive part of a delegation.
 */
function mix(parentId: string, label: string): number {
  let a = 0x243f6a88
  let b = 0x85a308d3
  let c = 0x13198a2e
  const length = ID_LENGTH + 1 + label.length
  for (let at = 0; at < length; at++) {
    const code =
      at < ID_LENGTH ? parentId.charCodeAt(at) : at === ID_LENGTH ? SLASH : label.charCodeAt(at - ID_LENGTH - 1)
    a = Math.imul(a ^ code, 0x2c1b3c6d)
    b = Math.imul(b ^ (code + (a >>> 15)), 0x297a2d39)
    c = Math.imul(c ^ (code + (b >>> 13)), 0x1b56c4e9)
    a ^= c >>> 16
  }
  writeWords(finish(a ^ (b >>> 7)), finish(b ^ (c >>> 9)))
  return finish(c ^ (a >>> 11))
}

/** Spreads every bit over the whole word. */
function finish(word: number): number {
  let mixed = Math.imul(word ^ (word >>> 16), 0x21f0aaad)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
  return mixed ^ (mixed >>> 15)
}

function bare(text: string): string {
  return text.replaceAll('-', '').toLowerCase()
}
