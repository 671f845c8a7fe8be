import { isLegateError } from '../base/error.ts'
import type { FileInfo } from '../files/backend.ts'
import type { Files } from '../files/files.ts'
import { matchName } from '../grant/match.ts'

/** More entries than this are not looked at in one call. */
const MOST_VISITED = 10_000

export interface FileSearch {
  readonly path: string
  readonly pattern: string
  readonly exclude: readonly string[]
  readonly signal: AbortSignal
}

/** The paths of files below a directory that hold the pattern or are matched by it, sorted. */
export async function searchFiles(files: Files, search: FileSearch): Promise<{ found: string[]; isCut: boolean }> {
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

/** For each directory among the entries, the bytes below it. */
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

/** Goes down directories as long as `visit` says so of them, within bounds. */
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

  /** None where a directory went away, or cannot be listed after all. */
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
