const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
/** Code units that are taken apart at once: what that takes grows with their square. */
const PIECE = 128
const ASCII = /^[ -~]*$/
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u
const INVISIBLE = /^[\p{M}\p{Cf}\p{Cc}\u115f-\u11ff]+$/u

/** How many columns of a terminal a text takes: wide characters two, marks that combine none. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const grapheme of graphemesIn(text)) width += widthOfGrapheme(grapheme)
  return width
}

/** What a person takes for one character each. One that is longer than a piece comes in several. */
export function* graphemesIn(text: string): Generator<string> {
  let at = 0
  while (at < text.length) {
    if (isAlone(text, at)) yield text.charAt(at++)
    else at = yield* graphemesOfPiece(text, at)
  }
}

/** Of ASCII nothing joins what follows it but a carriage return. */
function isAlone(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code < 0x80 && code !== 0x0d && !(text.charCodeAt(at + 1) >= 0x80)
}

/** Gives where it ends: the last one may go on behind the piece. */
function* graphemesOfPiece(text: string, from: number): Generator<string, number> {
  let [at, last] = [from, '']
  for (const { segment } of graphemes.segment(text.slice(from, from + PIECE))) {
    if (last !== '') yield last
    at += last.length
    last = segment
  }
  if (at > from && from + PIECE < text.length) return at
  yield last
  return at + last.length
}

/** At most so many columns of the text, with `…` where something is missing. Never half a character. */
export function cut(text: string, columns: number): string {
  if (columns <= 0) return ''
  if (text.length <= columns && ASCII.test(text)) return text
  let width = 0
  let fits = ''
  for (const grapheme of graphemesIn(text)) {
    width += widthOfGrapheme(grapheme)
    if (width > columns) return `${fits.trimEnd()}…`
    // One column is kept for the sign that something is missing.
    if (width < columns) fits += grapheme
  }
  return text
}

/** The same with the end of the text, and `…` before it. */
export function cutFront(text: string, columns: number): string {
  if (columns <= 0) return ''
  if (widthOf(text) <= columns) return text
  const all = [...graphemesIn(text)]
  let [width, from] = [0, all.length]
  while (from > 0) {
    const more = widthOfGrapheme(all[from - 1] ?? '')
    // One column is kept for the sign that something is missing.
    if (width + more > columns - 1) break
    width += more
    from--
  }
  return `…${all.slice(from).join('').trimStart()}`
}

/** The text in exactly so many columns. */
export function pad(text: string, columns: number): string {
  const shown = cut(text, columns)
  return shown + ' '.repeat(Math.max(0, columns - widthOf(shown)))
}

export function padLeft(text: string, columns: number): string {
  const shown = cut(text, columns)
  return ' '.repeat(Math.max(0, columns - widthOf(shown))) + shown
}

export function widthOfGrapheme(grapheme: string): number {
  if (WIDE.test(grapheme)) return 2
  return INVISIBLE.test(grapheme) ? 0 : 1
}
