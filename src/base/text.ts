/**
 * Gives a text on one line in which every character is visible: controls, line breaks, marks that change the direction,
 * unusual blanks and characters of no width appear as in JSON, such as `\n` and `\u009b`. Nothing is left out.
 */
export function visible(text: string): string {
  return text.replace(UNSEEN, escaped)
}

/** Makes prose visible for people: its line breaks, tabs and joined letters stay as they are. */
export function visibleProse(text: string): string {
  return text.replace(UNSEEN_IN_PROSE, escaped)
}

/** True where the text holds visible characters only. */
export function isVisible(text: string): boolean {
  return text.search(UNSEEN) === -1
}

const UNSEEN = /(?! )[\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu
const UNSEEN_IN_PROSE =
  /(?![\n\t])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function escaped(found: string): string {
  return SHORT[found] ?? Array.from({ length: found.length }, (_, at) => unit(found.charCodeAt(at))).join('')
}

function unit(code: number): string {
  return `\\u${code.toString(16).padStart(4, '0')}`
}

/**
 * Removes these characters from the end of the text, in linear time: `/[./-]+$/` would try each run of them again and again.
 */
export function trimEnd(text: string, characters: string): string {
  let end = text.length
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--
  return text.slice(0, end)
}
