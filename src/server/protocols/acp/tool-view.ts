// Calls of tools as an editor shows them: title, kind, files, changes, plan. Pure functions.

import { resolve } from 'node:path'
import { visible, visibleLines } from '../../../core/base/text.ts'
import type { AskedFacts } from '../../../doors/rows.ts'
import type { Content, Json } from '../../../index.ts'

/** Where the files of a session are. */
export type Folder = string

/** The kinds of calls that editors know. */
export type CallKind = 'read' | 'edit' | 'delete' | 'search' | 'execute' | 'think' | 'fetch' | 'other'

interface Call {
  readonly name: string
  readonly input: Json
}

const KINDS: readonly (readonly [RegExp, CallKind])[] = [
  [/^(?:read|get|list)_|^view|^describe/, 'read'],
  [/search|grep|glob|find/, 'search'],
  [/^delete_|^remove_/, 'delete'],
  [/^(?:write|edit|create|update|patch)_|replace/, 'edit'],
  [/shell|exec|bash|command|^run_/, 'execute'],
  [/fetch|http|url|web/, 'fetch'],
]

/** The kind of a call: by the request that a rule decides on, else by the tool's name. */
export function kindOf({ name }: Call, delegates: boolean): CallKind {
  if (delegates) return 'think'
  return KINDS.find(([form]) => form.test(name))?.[1] ?? 'other'
}

/** A title for people: who calls what, with what is most telling of its arguments. */
export function titleOf({ name, input }: Call, path: readonly string[]): string {
  const fields = fieldsOf(input)
  const telling = ['path', 'command', 'query', 'pattern', 'url', 'message'].map((key) => fields[key]).find(isText)
  return `${above(path)}${visible(name)}${telling === undefined ? '' : ` ${short(telling, LONGEST)}`}`
}

/** The title of a request for permission: the request that is decided, and for a call the tool. */
export function permissionTitle({ path, request, tool, input }: Omit<AskedFacts, 'reason'>): string {
  if (tool === null) return `${visible(path.join(' > '))}: ${short(request, LONGEST_REQUEST)}`
  if (request === `tool:${tool}`) return titleOf({ name: tool, input }, path)
  return `${above(path)}${short(request, LONGEST_REQUEST)} for ${visible(tool)}`
}

function above(path: readonly string[]): string {
  return path.length > 1 ? `${visible(path.slice(1).join(' > '))}: ` : ''
}

/** The files that a call is about, in the folder of the session. Others are no place to follow the agent to: it may not go there. */
export function locationsOf({ input }: Call, folder: Folder): { path: string; line?: number }[] {
  const { path, line, offset } = fieldsOf(input)
  const real = isText(path) ? resolve(realPath(path, folder)) : ''
  if (!real.startsWith(`${folder}/`)) return []
  const at = [line, offset].find((value) => typeof value === 'number')
  return [{ path: real, ...(at === undefined ? {} : { line: Number(at) }) }]
}

export type CallContent =
  | { readonly type: 'content'; readonly content: { readonly type: 'text'; readonly text: string } }
  | { readonly type: 'diff'; readonly path: string; readonly oldText: string | null; readonly newText: string }

/** The changes of files that a call makes, as far as its arguments say them. Every character of them is visible. */
export function diffsOf({ input }: Call, folder: Folder): CallContent[] {
  const { path, content, edits } = fieldsOf(input)
  if (!isText(path)) return []
  const at = realPath(path, folder)
  if (isText(content)) return [{ type: 'diff', path: at, oldText: null, newText: visibleLines(content) }]
  if (!Array.isArray(edits)) return []
  return edits.flatMap((edit) => {
    const { oldText, newText } = fieldsOf(edit)
    if (!isText(oldText) || typeof newText !== 'string') return []
    return [{ type: 'diff' as const, path: at, oldText: visibleLines(oldText), newText: visibleLines(newText) }]
  })
}

export interface PlanEntry {
  readonly content: string
  readonly priority: 'medium'
  readonly status: 'pending' | 'completed'
}

/** The plan that a call of `todo_write` writes; undefined for other calls. */
export function planOf({ name, input }: Call): PlanEntry[] | undefined {
  const { content } = fieldsOf(input)
  if (name !== 'todo_write' || typeof content !== 'string') return undefined
  return content.split('\n').flatMap((line) => {
    const [, done = '', text = ''] = /^\s*(?:[-*]\s*)?(?:\[([ xX])\]\s*)?(.*\S)\s*$/.exec(line) ?? []
    if (text === '') return []
    return [{ content: text, priority: 'medium' as const, status: done.trim() === '' ? 'pending' : 'completed' }]
  })
}

/** The text of a result. */
export function textContent(content: Content): CallContent[] {
  const texts =
    typeof content === 'string' ? [content] : content.map((one) => ('text' in one ? one.text : `[${one.type}]`))
  const text = texts.join('\n')
  return text === '' ? [] : [{ type: 'content', content: { type: 'text', text } }]
}

/** Agents see the folder of the session as /workspace/. */
function realPath(path: string, folder: Folder): string {
  if (path.startsWith('/workspace/')) return `${folder}/${path.slice('/workspace/'.length)}`
  return path.startsWith('/') ? path : `${folder}/${path}`
}

/** The value with each text and each key in it made visible: its lines stay. */
export function visibleJson(value: Json): Json {
  if (typeof value === 'string') return visibleLines(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((one) => visibleJson(one as Json))
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [visible(key), visibleJson(one as Json)]))
}

function fieldsOf(value: Json | undefined): Readonly<Record<string, Json | undefined>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

function isText(value: Json | undefined): value is string {
  return typeof value === 'string' && value !== ''
}

/** How much of a text a title shows. */
const LONGEST = 80
const LONGEST_REQUEST = 200

/** The beginning of a text on one line, and a sign where there is more. */
function short(text: string, most: number): string {
  const line = visible(text)
  return line.length > most ? `${line.slice(0, most).toWellFormed()}… (${line.length - most} more characters)` : line
}
