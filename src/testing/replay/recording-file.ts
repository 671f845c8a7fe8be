import { closeSync, existsSync, fchmodSync, mkdirSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'
import path from 'node:path'
import { DefinitionError, messageOf, NotFoundError } from '../../base/error.ts'
import { parseOwnJson } from '../../base/json.ts'
import type { Line } from './lines.ts'

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
