import { randomUUID } from 'node:crypto'
import { LegateError } from './error.ts'
import { sha256 } from './hash.ts'

/** A random UUIDv7 of the given wall time in milliseconds. Ids say nothing about order; sequences do. */
export function freshId(now: number): string {
  return timeOf(now) + randomUUID().slice(15)
}

/**
 * The same ids for the same parent, label and ordinal, in every process: UUIDv7s with the parent's time.
 * The ids of one list differ in their last 8 characters, and a longer list begins with the shorter one.
 */
export function deriveIds(parentId: string, label: string, count: number): string[] {
  if (!isId(parentId)) throw new LegateError('internal', `"${parentId}" is not an id.`)
  if (!Number.isInteger(count) || count < 0 || count > maxDerived) {
    throw new LegateError('internal', `Cannot derive ${count} ids; ask for 0 to ${maxDerived}.`)
  }
  const digest = sha256(`${parentId}/${label}`)
  const variant = '89ab'.charAt(Number.parseInt(digest.charAt(3), 16) & 3)
  const head = `${parentId.slice(0, 13)}-7${digest.slice(0, 3)}-${variant}${digest.slice(4, 7)}-${digest.slice(7, 11)}`
  const low = Number.parseInt(digest.slice(11, 19), 16)
  return Array.from({ length: count }, (_, ordinal) => head + spread(low, ordinal))
}

/** True for an id in the one form we write: lower case, dashes, version 7. */
export function isId(text: unknown): text is string {
  return typeof text === 'string' && idForm.test(text)
}

/** What people read and type: the last 8 characters. */
export function shortId(id: string): string {
  return id.slice(-8)
}

/** Whether the id ends in what a person typed; case and dashes do not matter. An empty ending matches nothing. */
export function matchesId(id: string, ending: string): boolean {
  const wanted = bare(ending)
  return wanted !== '' && bare(id).endsWith(wanted)
}

const maxDerived = 100_000
const maxTime = 2 ** 48 - 1
const idForm = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

let lastTime = Number.NaN
let lastTimeText = ''

/** `tttttttt-tttt-7`; most ids of a burst share their millisecond, so the last text is kept. */
function timeOf(now: number): string {
  if (now === lastTime) return lastTimeText
  const whole = now >= 0 ? Math.min(Math.floor(now), maxTime) : 0
  const hex = whole.toString(16).padStart(12, '0')
  lastTime = now
  lastTimeText = `${hex.slice(0, 8)}-${hex.slice(8)}-7`
  return lastTimeText
}

/** An odd factor is a bijection on 32 bits: neighbours look different and no two ordinals meet. */
function spread(low: number, ordinal: number): string {
  const mixed = (low + Math.imul(ordinal, 0x9e3779b1)) >>> 0
  return mixed.toString(16).padStart(8, '0')
}

function bare(text: string): string {
  return text.replaceAll('-', '').toLowerCase()
}
