import path from 'node:path'
import { type Notice, noticesOf, noticeText } from '../../recipe/index.ts'
import { CliError, EXIT } from '../command.ts'
import { oneLine } from '../terminal/clean.ts'
import { columnsOf, hanging } from '../terminal/hang.ts'

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
