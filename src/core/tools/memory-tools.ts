import path from 'node:path'
import { nodeOs } from '../base/node-system.ts'
import { type OptionRules, oneOf, readOptions, text } from '../base/options.ts'
import { hasOwnFolder, OWNERS, type Owners, ownerFolder } from '../base/owner-folder.ts'
import type { JsonSchema } from '../base/schema/schema.ts'
import { ownFolder } from '../base/system/own-files.ts'
import { markFacts, type OwnerStore, type Tool, type ToolContext, tool } from '../tool/tool.ts'
import type { Memory, MemoryFiles } from './memory-file.ts'

export interface MemoryToolsOptions {
  /** The directory of the files. Default: `legate/memory` in the user's data directory. */
  readonly directory?: string
  /**
   * Whose the memory is. `own` (default): each owner of runs has a memory of its own; runs without an owner, and those of the
   * person at this machine, have another together. `shared`: all have one.
   */
  readonly owners?: Owners
  /** The agent whose memory it is, apart from those of all others. Default: the agents of an owner have one together. */
  readonly agent?: string
}

export const MEMORY_OPTIONS: OptionRules<MemoryToolsOptions> = {
  directory: text,
  owners: oneOf(...OWNERS),
  agent: text,
}

export type MemoryToolName = 'memory_remember' | 'memory_recall' | 'memory_forget'

const CATEGORY: JsonSchema = { type: 'string', minLength: 1, maxLength: 64, description: 'Such as "preferences"' }
const WORDS: JsonSchema = { type: 'string', minLength: 1, maxLength: 8_000 }
const MOST_SHOWN = 200

/** Tools that remember from one run to the next: each owner of runs has a memory of its own, unless `owners` says otherwise. */
export function memoryTools(options: MemoryToolsOptions = {}): Record<MemoryToolName, Tool> {
  const given = readOptions('memoryTools()', options, MEMORY_OPTIONS)
  const files = filesIn(given)
  const tools = {
    memory_remember: tool({
      description: 'Keeps something for later runs, under a category. Only what will be useful, and no secrets.',
      input: schema({ category: CATEGORY, text: WORDS, tags: TAGS }, ['category', 'text']),
      effect: 'idempotent',
      execute: async (input, context) => {
        const { category, text, tags = [] } = input as { category: string; text: string; tags?: string[] }
        const done = await (await files(context)).add(nameOf(category), { text, tags, at: Date.now() })
        return done === 'added' ? `Remembered under "${nameOf(category)}".` : 'That is known already.'
      },
    }) as Tool,
    memory_recall: tool({
      description:
        'Gives what was remembered: of a category, of all, or what holds some words. Names the categories too.',
      input: schema({ category: CATEGORY, query: WORDS }, []),
      effect: 'pure',
      execute: async (input, context) => {
        const { category, query } = input as { category?: string; query?: string }
        return recall(await files(context), category === undefined ? undefined : nameOf(category), query)
      },
    }) as Tool,
    memory_forget: tool({
      description: 'Forgets a category, or what in it holds some words.',
      input: schema({ category: CATEGORY, text: WORDS }, ['category']),
      effect: 'idempotent',
      execute: async (input, context) => {
        const { category, text } = input as { category: string; text?: string }
        const count = await (await files(context)).remove(nameOf(category), text ?? null)
        return count === 0 ? 'There was nothing to forget.' : `Forgotten: ${count}.`
      },
    }) as Tool,
  }
  const store = memoryStoreOf(given)
  for (const one of Object.values(tools)) markFacts(one, { store })
  return tools
}

/** The memories of owners. They are deleted with their owner even where they are not used any more. */
export function memoryStoreOf(options: MemoryToolsOptions): OwnerStore {
  const directory = directoryOf(options)
  // Before the first call of a memory tool, other tools could read and write what later runs take for their own memory.
  ownFolder(directory, 'what agents remember')
  const forget = async (owner: string) => {
    if (!hasOwnFolder(owner)) return 0
    const { eraseFolder } = await import('../files/erase-folder.ts')
    return eraseFolder(directory, ownerFolder(owner))
  }
  return { key: `memory ${directory}`, forget }
}

type FilesFor = (context: Partial<Pick<ToolContext, 'owner'>> | undefined) => Promise<MemoryFiles>

/** Loaded at the first use, once: it serializes calls that write the same file. */
function filesIn(options: MemoryToolsOptions): FilesFor {
  const { owners, agent } = options
  const directory = directoryOf(options)
  const ofAgent = agent === undefined ? [] : ['agents', encodeURIComponent(agent).replaceAll('.', '%2E')]
  let opened: Promise<MemoryFiles> | undefined
  return async (context) => {
    opened ??= import('./memory-file.ts').then(({ MemoryFiles }) => new MemoryFiles(directory))
    const all = await opened
    const owner = context?.owner ?? null
    const ofOwner = owners === 'shared' || !hasOwnFolder(owner) ? [] : ownerFolder(owner)
    const folders = [...ofOwner, ...ofAgent]
    return folders.length === 0 ? all : all.within(folders)
  }
}

const MOST_TOLD = 200
const MOST_TOLD_BYTES = 25_000

/** Gives what was remembered, for an agent that is told it before it begins: the newest lines, and whether there are older ones. */
export function rememberedBy(
  options: MemoryToolsOptions,
): (owner: string | null) => Promise<{ readonly text: string; readonly isCut: boolean }> {
  const files = filesIn(options)
  return async (owner) => {
    const all = await files({ owner })
    const found: Memory[] = []
    for (const category of await all.categories()) found.push(...(await all.read(category)))
    const lines = found.sort((a, b) => b.at - a.at).map(lineOf)
    const kept: string[] = []
    let bytes = 0
    for (const line of lines.slice(0, MOST_TOLD)) {
      bytes += Buffer.byteLength(line) + 1
      if (bytes > MOST_TOLD_BYTES) break
      kept.push(line)
    }
    return { text: kept.reverse().join('\n'), isCut: kept.length < lines.length }
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

function directoryOf({ directory }: MemoryToolsOptions): string {
  return path.resolve(directory ?? defaultDirectory())
}

function defaultDirectory(): string {
  const data = process.env['XDG_DATA_HOME'] || path.join(nodeOs().homedir(), '.local', 'share')
  return path.join(data, 'legate', 'memory')
}
