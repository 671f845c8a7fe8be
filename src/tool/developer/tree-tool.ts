import type { JsonSchema } from '../../base/schema.ts'
import { fileNeed } from '../file-needs.ts'
import { type Tool, tool } from '../tool.ts'
import { nameOf, walkFiles } from './walk-files.ts'
import { withWorkspacePaths } from './workspace-paths.ts'

const MOST_LINES = 1_000
const MOST_VISITED = 20_000
const DEPTH = 3

const SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    path: { type: 'string', description: 'A directory. Default: the workspace' },
    depth: { type: 'integer', minimum: 1, maximum: 20, description: `How deep to look. Default ${DEPTH}` },
  },
  additionalProperties: false,
}

/** What is where, with sizes. */
export function treeTool(): Tool {
  const made = tool({
    description: 'Shows the directories and files below a directory, with their sizes in bytes.',
    inputSchema: SCHEMA,
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
  return withWorkspacePaths(made as Tool)
}

const MORE = '[There is more: look into one directory at a time, or less deep.]'

function placeOf(input: unknown): string {
  return (input as { path?: string }).path ?? '/workspace'
}
