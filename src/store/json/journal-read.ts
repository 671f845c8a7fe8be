import { readSync } from 'node:fs'
import { messageOf, StoreError } from '../../base/error.ts'
import { type JournalEntry, type JournalLine, readLine } from './record.ts'

export const FORMAT = 'legate-json'
/** 2: rows are held against the record as they are read. 1 has the same lines; its record may be of rows in another form. */
export const FORMAT_VERSION = 2

export interface ReadJournal {
  /** The number of the next line. */
  readonly next: number
  /** Bytes of whole lines: a torn end comes after them. */
  readonly size: number
  /** Of these, so many were there when the file was last written anew. */
  readonly base: number
  /** Of the format it was written in. */
  readonly version: number
}

const CHUNK = 1 << 20

/** Hands over every line but the first. Throws where the file is not ours, or damaged before its end. */
export function readJournal(descriptor: number, path: string, take: (entry: JournalEntry) => void): ReadJournal {
  let next = 0
  let size = 0
  let base = 0
  let version = FORMAT_VERSION
  for (const { text, end } of untornLines(descriptor)) {
    const line = end.isWhole ? read(text) : undefined
    if (next === 0) version = versionIn(line, path)
    if (line === undefined || line.number !== next) throw damaged(path, next)
    if (next++ > 0) takeLine(line, take, path)
    size = end.offset
    if ('rest' in line.entry) base = size
  }
  if (next === 0) throw foreign(path)
  return { next, size, base, version }
}

/**
 * A killed process leaves the beginning of a line: nobody was told that it is stored. What has a line end was written whole,
 * and so was a line in the place of whose end something else stands: if it cannot be read, it was changed.
 */
function* untornLines(descriptor: number): Generator<TextLine> {
  for (const line of linesIn(descriptor)) {
    if (line.end.isWhole || read(line.text.slice(0, -1)) !== undefined) yield line
  }
}

function read(text: string): JournalLine | undefined {
  try {
    return readLine(text)
  } catch {
    return undefined
  }
}

function takeLine({ entry, number }: JournalLine, take: (entry: JournalEntry) => void, path: string): void {
  try {
    take(entry)
  } catch (error) {
    throw damaged(path, number, error)
  }
}

interface TextLine {
  readonly text: string
  /** Where it ends in the file, and whether it has its line end. */
  readonly end: { readonly offset: number; readonly isWhole: boolean }
}

function* linesIn(descriptor: number): Generator<TextLine> {
  const chunk = Buffer.allocUnsafe(CHUNK)
  let parts: Buffer[] = []
  let offset = 0
  for (;;) {
    const count = readSync(descriptor, chunk, 0, CHUNK, offset)
    if (count === 0) break
    let start = 0
    for (let at = chunk.indexOf(10); at !== -1 && at < count; at = chunk.indexOf(10, start)) {
      parts.push(Buffer.from(chunk.subarray(start, at)))
      yield { text: Buffer.concat(parts).toString('utf8'), end: { offset: offset + at + 1, isWhole: true } }
      parts = []
      start = at + 1
    }
    parts.push(Buffer.from(chunk.subarray(start, count)))
    offset += count
  }
  const rest = Buffer.concat(parts)
  if (rest.length > 0) yield { text: rest.toString('utf8'), end: { offset, isWhole: false } }
}

function versionIn(line: JournalLine | undefined, path: string): number {
  if (line === undefined || !('store' in line.entry) || line.entry.store !== FORMAT) throw foreign(path)
  const { version } = line.entry
  if (version <= FORMAT_VERSION) return version
  const message = `The journal ${path} has version ${version}, and this program knows ${FORMAT_VERSION}. Update this program, or export the trees there and import them here.`
  throw new StoreError('store_newer_schema', message, { details: { path, version } })
}

function foreign(path: string): StoreError {
  const message = `The file ${path} is no journal of a JSON store; it was left as it is. Name another folder for the store.`
  return new StoreError('store_foreign_file', message, { details: { path } })
}

function damaged(path: string, line: number, cause?: unknown): StoreError {
  const why = cause === undefined ? '' : ` (${messageOf(cause)})`
  const message = `The journal ${path} is damaged at line ${line + 1}${why}: it is not what was written, and no torn end. Restore it from a backup; to lose what that line and those after it hold, delete them.`
  return new StoreError('store', message, { details: { path, line: line + 1 }, cause })
}
