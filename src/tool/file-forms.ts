import { truncateUtf8 } from '../base/json.ts'
import type { FileInfo } from '../files/backend.ts'
import { linesOf } from '../files/text.ts'

export interface TextForm {
  /** The first line to show; lines count from 1. */
  readonly startLine: number
  readonly readLines: number | undefined
  readonly withLineNumbers: boolean
  readonly withHeader: boolean
  /** More than this is left for another call. */
  readonly mostBytes: number
}

/** A text as the file tools show it. Numbers are those of the file's lines; what does not fit is named. */
export function textForm(text: string, form: TextForm): string {
  const all = linesOf(text)
  const first = form.startLine - 1
  const wanted = all.slice(first, form.readLines === undefined ? undefined : first + form.readLines)
  const shown = fitting(wanted, form)
  const format = form.withLineNumbers ? 'format: line{N}: <content>' : 'format: raw'
  const header = form.withHeader ? [`line_count: ${shown.length}`, format] : []
  const next = form.startLine + shown.length
  const left = wanted.length - shown.length
  const rest = left > 0 ? [`[${left} lines left of ${all.length}. To read on: start_line=${next}]`] : []
  return [...header, ...shown, ...rest].join('\n')
}

/** `[DIR] x/` lines, then `[FILE] y` lines. */
export function listingForm(entries: readonly FileInfo[], sizes?: ReadonlyMap<string, number>): string[] {
  const line = ({ path, type, size }: FileInfo) => {
    const name = path.slice(path.lastIndexOf('/') + 1)
    const text = type === 'directory' ? `[DIR] ${name}/` : `[FILE] ${name}`
    return sizes === undefined ? text : `${text} (size=${sizes.get(path) ?? size})`
  }
  const of = (type: FileInfo['type']) => entries.filter((entry) => entry.type === type).map(line)
  return [...of('directory'), ...of('file')]
}

/** Whole lines as long as there is room; a first line that is too long is cut. */
function fitting(lines: readonly string[], { startLine, withLineNumbers, mostBytes }: TextForm): string[] {
  const shown: string[] = []
  let room = mostBytes
  for (const [index, content] of lines.entries()) {
    const line = withLineNumbers ? `line${startLine + index}: ${content}` : content
    room -= Buffer.byteLength(line) + 1
    if (room >= 0) shown.push(line)
    else if (index === 0)
      shown.push(`${truncateUtf8(line, mostBytes)}[the line is longer: ${content.length} characters]`)
    if (room < 0) break
  }
  return shown
}
