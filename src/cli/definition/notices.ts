import path from 'node:path'
import { type AgentFile, type Notice, noticesOf, noticeText } from '../../doors/recipe.ts'
import { CliError, EXIT } from '../command/command.ts'
import { columnsOf, hanging, oneLine, type Room } from '../terminal/clean.ts'
import { type Colour, type Paint, painter } from '../terminal/paint.ts'

/** A file that cannot be used is wrong usage: every reason, with file and line as seen from here. Else the error itself. */
export function refused(error: unknown): unknown {
  const notices = noticesOf(error)
  return notices.length === 0 ? error : refusal(notices)
}

export function refusal(notices: readonly Notice[]): CliError {
  const [first = '', ...others] = notices.map(lineOf)
  const columns = columnsOf(process.stderr)
  const texts = [
    hanging(first, { columns, from: PREFIX.length }),
    ...others.map((line) => hanging(line, { columns, from: 2 })),
  ]
  return new CliError(texts.map((lines) => lines.join('\n')).join('\n  '), EXIT.usage, { namesHelp: false })
}

/** What stands before the first line of an error. */
const PREFIX = 'legate: '

function lineOf(notice: Notice): string {
  const file = path.isAbsolute(notice.file) ? fromHere(notice.file) : notice.file
  return oneLine(noticeText({ ...notice, file }))
}

/** As short as it can be typed. */
export function fromHere(file: string): string {
  const relative = path.relative(process.cwd(), file)
  return relative === '' || relative.startsWith('..') || path.isAbsolute(relative) ? file : relative
}

/** What was left out or tightened when a file was read: whoever runs it must know. */
export function tellNotices({ notices }: AgentFile, env: NodeJS.ProcessEnv): void {
  const style = noticeStyle(process.stderr, painter(process.stderr, env))
  for (const notice of notices) {
    if (notice.level !== 'note') process.stderr.write(noticeLine(notice, fromHere(notice.file), style))
  }
}

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
