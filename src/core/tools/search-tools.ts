import type { JsonSchema } from '../base/schema/schema.ts'
import { fileNeed } from '../files/access.ts'
import { markFacts, type Tool, tool } from '../tool/tool.ts'
import type { SearchInput, TreeInput } from './search-work.ts'
import { withWorkspacePaths } from './workspace-paths.ts'

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
    execute: async (input, context) => (await import('./search-work.ts')).searchText(input as SearchInput, context),
  })
  return withWorkspacePaths(markFacts(made as Tool, { works: 'files' }))
}

const TREE_INPUT: JsonSchema = {
  type: 'object',
  properties: {
    path: { type: 'string', description: 'A directory. Default: the workspace' },
    depth: { type: 'integer', minimum: 1, maximum: 20, description: 'How deep to look. Default 3' },
  },
  additionalProperties: false,
}

/** Shows the files below a directory, with sizes. */
export function treeTool(): Tool {
  const made = tool({
    description: 'Shows the directories and files below a directory, with their sizes in bytes.',
    input: TREE_INPUT,
    effect: 'pure',
    needs: (input) => fileNeed('list', (input as TreeInput).path ?? '/workspace'),
    execute: async (input, context) => (await import('./search-work.ts')).listTree(input as TreeInput, context),
  })
  return withWorkspacePaths(markFacts(made as Tool, { works: 'files' }))
}
