/// <reference lib="es2024.string" />

import { visible, visibleProse } from '../../base/text.ts'
import { wrap } from './width.ts'

/** Text of a model, a tool or a store as one line in which no character can do anything to a terminal. None is left out. */
export function oneLine(text: string): string {
  return visibleProse(text.replace(/[ \t\r\n]+/g, ' ')).trim()
}

/** The same with its line breaks. */
export function cleanText(text: string): string {
  return visibleProse(text.replaceAll('\r\n', '\n').replaceAll('\t', '  '))
}

/** What somebody decides about, on one line and to the letter: no blank is left out, and every character can be seen. */
export function exactLine(text: string): string {
  return visible(text)
}

const INDENT = 4

export interface Room {
  /** Of the terminal; infinite where there is none. */
  readonly columns: number
  /** How far from its left edge the text begins. Default 0. */
  readonly from?: number
}

/** One text in lines that fit into a terminal; those below the first are indented, so that the next text is told from it. */
export function hanging(text: string, { columns, from = 0 }: Room): readonly string[] {
  const width = Math.max(LEAST, columns - from - 1)
  const { lines: first, hidden } = wrap(text, width, 1)
  if (hidden === 0) return first
  const rest = wrap(text.slice(text.length - hidden).trimStart(), width - INDENT)
  return [...first, ...rest.lines.map((line) => ' '.repeat(from + INDENT) + line)]
}

/** A terminal that is narrower shows its lines in pieces. */
const LEAST = 20

/** How wide a stream is that people look at. */
export function columnsOf(stream: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>): number {
  return stream.isTTY ? stream.columns || 80 : Number.POSITIVE_INFINITY
}
