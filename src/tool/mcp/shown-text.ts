import { MOST_DESCRIPTION } from './limits.ts'

/** Words of a server: without what people cannot see and models can read, and not endless. */
export function shownText(text: string): string {
  const visible = text.replaceAll('\r\n', '\n').replaceAll(UNSEEN, '').toWellFormed()
  return visible.length <= MOST_DESCRIPTION ? visible : `${visible.slice(0, MOST_DESCRIPTION).toWellFormed()} [cut]`
}

/** The same in one line: names, errors, lines of a list. */
export function shownLine(text: string): string {
  return shownText(text).replaceAll(/\s+/g, ' ').trim()
}

/** Invisible characters, those that change the direction, and all that control a terminal but tabs and line ends. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it takes out
const UNSEEN = /[\u{E0000}-\u{E007F}\u00AD\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF\0-\x08\x0B-\x1F\x7F-\x9F]/gu
