import { type Notice, noticeText } from '../recipe/index.ts'
import { oneLine } from './terminal/clean.ts'
import type { Colour, Paint } from './terminal/paint.ts'

const COLOURS: Readonly<Record<Notice['level'], Colour>> = { error: 'red', warning: 'yellow', note: 'dim' }

/** `file:line: error: what is wrong, and what to do`, with the file as seen from here. */
export function noticeLine(notice: Notice, shownFile: string, paint: Paint): string {
  const { file, line, message, hint } = notice
  const whole = noticeText({ file, line, message, hint })
  const place = line === null ? file : `${file}:${line}`
  const shown = line === null ? shownFile : `${shownFile}:${line}`
  return `${oneLine(shown)}: ${paint(COLOURS[notice.level], notice.level)}: ${oneLine(whole.slice(place.length + 2))}\n`
}
