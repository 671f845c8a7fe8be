// Calls in the words of Claude Code: how a hook that was written for that program sees a call of a tool here.
//
// Must stay true:
//   - A call that does several things there is several calls: a guard sees each of them.
//   - What a hook changes is read back into the very arguments that are then decided.

import type { Json } from '../../core/base/json.ts'
import { isRecord } from '../../core/base/json.ts'
import { quoteWords } from '../../core/grant/words.ts'
import { workspacePath } from '../../core/tools/workspace-paths.ts'

/** A call as a hook sees it. */
export interface ClaudeCall {
  readonly name: string
  /** Other names by which matchers may know the tool. */
  readonly aliases: readonly string[]
  readonly input: Json
}

/** The tool of a call, and whether it starts an agent. */
export interface CallOfTool {
  readonly name: string
  readonly input: Json
  readonly delegates: boolean
}

/** Translates between the names of files here and on the disk. */
export interface FilePaths {
  /** The real folder that is `/workspace` here. */
  readonly folder: string
}

type Fields = { readonly [key: string]: Json }

/** All calls that a call here stands for, at least one. */
export function claudeCalls({ name, input, delegates }: CallOfTool, paths: FilePaths): readonly ClaudeCall[] {
  const fields = isRecord(input) ? (input as Fields) : {}
  const file = (given: Json | undefined) => realPath(given, paths)
  const one = (shown: string, shownInput: Json) => [{ name: shown, aliases: [name], input: shownInput }]
  if (delegates || STARTING.has(name)) {
    return [{ name: 'Agent', aliases: ['Task', name], input: startOf(fields) }]
  }
  switch (name) {
    case 'shell':
      return one('Bash', withoutNone({ command: commandOf(fields), timeout: milliseconds(fields['timeout_seconds']) }))
    case 'read_text_file':
      return one(
        'Read',
        withoutNone({ file_path: file(fields['path']), offset: fields['start_line'], limit: fields['read_lines'] }),
      )
    case 'get_file_info':
      return one('Read', { file_path: file(fields['path']) })
    case 'read_multiple_files':
      return listOf(fields['paths']).flatMap((path) => one('Read', { file_path: file(path) }))
    case 'write_file':
      return one('Write', { file_path: file(fields['path']), content: fields['content'] ?? '' })
    case 'edit_file':
      return listOf(fields['edits']).flatMap((edit) =>
        one('Edit', { file_path: file(fields['path']), ...claudeEdit(edit) }),
      )
    case 'delete_file': {
      // A guard of writes and one of commands are both meant: that program deletes with a command.
      const path = file(fields['path'])
      return [
        ...one('Bash', { command: quoteWords(['rm', '--', path]) }),
        ...one('Write', { file_path: path, content: '' }),
      ]
    }
    case 'search_files':
      return one('Glob', { pattern: fields['pattern'] ?? '', path: file(fields['path']) })
    case 'list_directory':
    case 'list_directory_with_sizes':
    case 'tree':
      return one('LS', { path: file(fields['path'] ?? '/workspace') }).map((call) => ({
        ...call,
        aliases: [name, 'Glob'],
      }))
    case 'search_text':
      return one(
        'Grep',
        withoutNone({
          pattern: fields['text'] ?? '',
          path: file(fields['path'] ?? '/workspace'),
          glob: fields['files'],
          '-i': fields['ignore_case'],
        }),
      )
    case 'todo_write':
      return one('TodoWrite', input)
    case 'todo_read':
      return one('TodoRead', input)
    case 'skills_load':
    case 'skills_read':
    case 'skills_list':
      return one('Skill', withoutNone({ skill: fields['name'], args: fields['arguments'], file: fields['file'] }))
    default:
      return name.includes('__') ? one(`mcp__${name}`, input) : [{ name, aliases: [], input }]
  }
}

/** The arguments here after a hook has changed those that it saw; undefined where they cannot be told apart. */
export function changedInput(
  { name, input, delegates }: CallOfTool,
  changed: Json,
  paths: FilePaths,
): Json | undefined {
  if (!isRecord(changed) || !isRecord(input) || delegates || STARTING.has(name)) return undefined
  const { folder } = paths
  const fields = changed as Fields
  const own = input as Fields
  const path = (given: Json | undefined) => (typeof given === 'string' ? placeOf(given, folder) : given)
  switch (name) {
    case 'shell': {
      const { argv: _, command: __, ...others } = own
      return { ...others, command: fields['command'] ?? '' }
    }
    case 'read_text_file':
      return withoutNone({
        ...own,
        path: path(fields['file_path']),
        start_line: fields['offset'],
        read_lines: fields['limit'],
      })
    case 'get_file_info':
      return withoutNone({ ...own, path: path(fields['file_path']) })
    case 'write_file':
      return withoutNone({ ...own, path: path(fields['file_path']), content: fields['content'] })
    case 'edit_file': {
      const { file_path: place, old_string: oldText, new_string: newText, replace_all: replaceAll } = fields
      return withoutNone({ path: path(place), edits: [withoutNone({ oldText, newText, replaceAll })] })
    }
    case 'search_files':
      return withoutNone({ ...own, path: path(fields['path']), pattern: fields['pattern'] })
    case 'search_text':
      return withoutNone({
        ...own,
        path: path(fields['path']),
        text: fields['pattern'],
        files: fields['glob'],
        ignore_case: fields['-i'],
      })
    case 'todo_write':
      return changed
    default:
      return name.includes('__') ? changed : undefined
  }
}

/** Tools that start or steer agents. */
const STARTING: ReadonlySet<string> = new Set(['subagent', 'delegate', 'Agent', 'subagent_spawn'])

/** The words for an agent that is started, whatever the tool calls them. */
function startOf(fields: Fields): Json {
  const text = (...keys: readonly string[]) => keys.map((key) => fields[key]).find((value) => typeof value === 'string')
  return withoutNone({
    ...fields,
    subagent_type: text('subagent_type', 'subrecipe', 'source', 'agent', 'agent_name'),
    prompt: text('prompt', 'instructions', 'task', 'message'),
  })
}

function commandOf({ command, argv }: Fields): string {
  if (typeof command === 'string') return command
  return quoteWords(listOf(argv).map(String))
}

function claudeEdit(edit: Json): Fields {
  const { oldText, newText, replaceAll } = isRecord(edit) ? (edit as Fields) : {}
  return withoutNone({ old_string: oldText, new_string: newText, replace_all: replaceAll ?? false })
}

function milliseconds(seconds: Json | undefined): Json | undefined {
  return typeof seconds === 'number' ? seconds * 1_000 : undefined
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) && value.length > 0 ? value : ['']
}

function realPath(given: Json | undefined, { folder }: FilePaths): string {
  const place = workspacePath(typeof given === 'string' ? given : '')
  return place === '/workspace' || place.startsWith('/workspace/')
    ? `${folder}${place.slice('/workspace'.length)}`
    : place
}

function placeOf(given: string, folder: string): string {
  return given === folder || given.startsWith(`${folder}/`) ? `/workspace${given.slice(folder.length)}` : given
}

function withoutNone(fields: { readonly [key: string]: Json | undefined }): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields
}
