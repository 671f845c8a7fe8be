import type { JsonSchema } from '../../base/schema.ts'
import type { Effect } from '../../graph/rows.ts'
import type { OpenSource, SourceTool } from '../../tool/source/source.ts'
import { type Tool, tool } from '../../tool/tool.ts'
import type { SourceLine } from './lines.ts'

/** What a source had to offer, or why it could not be started. */
export function sourceLine(source: string, opened: OpenSource | { readonly failed: string }): SourceLine {
  if ('failed' in opened) {
    return { source, tools: [], effects: [], versions: [], notes: '', warnings: [], failed: opened.failed }
  }
  const tools = [...opened.tools]
  return {
    source,
    tools: tools.map(([name, { tool: own }]) => ({
      name,
      description: own.description,
      inputSchema: own.input.jsonSchema as never,
    })),
    effects: tools.map(([, { tool: own }]) => own.effect),
    versions: tools.map(([, { version }]) => version),
    notes: opened.notes,
    warnings: opened.warnings,
  }
}

/** The same source without what it was made of. */
export function recordedSource(line: SourceLine): OpenSource {
  if (line.failed !== undefined) throw new Error(line.failed)
  const tools = new Map<string, SourceTool>()
  for (const [at, { name, description, inputSchema }] of line.tools.entries()) {
    const effect = (line.effects[at] ?? 'effectful') as Effect
    const own = tool({ description, inputSchema: inputSchema as JsonSchema, effect, execute: () => null }) as Tool
    tools.set(name, { tool: own, version: line.versions[at] ?? '' })
  }
  const { notes, warnings } = line
  return { tools, notes, warnings, ready: async () => undefined, close: async () => undefined }
}
