// Makes foreign text safe to print. Texts of models, tools, files, servers and stores pass through here.
//
// Called by: everything in `cli` that prints.
//
// Must stay true:
// - No character can control the terminal: escapes and marks that change text direction are written out. `printable` does so last, where
//   the text leaves the program; the others also keep the lines and columns of a text as they were meant.
// - Nothing visible is dropped, and `exactLine` shows every character of what a person decides about (I11).

/// <reference lib="es2024.string" />

import { visible, visibleProse } from '../../core/base/text.ts'
import { wrap } from './width.ts'

/** Makes one line of a text from a model, a tool or a store: control characters become visible, and none is dropped. */
export function oneLine(text: string): string {
  return visibleProse(text.replace(/[ \t\r\n]+/g, ' ')).trim()
}

/** Cleans a text and keeps its line breaks. */
export function cleanText(text: string): string {
  return visibleProse(text.replaceAll('\r\n', '\n').replaceAll('\t', '  '))
}

/** Shows a text that somebody decides about, on one line and exactly: every blank and every character is visible. */
export function exactLine(text: string): string {
  return visible(text)
}

/**
 * Cleans everything that is written for people, whoever made the text: of all that controls a terminal only the colours of the command
 * line stay.
 */
export function printable(text: string): string {
  if (!CONTROL.test(text)) return text
  // A text that is split by a group has what the group found at the odd places.
  return text
    .split(OWN_COLOURS)
    .map((part, at) => (at % 2 === 1 ? part : visibleProse(part.replaceAll('\r\n', '\n'))))
    .join('')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const OWN_COLOURS = /(\u001b\[(?:1|2|22|31|32|33|36|39)m)/
const CONTROL = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

const INDENT = 4

export interface Room {
  /** Columns of the terminal; infinite if there is none. */
  readonly columns: number
  /** The column where the text begins. Default 0. */
  readonly from?: number
}

/** Breaks a text into lines that fit the terminal and indents all but the first, so that texts stay distinguishable. */
export function hangingLines(text: string, { columns, from = 0 }: Room): readonly string[] {
  const width = Math.max(LEAST, columns - from - 1)
  const { lines: first, hidden } = wrap(text, width, 1)
  if (hidden === 0) return first
  const rest = wrap(text.slice(text.length - hidden).trimStart(), width - INDENT)
  return [...first, ...rest.lines.map((line) => ' '.repeat(from + INDENT) + line)]
}

/** A narrower terminal breaks lines itself. */
const LEAST = 20

/** The width of a stream that people read. */
export function terminalWidth(stream: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>): number {
  return stream.isTTY ? stream.columns || 80 : Number.POSITIVE_INFINITY
}
