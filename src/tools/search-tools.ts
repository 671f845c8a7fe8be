import { isLegateError } from '../base/error.ts'
import type { JsonSchema } from '../base/schema/schema.ts'
import { fileNeed } from '../files/access.ts'
import type { FileInfo } from '../files/backend.ts'
import type { Files } from '../files/files.ts'
import { matchName } from '../grant/match.ts'
import { markFacts, type Tool, type ToolContext, tool } from '../tool/tool.ts'
import { withWorkspacePaths } from './workspace-paths.ts'

const MOST_FOUND = 200
const MOST_FILES = 5_000
const MOST_BYTES = 1_000_000
const MOST_SHOWN = 300

interface SearchInput {
  readonly text: string
  readonly path?: string
  readonly files?: string
  readonly ignore_case?: boolean
}

const SEARCH_INPUT: JsonSchema = {
  type: 'object',
  properties: {
    text: { type: 'string', minLength: 1, maxLength: 1_000, description: 'As it stands: no regular expression' },
    path: { type: 'string', description: 'A directory. Default: the workspace' },
    files: { type: 'string', maxLength: 200, description: 'Only files whose path is matched, such as *.ts' },
    ignore_case: { type: 'boolean', description: 'Default false' },
  },
  required: ['text'],
  additionalProperties: false,
}

/** Finds lines in files. It reads each file under the grant, skips files it may not read, and counts them. */
export function searchTextTool(): Tool {
  const made = tool({
    description: 'Finds a text in the files below a directory: gives path, number and text of each line that holds it.',
    input: SEARCH_INPUT,
    effect: 'pure',
    needs: (input) => fileNeed('list', (input as SearchInput).path ?? '/workspace'),
    execute: (input, context) => search(input as SearchInput, context),
  })
  return withWorkspacePaths(markFacts(made as Tool, { works: 'files' }))
}

async function search(input: SearchInput, { files, signal }: ToolContext): Promise<string> {
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
const DEPTH = 3

const TREE_INPUT: JsonSchema = {
  type: 'object',
  properties: {
    path: { type: 'string', description: 'A directory. Default: the workspace' },
    depth: { type: 'integer', minimum: 1, maximum: 20, description: `How deep to look. Default ${DEPTH}` },
  },
  additionalProperties: false,
}

/** Shows the files below a directory, with sizes. */
export function treeTool(): Tool {
  const made = tool({
    description: 'Shows the directories and files below a directory, with their sizes in bytes.',
    input: TREE_INPUT,
    effect: 'pure',
    needs: (input) => fileNeed('list', placeOf(input)),
    execute: async (input, { files, signal }) => {
      const { depth: most = DEPTH } = input as { depth?: number }
      const lines: string[] = []
      let visited = 0
      for await (const { info, depth } of walkFiles(files, placeOf(input), signal)) {
        if (++visited > MOST_VISITED || lines.length >= MOST_LINES) return [...lines, MORE].join('\n')
        if (depth >= most) continue
        const name = info.type === 'directory' ? `${nameOf(info)}/` : `${nameOf(info)} (${info.size})`
        lines.push(`${'  '.repeat(depth)}${name}`)
      }
      return lines.join('\n') || '[nothing there]'
    },
  })
  return withWorkspacePaths(markFacts(made as Tool, { works: 'files' }))
}

const MORE = '[There is more: look into one directory at a time, or less deep.]'

function placeOf(input: unknown): string {
  return (input as { path?: string }).path ?? '/workspace'
}

/** Folders full of files that programs made. */
const NOT_ENTERED: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', 'node_modules', '.venv', '__pycache__'])

export interface Visit {
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
