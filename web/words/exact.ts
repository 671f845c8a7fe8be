// Texts of others as people decide about them: each character is to be seen, and none may stall or rearrange the page.

import { visible, visibleLines, visibleProse } from 'legate/client'
import { jsonText } from './json-text.ts'

/** More marks than a letter of any language has: a browser needs seconds to stack thousands. */
const PILED = /(?<=\p{M}{12})\p{M}+/gu

/** Prose: marks that would rearrange it are written out. */
export function calm(text: string): string {
  return unpiled(visibleProse(text.replaceAll('\r\n', '\n')))
}

/** A text in which no letter carries thousands of marks: those beyond the first are written out. */
function unpiled(text: string): string {
  return text.replace(PILED, (marks) => Array.from({ length: marks.length }, (_, at) => unit(marks, at)).join(''))
}

function unit(text: string, at: number): string {
  return `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`
}

/** A text on one line: blanks, controls and marks of direction are written out. */
export function exactText(text: string): string {
  return unpiled(visible(text))
}

/** A value as JSON; each character of it can be seen. */
export function exactValue(value: unknown): string {
  return typeof value === 'string' ? exactText(JSON.stringify(value)) : unpiled(visibleLines(jsonText(value)))
}

/** Whether a text is to be seen as it is. */
export function isExact(text: string): boolean {
  return unpiled(visibleLines(text)) === text
}

/** The beginning of a text for a line or a note; the rest is not drawn. */
export function shortText(text: string, most: number): string {
  return calm(text.length > most ? `${text.slice(0, most).toWellFormed()}…` : text)
}
