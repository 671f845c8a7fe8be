import path from 'node:path'
import { nodeOs } from '../base/node-system.ts'
import { readOptions, text } from '../base/options.ts'
import type { JsonSchema } from '../base/schema/schema.ts'
import { type Tool, tool } from '../tool/tool.ts'
import type { Memory, MemoryFiles } from './memory-file.ts'

export interface MemoryToolsOptions {
  /** The directory of the files. Default: `legate/memory` in the user's data directory. */
  readonly directory?: string
}

export type MemoryToolName = 'memory_remember' | 'memory_recall' | 'memory_forget'

const CATEGORY: JsonSchema = { type: 'string', minLength: 1, maxLength: 64, description: 'Such as "preferences"' }
const WORDS: JsonSchema = { type: 'string', minLength: 1, maxLength: 8_000 }
const MOST_SHOWN = 200

/**
 * Tools that remember from one run to the next. All runs of a user share the memory, unless the application gives each
 * a directory.
 */
export function memoryTools(options: MemoryToolsOptions = {}): Record<MemoryToolName, Tool> {
  const { directory = defaultDirectory() } = readOptions('memoryTools()', options, { directory: text })
  const files = filesIn(directory)
  return {
    memory_remember: tool({
      description: 'Keeps something for later runs, under a category. Only what will be useful, and no secrets.',
      input: schema({ category: CATEGORY, text: WORDS, tags: TAGS }, ['category', 'text']),
      effect: 'idempotent',
      execute: async (input) => {
        const { category, text, tags = [] } = input as { category: string; text: string; tags?: string[] }
        const done = await (await files()).add(nameOf(category), { text, tags, at: Date.now() })
        return done === 'added' ? `Remembered under "${nameOf(category)}".` : 'That is known already.'
      },
    }) as Tool,
    memory_recall: tool({
      description:
        'Gives what was remembered: of a category, of all, or what holds some words. Names the categories too.',
      input: schema({ category: CATEGORY, query: WORDS }, []),
      effect: 'pure',
      execute: async (input) => {
        const { category, query } = input as { category?: string; query?: string }
        return recall(await files(), category === undefined ? undefined : nameOf(category), query)
      },
    }) as Tool,
    memory_forget: tool({
      description: 'Forgets a category, or what in it holds some words.',
      input: schema({ category: CATEGORY, text: WORDS }, ['category']),
      effect: 'idempotent',
      execute: async (input) => {
        const { category, text } = input as { category: string; text?: string }
        const count = await (await files()).remove(nameOf(category), text ?? null)
        return count === 0 ? 'There was nothing to forget.' : `Forgotten: ${count}.`
      },
    }) as Tool,
  }
}

/** Loaded at the first use, once: it serializes calls that write the same file. */
function filesIn(directory: string): () => Promise<MemoryFiles> {
  let opened: Promise<MemoryFiles> | undefined
  return () => {
    opened ??= import('./memory-file.ts').then(({ MemoryFiles }) => new MemoryFiles(directory))
    return opened
  }
}

const TAGS: JsonSchema = { type: 'array', items: { type: 'string', maxLength: 64 }, maxItems: 20 }

function schema(properties: Readonly<Record<string, JsonSchema>>, required: readonly string[]): JsonSchema {
  return { type: 'object', properties, required: [...required], additionalProperties: false }
}

async function recall(files: MemoryFiles, category: string | undefined, query: string | undefined): Promise<string> {
  const all = await files.categories()
  const wanted = category === undefined ? all : all.filter((one) => one === category)
  const lines: string[] = []
  for (const one of wanted) {
    const found = (await files.read(one)).filter((memory) => query === undefined || holds(memory, query))
    if (found.length > 0) lines.push(`# ${one}`, ...found.slice(-MOST_SHOWN).map(lineOf))
  }
  const names = all.length === 0 ? 'Nothing has been remembered yet.' : `Categories: ${all.join(', ')}`
  return [...lines, names].join('\n')
}

function holds({ text, tags }: Memory, query: string): boolean {
  const words = query.toLowerCase()
  return text.toLowerCase().includes(words) || tags.some((tag) => tag.toLowerCase().includes(words))
}

function lineOf({ text, tags }: Memory): string {
  return `- ${text}${tags.length === 0 ? '' : ` [${tags.join(', ')}]`}`
}

function nameOf(category: string): string {
  return category.trim().toLowerCase().toWellFormed() || 'general'
}

function defaultDirectory(): string {
  const data = process.env['XDG_DATA_HOME'] || path.join(nodeOs().homedir(), '.local', 'share')
  return path.join(data, 'legate', 'memory')
}
