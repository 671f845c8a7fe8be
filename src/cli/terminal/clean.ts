/// <reference lib="es2024.string" />

import { stripVTControlCharacters } from 'node:util'

/** Marks that change the direction of what follows: they could make a line read as something else. */
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Text of a model, a tool or a store as one line in which no character can do anything to a terminal. */
export function oneLine(text: string): string {
  return shown(text).replace(/\s+/g, ' ').trim()
}

/** The same with its line breaks. */
export function cleanText(text: string): string {
  return shown(text.replaceAll('\r\n', '\n').replaceAll('\t', '  '))
}

/** Line breaks stay; every other control character becomes a space once no escape sequence is left. */
function shown(text: string): string {
  return stripVTControlCharacters(text.toWellFormed())
    .replace(/[^\P{Cc}\n]/gu, ' ')
    .replace(DIRECTION, '')
}
