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
