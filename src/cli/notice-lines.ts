import { type Notice, noticeText } from '../recipe/index.ts'
import { oneLine } from './terminal/clean.ts'
import { columnsOf, hanging, type Room } from './terminal/hang.ts'
import type { Colour, Paint } from './terminal/paint.ts'

const COLOURS: Readonly<Record<Notice['level'], Colour>> = { error: 'red', warning: 'yellow', note: 'dim' }

export interface NoticeStyle {
  readonly paint: Paint
  /** Where it is shown: a terminal has a width. */
  readonly room: Room
}

/** How notices look on a stream. */
export function noticeStyle(stream: NodeJS.WriteStream, paint: Paint): NoticeStyle {
  return { paint, room: { columns: columnsOf(stream) } }
}

/** `file:line: error: what is wrong, and what to do`, with the file as seen from here. */
export function noticeLine(notice: Notice, shownFile: string, { paint, room }: NoticeStyle): string {
  const { file, line, level, message, hint } = notice
  const whole = noticeText({ file, line, message, hint })
  const place = line === null ? file : `${file}:${line}`
  const shown = line === null ? shownFile : `${shownFile}:${line}`
  const lines = hanging(`${oneLine(shown)}: ${level}: ${oneLine(whole.slice(place.length + 2))}`, room)
  // The first that has the word: a path may be longer than a line.
  const at = lines.findIndex((text) => LEVEL.test(text))
  const painted = lines.map((text, index) =>
    index === at ? text.replace(LEVEL, (_, before: string) => `${before}${paint(COLOURS[level], level)}:`) : text,
  )
  return `${painted.join('\n')}\n`
}

const LEVEL = /(^ *|: )(?:error|warning|note):/
