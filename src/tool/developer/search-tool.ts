import { isLegateError } from '../../base/error.ts'
import type { JsonSchema } from '../../base/schema.ts'
import type { FileInfo } from '../../files/backend.ts'
import type { Files } from '../../files/files.ts'
import { matchName } from '../../grant/match.ts'
import { fileNeed } from '../file-needs.ts'
import { type Tool, type ToolContext, tool } from '../tool.ts'
import { walkFiles } from './walk-files.ts'
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

const SCHEMA: JsonSchema = {
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

/** Finds lines in files. Each file is read under the grant; what may not be read is not searched, and counted. */
export function searchTextTool(): Tool {
  const made = tool({
    description: 'Finds a text in the files below a directory: gives path, number and text of each line that holds it.',
    inputSchema: SCHEMA,
    effect: 'pure',
    needs: (input) => fileNeed('list', (input as SearchInput).path ?? '/workspace'),
    execute: (input, context) => search(input as SearchInput, context),
  })
  return withWorkspacePaths(made as Tool)
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
