import type { Id } from '../../core/graph/rows.ts'
import { uuidOf } from '../../core/store/codec/short-text.ts'

/**
 * PostgreSQL takes no NUL in a text, and no half of a surrogate pair. Ids and names may have both: they are written as U+E000 and
 * four hex digits, and so is U+E000 itself.
 */
export function escaped(text: string): string {
  return STRANGE.test(text) ? text.replace(ALL_STRANGE, escapeUnit) : text
}

export function unescaped(text: string): string {
  return text.includes(MARK)
    ? text.replace(ESCAPED, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    : text
}

export function escapedOrNull(text: string | null | undefined): string | null {
  return text == null ? null : escaped(text)
}

const MARK = '\ue000'
const STRANGE = /[\0\ue000\ud800-\udfff]/u
const ALL_STRANGE = /[\0\ue000\ud800-\udfff]/gu
const ESCAPED = /\ue000([0-9a-f]{4})/g

function escapeUnit(unit: string): string {
  return MARK + unit.charCodeAt(0).toString(16).padStart(4, '0')
}

/**
 * The bytes of an id, as PostgreSQL reads them: a UUID has 16, and all other texts begin with ff. UUIDs that were made later are
 * greater, and come before other texts.
 */
export function keyOf(id: Id): string {
  return id.length === 36 && IS_UUID.test(id)
    ? `\\x${id.slice(0, 8)}${id.slice(9, 13)}${id.slice(14, 18)}${id.slice(19, 23)}${id.slice(24)}`
    : `\\xff${Buffer.from(escaped(id), 'utf8').toString('hex')}`
}

/** A key that is less than all others. */
export const FIRST_KEY = '\\x'

export function idOf(key: unknown): Id {
  if (key === null) return ''
  const bytes = key as Buffer
  if (bytes.length !== 16 || bytes[0] === 0xff) return unescaped(bytes.toString('utf8', 1))
  return uuidOf(bytes.toString('hex'))
}

const IS_UUID = /^(?!ff)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The span of turns: their lane, which is no turn. */
export function laneKey(laneId: Id): string {
  return `\\x2f${keyOf(laneId).slice(2)}`
}

/** The lane of a turn's span. */
export function laneOfKey(span: unknown): Id {
  return idOf((span as Buffer | null)?.subarray(1) ?? null)
}
