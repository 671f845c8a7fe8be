/** What is drawn: boxes in groups, and arrows. Both languages are made of it. */
export interface Picture {
  readonly boxes: readonly Box[]
  readonly arrows: readonly Arrow[]
}

export interface Box {
  readonly id: string
  readonly lines: readonly string[]
  readonly mood: Mood
  /** The title of the frame that it is drawn in; null for none. */
  readonly group: string | null
}

export type Mood = 'done' | 'open' | 'failed' | 'said'

export interface Arrow {
  readonly from: string
  readonly to: string
  readonly style: 'solid' | 'bold' | 'dotted'
  readonly label: string
}

const LONGEST = 60

/** One line that says no more than fits a box. */
export function shortText(text: string): string {
  const line = oneLine(text)
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line
}

/** Without line ends, and without what controls a terminal or turns the direction of writing. */
export function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}\u202A-\u202E\u2066-\u2069]+/gu, ' ').trim()
}
