import { messageOf } from '../base/error.ts'
import type { JsonSchema } from '../base/schema/schema.ts'
import { fileNeed } from '../files/access.ts'
import type { FileInfo } from '../files/backend.ts'
import type { Edit } from '../files/edit.ts'
import type { FileOperation } from '../files/failure.ts'
import type { Files } from '../files/files.ts'
import type { Request } from '../grant/request.ts'
import { SHOWN_BYTES } from '../graph/commit.ts'
import { markFileTools, markUse, type Tool, type ToolDefinition, tool } from '../tool/tool.ts'

export type FileToolName =
  | 'read_text_file'
  | 'read_multiple_files'
  | 'list_directory'
  | 'list_directory_with_sizes'
  | 'search_files'
  | 'get_file_info'
  | 'list_allowed_directories'
  | 'fs_describe_permissions_markdown'
  | 'write_file'
  | 'edit_file'
  | 'delete_file'

/**
 * The file tools, for a toolkit: `tools: { ...fileTools() }`. They reach the runtime's files only through the calling
 * agent's grant: `createRuntime({ files })`, and rules such as `file.read:/workspace/**`.
 */
export function fileTools(): Record<FileToolName, Tool> {
  return markFileTools({ ...readingTools(), ...listingTools(), ...changingTools() })
}

const EMPTY = '<empty>'
/** A page of a text that still fits into a shown result. */
const PAGE_BYTES = SHOWN_BYTES - 4_096
const MOST_FILES = 50

/** Loaded with the first call. */
const forms = () => import('./file-search.ts')
const searching = () => import('./file-search.ts')

function readingTools() {
  return {
    read_text_file: tool({
      description:
        'Reads a text file, or some of its lines. Long files come in pages: go on with start_line. Not for binary files.',
      input: schema({ path: PATH, start_line: LINE, read_lines: COUNT, ...TEXT_OPTIONS }, ['path']),
      needs: needs('read'),
      effect: 'pure',
      execute: async (input, { files }) => {
        const { path, start_line: startLine = 1, read_lines: readLines, ...options } = input as ReadInput
        const text = await files.readText(path)
        const { textForm } = await forms()
        return textForm(text, { ...formOf(options), startLine, readLines, mostBytes: PAGE_BYTES }) || EMPTY
      },
    }) as Tool,
    read_multiple_files: skippingDenied({
      description: 'Reads several text files at once. A file that cannot be read is reported in its place.',
      input: schema({ paths: { type: 'array', items: PATH, minItems: 1, maxItems: MOST_FILES }, ...TEXT_OPTIONS }, [
        'paths',
      ]),
      needs: (input) => [...new Set((input as { paths: string[] }).paths)].flatMap((path) => needs('read')({ path })),
      effect: 'pure',
      execute: async (input, { files }) => {
        const { paths, ...options } = input as TextOptions & { paths: string[] }
        const form = { ...formOf(options), startLine: 1, readLines: undefined, mostBytes: PAGE_BYTES / paths.length }
        const { textForm } = await forms()
        const sections: string[] = []
        for (const path of paths) {
          try {
            sections.push([`## ${path}`, textForm(await files.readText(path), form)].filter(Boolean).join('\n'))
          } catch (error) {
            sections.push(`## ${path} (error)\n${messageOf(error)}`)
          }
        }
        return sections.join('\n\n')
      },
    }),
    get_file_info: tool({
      description: 'Tells the size of a file and when it was changed.',
      input: schema({ path: PATH }, ['path']),
      needs: needs('list'),
      effect: 'pure',
      execute: async (input, { files }) => {
        const { path, size, modifiedAt } = await files.stat((input as PathInput).path)
        return `path: ${path}\nsize: ${size}\nupdated_at: ${new Date(modifiedAt).toISOString()}`
      },
    }) as Tool,
  }
}

function listingTools() {
  return {
    list_directory: tool({
      description: 'Lists the entries of one directory, such as /workspace/.',
      input: schema({ path: PATH }, ['path']),
      needs: needs('list'),
      effect: 'pure',
      execute: async (input, { files }) => {
        const { entries, isCut } = await files.list((input as PathInput).path)
        const { listingForm } = await forms()
        return [...listingForm(entries), ...cutNote(isCut)].join('\n') || EMPTY
      },
    }) as Tool,
    list_directory_with_sizes: tool({
      description: 'Lists the entries of one directory with their sizes in bytes; a directory counts what is below it.',
      input: schema({ path: PATH, sortBy: { type: 'string', enum: ['name', 'size'] } }, ['path']),
      needs: needs('list'),
      effect: 'pure',
      execute: async (input, { files, signal }) => {
        const { path, sortBy = 'name' } = input as PathInput & { sortBy?: 'name' | 'size' }
        const { entries, isCut } = await files.list(path)
        const { listingForm } = await forms()
        const { sizesBelow } = await searching()
        const { sizes, isCut: isPartial } = await sizesBelow(files, entries, signal)
        const sizeOf = (entry: FileInfo) => sizes.get(entry.path) ?? entry.size
        const sorted = sortBy === 'size' ? entries.toSorted((a, b) => sizeOf(a) - sizeOf(b)) : entries
        const dirs = entries.filter(({ type }) => type === 'directory').length
        const total = entries.reduce((sum, entry) => sum + sizeOf(entry), 0)
        const summary = `total: ${entries.length} entries; files=${entries.length - dirs}, dirs=${dirs}; total_size=${total}`
        return [...listingForm(sorted, sizes), summary, ...cutNote(isCut || isPartial)].join('\n')
      },
    }) as Tool,
    search_files: tool({
      description:
        'Finds files below a directory by path: a part of it, or a pattern where * stands for anything, such as *.md.',
      input: schema({ path: PATH, pattern: PATTERN, excludePatterns: PATTERNS }, ['path', 'pattern']),
      needs: needs('list'),
      effect: 'pure',
      execute: async (input, { files, signal }) => {
        const { path, pattern, excludePatterns = [] } = input as PathInput & SearchInput
        const { searchFiles } = await searching()
        const { found, isCut } = await searchFiles(files, { path, pattern, exclude: excludePatterns, signal })
        return [...found, ...cutNote(isCut)].join('\n') || EMPTY
      },
    }) as Tool,
    list_allowed_directories: tool({
      description: 'Names the directories you may list or read.',
      input: schema({}, []),
      effect: 'pure',
      execute: (_, { files }) => [...files.allowedDirectories(), ...limitsOf(files)].join('\n') || EMPTY,
    }) as Tool,
    fs_describe_permissions_markdown: tool({
      description: 'Tells what you may do with files, and where.',
      input: schema({}, []),
      effect: 'pure',
      execute: (_, { files }) => files.describe() || EMPTY,
    }) as Tool,
  }
}

/** The lines of a description that name rules: a directory may be allowed and a part of it not. */
function limitsOf(files: Files): string[] {
  return files
    .describe()
    .split('\n')
    .filter((line) => LIMIT.test(line))
}

const LIMIT = /^(Denied|A person is asked first): /

function changingTools() {
  return {
    write_file: markUse(
      tool({
        description: 'Writes a text file, over the one that is there. Directories are made. Write below /workspace/.',
        input: schema({ path: PATH, content: TEXT }, ['path', 'content']),
        needs: needs('write'),
        effect: 'idempotent',
        execute: async (input, { files }) => {
          const { path, content } = input as PathInput & { content: string }
          const { size } = await files.write(path, content)
          return `wrote ${size} bytes to ${path}`
        },
      }) as Tool,
      'file.write',
    ),
    edit_file: markUse(
      tool({
        description:
          'Replaces texts in a file, one edit after the other: all of them or none. Each oldText must be in the file exactly once, unless replaceAll is true.',
        input: schema({ path: PATH, edits: { type: 'array', minItems: 1, maxItems: 100, items: EDIT } }, [
          'path',
          'edits',
        ]),
        // Not idempotent: a repeated edit may find its text again in its own output.
        needs: needs('read', 'write'),
        effect: 'effectful',
        execute: async (input, { files }) => {
          const { path, edits } = input as PathInput & { edits: Edit[] }
          const { size } = await files.edit(path, edits)
          return `edited ${path} (size=${size})`
        },
      }) as Tool,
      'file.write',
    ),
    delete_file: markUse(
      tool({
        description: 'Deletes a file.',
        input: schema({ path: PATH }, ['path']),
        needs: needs('delete'),
        effect: 'idempotent',
        execute: async (input, { files }) => {
          const { path } = input as PathInput
          await files.delete(path)
          return `deleted ${path}`
        },
      }) as Tool,
      'file.delete',
    ),
  }
}

interface PathInput {
  readonly path: string
}

interface TextOptions {
  readonly with_line_numbers?: boolean
  readonly with_header?: boolean
}

interface ReadInput extends PathInput, TextOptions {
  readonly start_line?: number
  readonly read_lines?: number
}

interface SearchInput {
  readonly pattern: string
  readonly excludePatterns?: readonly string[]
}

const TEXT: JsonSchema = { type: 'string' }
const PATTERN: JsonSchema = { type: 'string', maxLength: 1_000 }
const PATTERNS: JsonSchema = { type: 'array', items: PATTERN, maxItems: 100 }
const PATH: JsonSchema = { type: 'string', description: 'Absolute, such as /workspace/notes.md' }
const LINE: JsonSchema = { type: 'integer', minimum: 1, description: 'The first line to read. Default 1' }
const COUNT: JsonSchema = { type: 'integer', minimum: 1, description: 'How many lines to read. Default: all' }
const TEXT_OPTIONS: Readonly<Record<string, JsonSchema>> = {
  with_line_numbers: { type: 'boolean', description: 'Default true' },
  with_header: { type: 'boolean', description: 'Default true' },
}
const EDIT = schema({ oldText: TEXT, newText: TEXT, replaceAll: { type: 'boolean' } }, ['oldText', 'newText'])

function schema(properties: Readonly<Record<string, JsonSchema>>, required: readonly string[]): JsonSchema {
  return { type: 'object', properties, required: [...required], additionalProperties: false }
}

function skippingDenied(definition: ToolDefinition<JsonSchema, string>): Tool {
  return Object.freeze({ ...(tool(definition) as Tool), skipsDenied: true })
}

/** These requests are decided, and if need be asked, before the call runs. */
function needs(...operations: readonly FileOperation[]): (input: unknown) => readonly Request[] {
  return (input) => operations.flatMap((operation) => fileNeed(operation, (input as PathInput).path))
}

function formOf({ with_line_numbers: withLineNumbers = true, with_header: withHeader = true }: TextOptions) {
  return { withLineNumbers, withHeader }
}

function cutNote(isCut: boolean): string[] {
  return isCut ? ['[There is more: look into one directory at a time.]'] : []
}
