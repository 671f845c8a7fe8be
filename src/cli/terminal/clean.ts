/// <reference lib="es2024.string" />

import { visible, visibleProse } from '../../base/visible.ts'

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
