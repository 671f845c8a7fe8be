import { closeSync, existsSync, fchmodSync, mkdirSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'
import path from 'node:path'
import { DefinitionError, messageOf, NotFoundError } from '../../base/error.ts'
import { type Json, parseOwnJson } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema/schema.ts'
import type { Effect } from '../../graph/rows.ts'
import type { FinishReason, Part } from '../../model/model.ts'
import type { OpenSource, SourceTool } from '../../tool/source.ts'
import type { CodeResult } from '../../tool/tape.ts'
import { type Tool, tool } from '../../tool/tool.ts'

const FORMAT = 'recording'
const VERSION = 1

export interface ReadRecording {
  readonly lines: readonly NumberedLine[]
  /** Bytes of whole lines: what a killed process has left of another comes after them. */
  readonly size: number
}

export interface NumberedLine {
  readonly line: Line
  /** In the file, from 1. */
  readonly number: number
}

/** Every whole line of a recording. Throws where there is none, or it is damaged before its end. */
export function readRecording(file: string): ReadRecording {
  const text = textOf(file)
  const size = text.lastIndexOf('\n') + 1
  const [first = '', ...others] = text.slice(0, size).split('\n').slice(0, -1)
  checkFirst(first, file)
  const lines = others.map((line, at) => ({ line: readLine(line, { file, number: at + 2 }), number: at + 2 }))
  return { lines, size: Buffer.byteLength(text.slice(0, size)) }
}

/** What a recording that is there already holds; null where there is no file yet. */
export function readIfThere(file: string): ReadRecording | null {
  return existsSync(file) ? readRecording(file) : null
}

/** Appends lines, each in one write, so that a killed process leaves whole ones. Makes the file with the first. */
export class RecordingWriter {
  private readonly file: string
  /** Bytes to keep of what is there; null to begin anew. */
  private readonly keep: number | null
  private descriptor: number | undefined

  constructor(file: string, keep: number | null) {
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

/** For nobody else to read, also where the file was there before: it holds what was said. */
function openOwn(file: string, flag: 'a' | 'w'): number {
  const descriptor = openSync(file, flag, 0o600)
  fchmodSync(descriptor, 0o600)
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

/** A file that is something else is neither read nor written over. */
function checkFirst(text: string, file: string): void {
  const first = parsed(text) as { readonly legate?: unknown; readonly version?: unknown } | undefined
  if (first?.legate !== FORMAT) throw new DefinitionError('definition', `${file} is no recording of ours.`)
  if (first.version === VERSION) return
  const message = `${file} was written by another version of legate (${String(first.version)}). Record it again.`
  throw new DefinitionError('definition', message)
}

function readLine(text: string, { file, number }: { readonly file: string; readonly number: number }): Line {
  try {
    const line: unknown = parseOwnJson(text)
    if (typeof line === 'object' && line !== null && ['run', 'at', 'source'].some((key) => key in line)) {
      return line as Line
    }
    throw new Error('it is none of the lines of a recording')
  } catch (error) {
    throw new DefinitionError('definition', `${file}, line ${number}: ${messageOf(error)}. Record it again.`)
  }
}

function parsed(text: string): unknown {
  try {
    return parseOwnJson(text)
  } catch {
    return undefined
  }
}

/** One line of a recording, beside the first, which says what the file is. */
export type Line = RunLine | AnswerLine | CodeLine | SourceLine

/** A run at the root that was recorded. */
export interface RunLine {
  /** Its name in addresses: its agent's, with a number from the second on. */
  readonly run: string
  readonly agent: string
  readonly input: Json
  /** Of its conversation: a recording goes on with it in another process. */
  readonly id: string
}

/** What a model was asked and said. */
export interface AnswerLine extends Ids {
  readonly at: string
  readonly model: string
  readonly request: PackedRequest
  readonly answer: readonly Said[]
  readonly error?: { readonly message: string; readonly retryable: boolean }
  /** Nobody waited for the rest. */
  readonly stopped?: true
}

/** What code was given and gave. */
export interface CodeLine extends Ids {
  readonly at: string
  readonly tool: string
  readonly input: Json
  readonly progress?: readonly { readonly message: string; readonly data: Json }[]
  /** The agents it started, in order. */
  readonly children?: readonly StartedInside[]
  readonly result: CodeResult
  /** Its own node, run and conversation, as its result names them. */
  readonly own?: readonly string[]
}

export interface StartedInside {
  readonly agent: string
  readonly input: Json
  readonly mode: 'called' | 'background'
  readonly wake?: 'auto' | 'passive'
  /** Which of them had ended before: their places in the list. */
  readonly after?: readonly number[]
}

/** The tools of a source that was started. */
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
  /** Ids of ours that are new in this line. */
  readonly ids?: { readonly [token: string]: string }
}

/** A request without what is the same as in the one of an earlier line: so many first messages, and all that is left out. */
export interface PackedRequest {
  readonly after?: string
  readonly keep?: number
  readonly messages: readonly Json[]
  readonly tools?: Json
  readonly settings?: Json
  readonly outputSchema?: Json
}

/**
 * A text is a delta as it came; `[text]` one of a reasoning. `after` says that what follows came when that other line was
 * already there.
 */
export type Said =
  | string
  | readonly [reasoning: string]
  | { readonly after: string }
  | { readonly finish: FinishReason; readonly usage: Json }
  | Exclude<Part, { readonly type: 'text-delta' | 'reasoning-delta' | 'finish' }>

/** The name of an agent at the end of an address: good enough to find a request that is much the same. */
export function lastAgent(at: string): string {
  return /^[^~+.@]*/.exec(at.slice(at.lastIndexOf('/') + 1))?.[0] ?? ''
}

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
