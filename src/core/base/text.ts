// Texts for people: characters that cannot be seen, cuts in linear time, and places in a value.
//
// Owns:      which characters count as invisible, and how each is written out.
// Called by: whatever shows foreign text to a person: requests, errors, rules, the terminal, editors, the page.
// Must stay true (I11):
//   - `visible` and `visibleLines` leave no invisible character as it is, and drop none.
//   - All of it takes linear time, whatever the text.

/**
 * Gives a text on one line in which every character is visible: controls, line breaks, marks that change the direction,
 * unusual blanks and characters of no width appear as in JSON, such as `\n` and `\u009b`. Nothing is left out.
 */
export function visible(text: string): string {
  return text.replace(UNSEEN, escaped)
}

/** Makes every character of a text visible that somebody decides about, and keeps its lines and tabs. */
export function visibleLines(text: string): string {
  return text.replace(UNSEEN_IN_LINES, escaped)
}

/** Makes prose visible for people: its line breaks, tabs and joined letters stay as they are. */
export function visibleProse(text: string): string {
  return text.replace(UNSEEN_IN_PROSE, escaped)
}

/** True where the text holds visible characters only. */
export function isVisible(text: string): boolean {
  return text.search(UNSEEN) === -1
}

const UNSEEN = /(?:(?! )[\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]){1,256}/gu
const UNSEEN_IN_LINES = /(?:(?![ \n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]){1,256}/gu
const UNSEEN_IN_PROSE =
  /(?:(?![\n\t])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]){1,256}/gu

/** Each unit as JSON writes it, once it was needed: a hostile text has millions of them. */
const written = new Map([
  [9, '\\t'],
  [10, '\\n'],
  [13, '\\r'],
])

/** Takes a run of such characters at once: a call for each would take a second for 2 MB. */
function escaped(run: string): string {
  let text = ''
  for (let at = 0; at < run.length; at++) text += unit(run.charCodeAt(at))
  return text
}

function unit(code: number): string {
  const known = written.get(code)
  if (known !== undefined) return known
  const text = `\\u${code.toString(16).padStart(4, '0')}`
  written.set(code, text)
  return text
}

/**
 * Removes these characters from the end of the text, in linear time: `/[./-]+$/` would try each run of them again and again.
 */
export function trimEnd(text: string, characters: string): string {
  let end = text.length
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--
  return text.slice(0, end)
}

export type Path = readonly (string | number)[]

/** A place in a value as people write it: `tasks[0].title`, `headers["content-type"]`; empty for the root. Bounded. */
export function pathText(path: Path): string {
  let text = ''
  for (const key of path) {
    if (typeof key === 'string' && word.test(key)) text += text === '' ? key : `.${key}`
    else text += `[${typeof key === 'number' ? key : JSON.stringify(key.slice(0, maxLength))}]`
    if (text.length > maxLength) return `${text.slice(0, maxLength - 1).toWellFormed()}…`
  }
  return text
}

const word = /^[\p{L}_$][\p{L}\p{N}_$]*$/u
const maxLength = 200
