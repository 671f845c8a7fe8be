// The work of the tools `search_text` and `tree`, loaded with the first call.

import { isLegateError } from '../base/error.ts'
import type { FileInfo } from '../files/backend.ts'
import type { Files } from '../files/files.ts'
import { matchName } from '../grant/match.ts'
import type { ToolContext } from '../tool/tool.ts'

const MOST_FOUND = 200
const MOST_FILES = 5_000
const MOST_BYTES = 1_000_000
const MOST_SHOWN = 300

export interface SearchInput {
  readonly text: string
  readonly path?: string
  readonly files?: string
  readonly ignore_case?: boolean
}

/** Finds lines in files. It reads each file under the grant, skips files it may not read, and counts them. */
export async function searchText(input: SearchInput, { files, signal }: ToolContext): Promise<string> {
  const { path = '/workspace', files: pattern = '*' } = input
  const found: string[] = []
  let searched = 0
  let skipped = 0
  for await (const { info } of walkFiles(files, path, signal)) {
    if (info.type !== 'file' || !matchName(pattern, info.path)) continue
    if (searched + skipped >= MOST_FILES || found.length >= MOST_FOUND) {
      return [...found, '[There is more: search in fewer files, or for more of the text.]'].join('\n')
    }
    const lines = await matchesIn(files, info, input)
    if (lines === undefined) skipped++
    else searched++
    found.push(...(lines ?? []).slice(0, MOST_FOUND - found.length))
  }
  const note = skipped === 0 ? [] : [`[${skipped} files were not searched: not allowed, too large or no text]`]
  return [...found, ...note].join('\n') || `[nothing found in ${searched} files]`
}

/** Undefined where the file cannot be searched. */
async function matchesIn(files: Files, { path, size }: FileInfo, input: SearchInput): Promise<string[] | undefined> {
  if (size > MOST_BYTES) return undefined
  const fold = (text: string) => (input.ignore_case === true ? text.toLowerCase() : text)
  const wanted = fold(input.text)
  try {
    const text = await files.readText(path)
    if (!fold(text).includes(wanted)) return []
    return text.split('\n').flatMap((line, index) => {
      if (!fold(line).includes(wanted)) return []
      const shown = line.length > MOST_SHOWN ? `${line.slice(0, MOST_SHOWN).toWellFormed()}…` : line
      return [`${path}:${index + 1}: ${shown.trimEnd()}`]
    })
  } catch (error) {
    if (isLegateError(error)) return undefined
    throw error
  }
}

const MOST_LINES = 1_000
const MOST_VISITED = 20_000
const TREE_DEPTH = 3

export interface TreeInput {
  readonly path?: string
  readonly depth?: number
}

/** Shows the files below a directory, with sizes. */
export async function listTree(input: TreeInput, { files, signal }: ToolContext): Promise<string> {
  const { path = '/workspace', depth: most = TREE_DEPTH } = input
  const lines: string[] = []
  let visited = 0
  for await (const { info, depth } of walkFiles(files, path, signal)) {
    if (++visited > MOST_VISITED || lines.length >= MOST_LINES) return [...lines, MORE].join('\n')
    if (depth >= most) continue
    const name = info.type === 'directory' ? `${nameOf(info)}/` : `${nameOf(info)} (${info.size})`
    lines.push(`${'  '.repeat(depth)}${name}`)
  }
  return lines.join('\n') || '[nothing there]'
}

const MORE = '[There is more: look into one directory at a time, or less deep.]'

/** Folders full of files that programs made. */
const NOT_ENTERED: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', 'node_modules', '.venv', '__pycache__'])

interface Visit {
  readonly info: FileInfo
  /** 0 for entries of the directory itself. */
  readonly depth: number
}

/** Walks everything visible below a directory, each directory before its entries. */
async function* walkFiles(files: Files, directory: string, signal: AbortSignal): AsyncGenerator<Visit> {
  const { entries } = await files.list(directory)
  yield* walk(files, entries, { depth: 0, signal })
}

function nameOf({ path }: FileInfo): string {
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

/** Empty where a directory has gone, or may not be listed. */
async function entriesOf(files: Files, path: string): Promise<readonly FileInfo[]> {
  try {
    return (await files.list(path)).entries
  } catch (error) {
    if (isLegateError(error)) return []
    throw error
  }
}
