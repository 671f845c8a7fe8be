export const graphemes: Intl.Segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
const ASCII = /^[ -~]*$/
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u
const INVISIBLE = /^[\p{M}\p{Cf}\p{Cc}\u115f-\u11ff]+$/u

/** How many columns of a terminal a text takes: wide characters two, marks that combine none. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += widthOfGrapheme(segment)
  return width
}

/** At most so many columns of the text, with `…` where something is missing. Never half a character. */
export function cut(text: string, columns: number): string {
  if (columns <= 0) return ''
  if (text.length <= columns && ASCII.test(text)) return text
  let width = 0
  let fits = ''
  for (const { segment } of graphemes.segment(text)) {
    width += widthOfGrapheme(segment)
    if (width > columns) return `${fits.trimEnd()}…`
    // One column is kept for the sign that something is missing.
    if (width < columns) fits += segment
  }
  return text
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
