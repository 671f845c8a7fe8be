import { closeSync, constants, fstatSync, openSync, readSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { isOwnPath } from '../../core/base/system/own-files.ts'
import { callText, type Node, seenOf, wantedText } from '../../doors/rows.ts'
import type { Id, Json, PendingApproval, PendingQuestion } from '../../index.ts'
import { legate } from '../command/next-command.ts'
import { shownId } from '../store/find-run.ts'
import { exactLine, oneLine } from '../terminal/clean.ts'
import { cut, wrap, wrapSigned } from '../terminal/width.ts'
import { preview } from './words.ts'

const PREVIEW = 120

/** Describes on one line what a node does, or what a person is asked to allow. */
export function describeCall(node: Node): string {
  const { call } = node.input
  const { request, input } = requestOf(node)
  return preview(callText({ request, tool: call?.name ?? null, input: call?.input ?? input }), PREVIEW)
}

/**
 * Describes a call completely and exactly, so that whoever allows it sees what they allow. With the folder of the
 * workspace, also the file that it would write over.
 */
export function describeWholeCall(node: Node, folder?: string): string {
  const { request, input } = requestOf(node)
  const { call } = node.input
  if (call === undefined) return wantedText({ request, tool: null, input })
  if (node.state !== 'awaiting_approval') return callText({ request: '', tool: call.name, input: call.input })
  return requestLines({ request, tool: call.name, input: input ?? call.input }, folder)
}

/** Describes a request, with a change of several lines in a file, or over one in the folder, shown as a diff. */
export function requestLines(asked: Pick<PendingApproval, 'request' | 'tool' | 'input'>, folder?: string): string {
  const { request, tool, input } = asked
  const change = tool === null ? undefined : changeIn(input, tool === 'write_file' ? folder : undefined)
  if (change === undefined) return wantedText(asked)
  const head = request === `tool:${tool}` ? '' : `${exactLine(request)} for `
  return [`${head}${exactLine(tool ?? '')} ${exactLine(change.path)}`, ...change.lines].join('\n')
}

interface Change {
  readonly path: string
  readonly lines: readonly string[]
}

/** Reads the text that a call writes to or replaces in a file; undefined for any other call. */
function changeIn(input: Json, folder: string | undefined): Change | undefined {
  const { path, content, edits, ...others } = fieldsOf(input)
  if (typeof path !== 'string' || Object.keys(others).length > 0) return undefined
  if (typeof content === 'string' && edits === undefined) {
    const old = folder === undefined ? [] : replacedLines(folder, path)
    const isShown = content.includes('\n') || old.length > 0
    return isShown ? { path, lines: [...old, ...signed('+', content)] } : undefined
  }
  if (!Array.isArray(edits) || content !== undefined) return undefined
  const lines = edits.map(editLines)
  const isWhole = lines.length > 0 && lines.every((edit) => edit !== undefined)
  return isWhole && JSON.stringify(edits).includes('\\n') ? { path, lines: lines.flat() } : undefined
}

/** Shows the file that would be written over, as far as a person reads it; empty if there is none. */
function replacedLines(folder: string, given: string): string[] {
  const file = readReplaced(folder, given)
  if (file === undefined) return []
  if (file.text === null) return [`@@ over a file of ${file.size} bytes, which is not shown`]
  const lines = signed('-', file.text)
  const hidden = lines.length - MOST_OLD
  const rest = hidden > 0 ? [`\\ ${hidden} more lines of it go`] : []
  return ['@@ over the file that is there', ...lines.slice(0, MOST_OLD), ...rest]
}

/** The most lines of a file that are shown as gone, and the most bytes that are read for them. */
const MOST_OLD = 40
const MOST_BYTES = 256 * 1024

interface ReplacedFile {
  readonly size: number
  /** Null for a file that is too long, or no text. */
  readonly text: string | null
}

/** Reads a file of the workspace; undefined if it is elsewhere or not there. */
function readReplaced(folder: string, given: string): ReplacedFile | undefined {
  const below = path.posix.resolve('/workspace', given)
  if (!below.startsWith('/workspace/')) return undefined
  try {
    const top = realpathSync(folder)
    const place = realpathSync(path.join(top, below.slice('/workspace/'.length)))
    return place.startsWith(top + path.sep) ? readShort(place) : undefined
  } catch {
    return undefined
  }
}

function readShort(place: string): ReplacedFile | undefined {
  const handle = openSync(place, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stat = fstatSync(handle)
    if (!stat.isFile() || isOwnPath(place, stat)) return undefined
    if (stat.size > MOST_BYTES) return { size: stat.size, text: null }
    const bytes = Buffer.alloc(stat.size)
    const text = bytes.subarray(0, readSync(handle, bytes, 0, stat.size, 0)).toString('utf8')
    return { size: stat.size, text: /[\0\ufffd]/.test(text) ? null : text }
  } finally {
    closeSync(handle)
  }
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

/** Writes the commands that answer a waiting call. */
export function approveCommands(node: Node): string {
  const which = `${shownId(node.id)}${seenOption(seenOf(node) ?? '')}`
  return `${legate(`approve ${which}`)}, or ${legate(`deny ${which} --reason TEXT`)}`
}

/** Writes the command that shows a request whole, for places that have no room for it: nobody is handed a hash unseen. */
export function showCommand(nodeId: Id): string {
  return legate(`approvals ${shownId(nodeId)}`)
}

/** Binds an answer to the request shown beside it: the node may ask for something else by then. */
export function seenOption(digest: string): string {
  return ` --seen ${digest}`
}

/** The question a call asked a person, on one line. */
export function questionOnOneLine({ metadata: { question } }: Node): string {
  const text = typeof question === 'object' && question !== null ? Reflect.get(question, 'text') : undefined
  return typeof text === 'string' ? oneLine(text) : ''
}

/** The node whose code asked this question and waits for the answer. */
export function askingNode({ state, metadata }: Node): Json | undefined {
  return state === 'waiting' ? metadata['asked_by'] : undefined
}

/** Does the node wait for the result of a call that is executed elsewhere? */
export function isOutside({ metadata: { question } }: Node): boolean {
  return typeof question === 'object' && question !== null && 'outside' in question
}

/** Writes the command that answers a question of a node, or gives the result of its call. */
export function replyCommand(node: Node): string {
  const asked = { nodeId: node.id, seen: seenOf(node) ?? '', to: isOutside(node) ? 'outside' : 'person' } as const
  return answerCommand(asked)
}

/** Writes the command that answers a question, or gives the result of a call. */
export function answerCommand({ nodeId, seen, to }: Pick<PendingQuestion, 'nodeId' | 'seen' | 'to'>): string {
  const id = shownId(nodeId)
  return legate(to === 'outside' ? `answer ${id}${seenOption(seen)} RESULT` : `answer ${id} TEXT`)
}

/** Writes the command that settles an uncertain call. */
export function settleCommand({ nodeId, seen }: { readonly nodeId: Id; readonly seen: string }): string {
  const command = legate(`settle ${shownId(nodeId)}${seenOption(seen)}`)
  return `${command} --happened [--result JSON], or --run-again, or --leave`
}

interface NodeRequest {
  readonly request: string
  readonly input: Json
}

/** Describes the request of a node without a call: a model to ask, a server to start, or a secret for either. */
function requestOf({ kind, metadata: { approval } }: Node): NodeRequest {
  const asked = typeof approval === 'object' && approval !== null ? (approval as Readonly<Record<string, Json>>) : {}
  const { request, input } = asked
  return { request: typeof request === 'string' && request !== '' ? request : kind, input: input ?? null }
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
  const whole = wrapSigned(text, columns, room)
  if (whole.hidden === 0) return [...whole.lines, ...keys]
  const { lines, hidden } = wrapSigned(text, columns, room - 1)
  return [...lines, cut(`… ${hidden} more characters: ${legate('approvals')} shows all`, columns), ...keys]
}
