import { type FieldEvent, fieldParser } from 'legate/fields'

export type ParserOptions = NonNullable<Parameters<typeof fieldParser>[0]>

export interface Reading {
  /** One line for each event; the deltas of one string are one line, however they were cut. */
  readonly lines: string[]
  readonly value: unknown
  readonly state: string
  readonly notes: readonly string[]
}

/** Reads the pieces and writes down what happened, with the value as it stood at the end. */
export function read(pieces: readonly string[], options: ParserOptions = {}): Reading {
  const parser = fieldParser(options)
  const lines: string[] = []
  let open: string | undefined
  const write = (event: FieldEvent): void => {
    if (event.kind !== 'delta') {
      open = undefined
      lines.push(lineOf(event))
      return
    }
    if (open === event.slash) lines.push(`${lines.pop()}${event.delta}`)
    else lines.push(`delta ${nameOf(event)} ${event.delta}`)
    open = event.slash
  }
  for (const piece of pieces) for (const event of parser.push(piece)) write(event)
  for (const event of parser.end()) write(event)
  const notes = parser.notes.map(({ path, message }) => `${path.join('.')}: ${message}`)
  return { lines, value: parser.value, state: parser.state, notes }
}

/** The text whole, in single characters, in pairs, and in two at every place. */
export function everyCut(text: string): string[][] {
  const halves = Array.from({ length: text.length + 1 }, (_, at) => [text.slice(0, at), text.slice(at)])
  return [[text], cutBy(text, 1), cutBy(text, 2), cutBy(text, 3), ...halves]
}

export function cutBy(text: string, length: number): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length; at += length) pieces.push(text.slice(at, at + length))
  return pieces
}

export function cutAt(text: string, places: readonly number[]): string[] {
  const ends = [...new Set([...places.map((place) => place % (text.length + 1)), text.length])].sort((a, b) => a - b)
  let from = 0
  return ends.map((end) => {
    const piece = text.slice(from, end)
    from = end
    return piece
  })
}

function lineOf(event: FieldEvent): string {
  const repeat = event.isRepeat ? ' again' : ''
  return `${event.kind} ${nameOf(event)} ${JSON.stringify(event.kind === 'open' ? undefined : event.value)}${repeat}`
}

function nameOf(event: FieldEvent): string {
  return event.dot === '' ? '$' : event.dot
}
