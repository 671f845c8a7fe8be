import { closeSync, existsSync, fchmodSync, mkdirSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'
import path from 'node:path'
import { DefinitionError, messageOf, NotFoundError } from '../../core/base/error.ts'
import { type Json, parseOwnJson } from '../../core/base/json.ts'
import type { JsonSchema } from '../../core/base/schema/schema.ts'
import { ownFile } from '../../core/base/system/own-files.ts'
import type { Effect } from '../../core/graph/rows.ts'
import type { FinishReason, Part } from '../../core/model/model.ts'
import type { OpenSource, SourceTool } from '../../core/tool/source.ts'
import type { CodeResult } from '../../core/tool/tape.ts'
import { type Tool, tool } from '../../core/tool/tool.ts'

const FORMAT = 'recording'
const VERSION = 1

export interface ReadRecording {
  readonly lines: readonly NumberedLine[]
  /** Bytes of complete lines; a torn line of a killed process comes after them. */
  readonly size: number
}

export interface NumberedLine {
  readonly line: Line
  /** The line number in the file, from 1. */
  readonly number: number
}

/** Reads every complete line of a recording. Throws if there is none, or if it is damaged before its end. */
export function readRecording(file: string): ReadRecording {
  ownFile(file, 'a recording')
  const text = textOf(file)
  const size = text.lastIndexOf('\n') + 1
  const [first = '', ...others] = text.slice(0, size).split('\n').slice(0, -1)
  checkFirst(first, file)
  const lines = others.map((line, at) => ({ line: readLine(line, { file, number: at + 2 }), number: at + 2 }))
  return { lines, size: Buffer.byteLength(text.slice(0, size)) }
}

/** Reads an existing recording; null if there is no file yet. */
export function readIfThere(file: string): ReadRecording | null {
  return existsSync(file) ? readRecording(file) : null
}

/**
 * Appends lines, each in one write, so that a killed process leaves complete ones. Creates the file with the first
 * line.
 */
export class RecordingWriter {
  private readonly file: string
  /** Bytes of the existing file to keep; null to start anew. */
  private readonly keep: number | null
  private descriptor: number | undefined

  constructor(file: string, keep: number | null) {
    ownFile(file, 'a recording')
    this.file = file
    this.keep = keep
  }

  write(line: Line): void {
    this.descriptor ??= this.open()
    writeAll(this.descriptor, `${JSON.stringify(line)}\n`)
  }

  close(): void {
    if (this.descriptor !== undefined) closeSync(this.descriptor)
    this.descriptor = undefined
  }

  private open(): number {
    if (this.keep !== null) {
      truncateSync(this.file, this.keep)
      return openOwn(this.file, 'a')
    }
    mkdirSync(path.dirname(this.file), { recursive: true })
    const descriptor = openOwn(this.file, 'w')
    writeAll(descriptor, `${JSON.stringify({ legate: FORMAT, version: VERSION })}\n`)
    return descriptor
  }
}

/** Opens a file that only its owner can read, even if it existed before, because it contains conversations. */
function openOwn(file: string, flag: 'a' | 'w'): number {
  const descriptor = openSync(file, flag, 0o600)
  fchmodSync(descriptor, 0o600)
  ownFile(file, 'a recording')
  return descriptor
}

function writeAll(descriptor: number, text: string): void {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at)
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new NotFoundError('not_found', `There is no recording ${file}. Make it with record(runtime, file).`)
  }
}

/** Refuses to read or overwrite a file that is not a recording. */
function checkFirst(text: string, file: string): void {
  const first = parsed(text) as { readonly legate?: unknown; readonly version?: unknown } | undefined
  if (first?.legate !== FORMAT) throw new DefinitionError('definition', `${file} is not a recording of ours.`)
  if (first.version === VERSION) return
  const message = `${file} was written by another version of legate (${String(first.version)}). Record it again.`
  throw new DefinitionError('definition', message)
}

function readLine(text: string, { file, number }: { readonly file: string; readonly number: number }): Line {
  try {
    const line: unknown = parseOwnJson(text)
    if (isRecord(line) && isLine(line)) return line as unknown as Line
    throw new Error('the line does not belong to a recording')
  } catch (error) {
    throw new DefinitionError('definition', `${file}, line ${number}: ${messageOf(error)}. Record it again.`)
  }
}

/** A line as the recorder writes it: later readers go by it. */
function isLine(line: Fields): boolean {
  if ('at' in line && typeof line['at'] !== 'string') return false
  if ('request' in line && !(isRecord(line['request']) && Array.isArray(line['answer']))) return false
  if ('result' in line && !isRecord(line['result'])) return false
  return ['run', 'at', 'source'].some((key) => typeof line[key] === 'string')
}

type Fields = { readonly [key: string]: unknown }

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parsed(text: string): unknown {
  try {
    return parseOwnJson(text)
  } catch {
    return undefined
  }
}

/** A line of a recording after the first, which identifies the file. */
export type Line = RunLine | AnswerLine | CodeLine | SourceLine

/** A recorded root run. */
export interface RunLine {
  /** Its name in addresses: its agent's, with a number from the second run on. */
  readonly run: string
  readonly agent: string
  readonly input: Json
  /** The id of its conversation, so that another process can continue the recording. */
  readonly id: string
}

/** A request to a model and its answer. */
export interface AnswerLine extends Ids {
  readonly at: string
  readonly model: string
  readonly request: PackedRequest
  readonly answer: readonly RecordedPart[]
  readonly error?: { readonly message: string; readonly retryable: boolean }
  /** Whether the caller stopped reading before the end. */
  readonly stopped?: true
}

/** The input and the result of code. */
export interface CodeLine extends Ids {
  readonly at: string
  readonly tool: string
  readonly input: Json
  readonly progress?: readonly { readonly message: string; readonly data: Json }[]
  /** The agents it started, in order. */
  readonly children?: readonly StartedInside[]
  readonly result: CodeResult
  /** The ids of its own node, run and conversation, as its result names them. */
  readonly own?: readonly string[]
}

export interface StartedInside {
  readonly agent: string
  readonly input: Json
  readonly mode: 'called' | 'background'
  readonly wake?: 'auto' | 'passive'
  /** Places in the list of those that had ended before. */
  readonly after?: readonly number[]
}

/** The tools of a started source. */
export interface SourceLine {
  readonly source: string
  readonly tools: readonly { readonly name: string; readonly description: string; readonly inputSchema: Json }[]
  readonly effects: readonly string[]
  readonly versions: readonly string[]
  readonly notes: string
  readonly warnings: readonly string[]
  readonly failed?: string
}

interface Ids {
  /** Our ids that are new in this line. */
  readonly ids?: { readonly [token: string]: string }
}

/**
 * A request without the parts it shares with that of an earlier line: a number of first messages, and every omitted
 * field.
 */
export interface PackedRequest {
  readonly after?: string
  readonly keep?: number
  readonly messages: readonly Json[]
  readonly tools?: Json
  readonly settings?: Json
  readonly outputSchema?: Json
}

/**
 * A part of an answer: a text is a delta; `[text]` is one of reasoning. `after` says that the following parts arrived
 * after that other line.
 */
export type RecordedPart =
  | string
  | readonly [reasoning: string]
  | { readonly after: string }
  | { readonly finish: FinishReason; readonly usage: Json }
  | Exclude<Part, { readonly type: 'text-delta' | 'reasoning-delta' | 'finish' }>

/** The agent name at the end of an address, which helps to find a similar request. */
export function lastAgent(at: string): string {
  return /^[^~+.@]*/.exec(at.slice(at.lastIndexOf('/') + 1))?.[0] ?? ''
}

/** Records the offer of a source, or why it could not start. */
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

/** Restores a source from its record. */
export function recordedSource(line: SourceLine): OpenSource {
  if (line.failed !== undefined) throw new Error(line.failed)
  const tools = new Map<string, SourceTool>()
  for (const [at, { name, description, inputSchema }] of line.tools.entries()) {
    const effect = (line.effects[at] ?? 'effectful') as Effect
    const own = tool({ description, input: inputSchema as JsonSchema, effect, execute: () => null }) as Tool
    tools.set(name, { tool: own, version: line.versions[at] ?? '' })
  }
  const { notes, warnings } = line
  return { tools, notes, warnings, ready: async () => undefined, close: async () => undefined }
}
