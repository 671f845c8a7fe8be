import { isLegateError } from '../base/error.ts'
import { truncateUtf8 } from '../base/json.ts'
import type { FileInfo } from '../files/backend.ts'
import { textLines } from '../files/edit.ts'
import type { Files } from '../files/files.ts'
import { matchName } from '../grant/match.ts'

/** The most entries that one call visits. */
const MOST_VISITED = 10_000

/** Finds the files below a directory whose path contains the pattern or matches it, sorted. */
export async function searchFiles(
  files: Files,
  search: {
    readonly path: string
    readonly pattern: string
    readonly exclude: readonly string[]
    readonly signal: AbortSignal
  },
): Promise<{ found: string[]; isCut: boolean }> {
  const { pattern, exclude, signal } = search
  const found: string[] = []
  const walk = new Walk(files, signal)
  const { entries, isCut } = await files.list(search.path)
  await walk.visit(entries, (path, type) => {
    if (type === 'directory') return !exclude.some((out) => out.endsWith('*') && matchName(out, `${path}/`))
    const isFound = path.includes(pattern) || matchName(pattern, path)
    if (isFound && !exclude.some((out) => matchName(out, path))) found.push(path)
    return false
  })
  return { found: found.sort(), isCut: isCut || walk.isCut }
}

/** The bytes below each directory among the entries. */
export async function sizesBelow(
  files: Files,
  entries: readonly FileInfo[],
  signal: AbortSignal,
): Promise<{ sizes: ReadonlyMap<string, number>; isCut: boolean }> {
  const sizes = new Map<string, number>()
  const walk = new Walk(files, signal)
  for (const entry of entries.filter(({ type }) => type === 'directory')) {
    let total = 0
    await walk.visit([entry], (_path, _type, size) => {
      total += size
      return true
    })
    sizes.set(entry.path, total)
  }
  return { sizes, isCut: walk.isCut }
}

type Visit = (path: string, type: FileInfo['type'], size: number) => boolean

/** Walks down the directories that `visit` accepts, within bounds. */
class Walk {
  isCut = false
  private readonly files: Files
  private readonly signal: AbortSignal
  private visited = 0

  constructor(files: Files, signal: AbortSignal) {
    this.files = files
    this.signal = signal
  }

  async visit(entries: readonly FileInfo[], visit: Visit): Promise<void> {
    for (const { path, type, size } of entries) {
      this.isCut ||= this.visited >= MOST_VISITED
      if (this.isCut) return
      this.visited++
      this.signal.throwIfAborted()
      if (visit(path, type, size) && type === 'directory') await this.visit(await this.entriesOf(path), visit)
    }
  }

  /** Empty where the directory has gone, or cannot be listed. */
  private async entriesOf(path: string): Promise<readonly FileInfo[]> {
    try {
      const { entries, isCut } = await this.files.list(path)
      this.isCut ||= isCut
      return entries
    } catch (error) {
      if (isLegateError(error)) return []
      throw error
    }
  }
}

export interface TextForm {
  /** The first line to show; lines count from 1. */
  readonly startLine: number
  readonly readLines: number | undefined
  readonly withLineNumbers: boolean
  readonly withHeader: boolean
  /** Leaves the rest for another call. */
  readonly mostBytes: number
}

/**
 * Formats a text for the file tools. Numbers are those of the file's lines; the end names the lines that did not fit.
 */
export function textForm(text: string, form: TextForm): string {
  const all = textLines(text)
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

/** Whole lines as long as there is room; cuts a first line that is too long. */
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
