import path from 'node:path'
import { type AgentFile, type Notice, noticesOf, noticeText } from '../../doors/recipe.ts'
import { CliError, EXIT } from '../command/command.ts'
import { hangingLines, oneLine, type Room, terminalWidth } from '../terminal/clean.ts'
import { put } from '../terminal/output.ts'
import { type Colour, type Paint, painter } from '../terminal/paint.ts'

/** Turns an unusable file into a usage error that lists every reason with file and line. Other errors pass through. */
export function asUsageError(error: unknown): unknown {
  const notices = noticesOf(error)
  return notices.length === 0 ? error : refusal(notices)
}

export function refusal(notices: readonly Notice[]): CliError {
  const [first = '', ...others] = notices.map(lineOf)
  const columns = terminalWidth(process.stderr)
  const texts = [
    hangingLines(first, { columns, from: PREFIX.length }),
    ...others.map((line) => hangingLines(line, { columns, from: 2 })),
  ]
  return new CliError(texts.map((lines) => lines.join('\n')).join('\n  '), EXIT.usage, { namesHelp: false })
}

/** The prefix of the first line of an error. */
const PREFIX = 'legate: '

function lineOf(notice: Notice): string {
  const file = path.isAbsolute(notice.file) ? relativePath(notice.file) : notice.file
  return oneLine(noticeText({ ...notice, file }))
}

/** Shortens a path below this folder to a relative one. */
export function relativePath(file: string): string {
  const relative = path.relative(process.cwd(), file)
  return relative === '' || relative.startsWith('..') || path.isAbsolute(relative) ? file : relative
}

/** Where the commands that a file frees from asking are not free. */
export const ASKED_HERE = 'it asks before these here, whatever it says itself; --allow RULE lets some pass'

/** Reports what was ignored or tightened when a file was read, and what it does without asking, so that whoever runs it knows. */
export function printNotices(
  { notices, file, freed }: AgentFile,
  env: NodeJS.ProcessEnv,
  how: string = 'it runs these without asking you',
): void {
  const style = noticeStyle(process.stderr, painter(process.stderr, env))
  if (freed.length > 0) {
    const message = `${how}: ${freed.map((rule) => rule.replace(/^exec:/, '')).join(', ')}`
    const notice: Notice = { level: 'note', code: 'permission', message, file, line: null, hint: null }
    put(process.stderr, noticeLine(notice, relativePath(file), style))
  }
  for (const notice of notices) {
    if (isTold(notice)) put(process.stderr, noticeLine(notice, relativePath(notice.file), style))
  }
}

/** Notes tell how a file was read; those that leave out a part of it are told as warnings are. */
export function isTold({ level, code }: Notice): boolean {
  return level !== 'note' || code === 'ignored' || code === 'unknown_key'
}

const COLOURS: Readonly<Record<Notice['level'], Colour>> = { error: 'red', warning: 'yellow', note: 'dim' }

export interface NoticeStyle {
  readonly paint: Paint
  /** The width of the terminal it is shown on. */
  readonly room: Room
}

/** Chooses how notices look on a stream. */
export function noticeStyle(stream: NodeJS.WriteStream, paint: Paint): NoticeStyle {
  return { paint, room: { columns: terminalWidth(stream) } }
}

/** Writes a notice as `file:line: error: problem and advice`, with the path relative to this folder. */
export function noticeLine(notice: Notice, shownFile: string, { paint, room }: NoticeStyle): string {
  const { file, line, level, message, hint } = notice
  const whole = noticeText({ file, line, message, hint })
  const place = line === null ? file : `${file}:${line}`
  const shown = line === null ? shownFile : `${shownFile}:${line}`
  const lines = hangingLines(`${oneLine(shown)}: ${level}: ${oneLine(whole.slice(place.length + 2))}`, room)
  // Colours the first line that contains the level: a path may be longer than a line.
  const at = lines.findIndex((text) => LEVEL.test(text))
  const painted = lines.map((text, index) =>
    index === at ? text.replace(LEVEL, (_, before: string) => `${before}${paint(COLOURS[level], level)}:`) : text,
  )
  return `${painted.join('\n')}\n`
}

const LEVEL = /(^ *|: )(?:error|warning|note):/
