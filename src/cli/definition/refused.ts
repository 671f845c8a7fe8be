import path from 'node:path'
import { type Notice, noticesOf, noticeText } from '../../recipe/index.ts'
import { CliError, EXIT } from '../command.ts'
import { oneLine } from '../terminal/clean.ts'

/** A file that cannot be used is wrong usage: every reason, with file and line as seen from here. Else the error itself. */
export function refused(error: unknown): unknown {
  const lines = noticesOf(error).map(lineOf)
  if (lines.length === 0) return error
  return new CliError(lines.join('\n  '), EXIT.usage, { namesHelp: false })
}

function lineOf(notice: Notice): string {
  const file = path.isAbsolute(notice.file) ? fromHere(notice.file) : notice.file
  return oneLine(noticeText({ ...notice, file }))
}

/** As short as it can be typed. */
export function fromHere(file: string): string {
  const relative = path.relative(process.cwd(), file)
  return relative === '' || relative.startsWith('..') || path.isAbsolute(relative) ? file : relative
}
