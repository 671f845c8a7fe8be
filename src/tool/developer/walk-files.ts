import { isLegateError } from '../../base/error.ts'
import type { FileInfo } from '../../files/backend.ts'
import type { Files } from '../../files/files.ts'

/** Folders that hold what others made, and a lot of it. */
const NOT_ENTERED: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', 'node_modules', '.venv', '__pycache__'])

export interface Visit {
  readonly info: FileInfo
  /** 0 for what is in the directory itself. */
  readonly depth: number
}

/** What is below a directory and may be seen, each directory before what is in it. */
export async function* walkFiles(files: Files, directory: string, signal: AbortSignal): AsyncGenerator<Visit> {
  const { entries } = await files.list(directory)
  yield* walk(files, entries, { depth: 0, signal })
}

export function nameOf({ path }: FileInfo): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

async function* walk(
  files: Files,
  entries: readonly FileInfo[],
  { depth, signal }: { readonly depth: number; readonly signal: AbortSignal },
): AsyncGenerator<Visit, void, boolean | undefined> {
  for (const info of entries) {
    signal.throwIfAborted()
    yield { info, depth }
    if (info.type === 'file' || NOT_ENTERED.has(nameOf(info)) || depth >= DEEPEST) continue
    yield* walk(files, await entriesOf(files, info.path), { depth: depth + 1, signal })
  }
}

const DEEPEST = 32

/** None where a directory went away, or may not be listed. */
async function entriesOf(files: Files, path: string): Promise<readonly FileInfo[]> {
  try {
    return (await files.list(path)).entries
  } catch (error) {
    if (isLegateError(error)) return []
    throw error
  }
}
