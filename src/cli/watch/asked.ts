import type { Id, Json, Node, PendingApproval } from '../../index.ts'
import { shortId } from '../store/find-run.ts'
import { exactLine, oneLine } from '../terminal/clean.ts'
import { cut, wrap } from '../terminal/width.ts'
import { preview, whole } from './words.ts'

const PREVIEW = 120

/** Describes on one line what a node does, or what a person is asked to allow. */
export function callOf(node: Node): string {
  const { call } = node.input
  if (call !== undefined) {
    return `${oneLine(call.name)} ${preview(withoutSecrets(call.input, askedOf(node).request), PREVIEW)}`
  }
  return preview(requestWords(askedOf(node)), PREVIEW)
}

/** Describes a call completely and exactly, so that whoever allows it sees what they allow. */
export function wholeCallOf(node: Node): string {
  const { request, input } = askedOf(node)
  const { call } = node.input
  if (call === undefined) return wantedIn({ request, tool: null, input })
  if (node.state !== 'awaiting_approval') return `${exactLine(call.name)} ${whole(call.input)}`
  return wantedLines({ request, tool: call.name, input: input ?? call.input })
}

/**
 * Describes completely what a person is asked to allow: the request, and the call it is for if the request does not say
 * it all.
 */
export function wantedIn({ request, tool, input }: WantedCall): string {
  if (tool === null) return whole(requestWords({ request, input }))
  const call = `${exactLine(tool)} ${whole(withoutSecrets(input, request))}`
  return request === `tool:${tool}` ? call : `${exactLine(request)} for ${call}`
}

/** Describes a request, with a change of several lines in a file shown as a diff. */
export function wantedLines(asked: WantedCall): string {
  const { request, tool, input } = asked
  const change = tool === null ? undefined : changeIn(input)
  if (change === undefined) return wantedIn(asked)
  const head = request === `tool:${tool}` ? '' : `${exactLine(request)} for `
  return [`${head}${exactLine(tool ?? '')} ${exactLine(change.path)}`, ...change.lines].join('\n')
}

/** Hides the words of a command that its request hides. All others must be the same, else the command stays as it is. */
function withoutSecrets(input: Json, request: string): Json {
  const { command, ...others } = fieldsOf(input)
  if (typeof command !== 'string' || !request.startsWith('exec:') || !request.includes(MARK)) return input
  const line = request.slice('exec:'.length)
  const [shown, words] = [line.split(' '), command.split(' ')]
  const isSame = shown.length === words.length && shown.every((word, at) => isShownAs(words[at] ?? '', word))
  return isSame ? { ...others, command: line } : input
}

function isShownAs(word: string, shown: string): boolean {
  if (word === shown) return true
  const [before = '', after, ...more] = shown.split(MARK)
  if (after === undefined || more.length > 0 || !word.startsWith(before) || !word.endsWith(after)) return false
  return /^[\w.=+/-]+$/.test(word.slice(before.length, word.length - after.length))
}

const MARK = '***'

type WantedCall = Pick<PendingApproval, 'request' | 'tool' | 'input'>

interface Change {
  readonly path: string
  readonly lines: readonly string[]
}

/** Reads the text that a call writes to or replaces in a file; undefined for any other call. */
function changeIn(input: Json): Change | undefined {
  const { path, content, edits, ...others } = fieldsOf(input)
  if (typeof path !== 'string' || Object.keys(others).length > 0) return undefined
  if (typeof content === 'string' && edits === undefined) {
    return content.includes('\n') ? { path, lines: signed('+', content) } : undefined
  }
  if (!Array.isArray(edits) || content !== undefined) return undefined
  const lines = edits.map(editLines)
  const isWhole = lines.length > 0 && lines.every((edit) => edit !== undefined)
  return isWhole && JSON.stringify(edits).includes('\\n') ? { path, lines: lines.flat() } : undefined
}

function editLines(edit: Json): string[] | undefined {
  const { oldText, newText, replaceAll = false, ...others } = fieldsOf(edit)
  const isEdit = typeof oldText === 'string' && typeof newText === 'string' && typeof replaceAll === 'boolean'
  if (!isEdit || Object.keys(others).length > 0) return undefined
  return [replaceAll ? '@@ everywhere' : '@@', ...signed('-', oldText), ...signed('+', newText)]
}

/** Puts a sign before each line, so that none looks like a line of ours, and makes trailing blanks visible. */
function signed(sign: '+' | '-', text: string): string[] {
  if (text === '') return []
  const lines = text.split('\n')
  const isEnded = lines.at(-1) === ''
  const shown = isEnded ? lines.slice(0, -1) : lines
  const put = (line: string) => `${sign} ${exactLine(line).replace(/ +$/, (blanks) => '\\u0020'.repeat(blanks.length))}`
  return [...shown.map(put), ...(isEnded ? [] : ['\\ no line break at the end'])]
}

function fieldsOf(value: Json): { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

function requestWords({ request, input }: NodeRequest): string {
  return serverWords(request, input) ?? (input === null ? request : `${request} ${JSON.stringify(input)}`)
}

/** Writes the command that answers a waiting call; `where` names the store if needed. */
export function answersOf(node: Pick<Node, 'id' | 'metadata'>, where = ''): string {
  const id = shortId(node.id)
  const seen = seenOption(digestOf(node))
  return `legate approve ${id}${seen}${where}, or legate deny ${id}${seen} --reason TEXT${where}`
}

/** Binds an answer to the request shown beside it: the node may ask for something else by then. */
export function seenOption(digest: string): string {
  return digest === '' ? '' : ` --seen ${digest.slice(0, SEEN)}`
}

/** So many characters of a digest cannot be hit by chance, nor by a model that tries. */
export const SEEN = 12

/** The question a call asked a person, on one line. */
export function questionOf({ metadata: { question } }: Node): string {
  const text = typeof question === 'object' && question !== null ? Reflect.get(question, 'text') : undefined
  return typeof text === 'string' ? oneLine(text) : ''
}

/** The node whose code asked this question and waits for the answer. */
export function askerOf({ state, metadata }: Node): Json | undefined {
  return state === 'waiting' ? metadata['asked_by'] : undefined
}

/** Writes the command that answers a question. */
export function replyTo(nodeId: Id, where = ''): string {
  return `legate answer ${shortId(nodeId)} TEXT${where}`
}

/** Identifies the current request of a node, which may make several in turn. */
export function digestOf({ metadata: { approval } }: Pick<Node, 'metadata'>): string {
  const digest = typeof approval === 'object' && approval !== null ? Reflect.get(approval, 'digest') : undefined
  return typeof digest === 'string' ? digest : ''
}

interface NodeRequest {
  readonly request: string
  readonly input: Json
}

/** Describes the request of a node without a call: a model to ask or a server to start. */
function askedOf({ kind, metadata: { approval } }: Node): NodeRequest {
  const asked = typeof approval === 'object' && approval !== null ? (approval as Readonly<Record<string, Json>>) : {}
  const { request, input } = asked
  return { request: typeof request === 'string' && request !== '' ? request : kind, input: input ?? null }
}

/**
 * Describes in words a server that is to be started or contacted: the whole command line or address, its folder, and
 * the names of everything passed to it. Undefined for any other request.
 */
function serverWords(request: string, about: Json): string | undefined {
  if (typeof about !== 'object' || about === null || Array.isArray(about)) return undefined
  const { mcp, cwd, env, headers, secrets } = about as Readonly<Record<string, Json>>
  if (typeof mcp !== 'string') return undefined
  return [
    request === `exec:${mcp}` ? `${request}, an MCP server` : `${request}, the MCP server ${mcp}`,
    typeof cwd === 'string' ? ` in ${cwd}` : '',
    given('variables', env),
    given('headers', headers),
    given('secrets', secrets),
  ].join('')
}

function given(what: string, names: Json | undefined): string {
  return Array.isArray(names) && names.length > 0 ? `, with the ${what} ${names.join(', ')}` : ''
}

/** A question to a person, shown below the tree. */
export interface ScreenQuestion {
  /** Takes as many rows as it needs and the screen has. */
  readonly text: string
  /** Always shown. */
  readonly prompt: string
}

/**
 * Lays out the question in so many columns and rows: first the text, last how to answer. Hidden characters are counted.
 */
export function questionLines({ text, prompt }: ScreenQuestion, columns: number, rows: number): readonly string[] {
  const keys = wrap(prompt, columns).lines
  const room = Math.max(1, rows - keys.length)
  const whole = wrap(text, columns, room)
  if (whole.hidden === 0) return [...whole.lines, ...keys]
  const { lines, hidden } = wrap(text, columns, room - 1)
  return [...lines, cut(`… ${hidden} more characters: legate approvals shows all`, columns), ...keys]
}
