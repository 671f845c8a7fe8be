import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { messageOf, StoreError } from '../../core/base/error.ts'
import { ownFile } from '../../core/base/system/own-files.ts'
import { FilePresence, storeFileError, systemErrorCode } from '../../core/store/file-presence.ts'
import { type JournalEntry, type JournalLine, readLine, toLine } from './record.ts'

export interface JournalOptions {
  readonly path: string
  /** True: each line is on the disk, not only with the system, when `append` returns. */
  readonly flush: boolean
}

/**
 * A file that grows line by line until it is rewritten. A crash can tear only the last line: that one was never acknowledged
 * and is cut off. Damage anywhere else is reported, not repaired.
 */
export class Journal {
  readonly presence: FilePresence = new FilePresence()
  /** True for a journal of an older format. */
  readonly isOld: boolean
  private readonly options: JournalOptions
  private descriptor: number
  private next: number
  /** Bytes of whole lines. Bytes beyond are left of a failed write. */
  private size: number
  private base: number
  private isTorn = false

  private constructor(options: JournalOptions, file: OpenFile) {
    this.options = options
    this.descriptor = file.descriptor
    this.next = file.next
    this.size = file.size
    this.base = file.base
    this.isOld = file.version < FORMAT_VERSION
    this.hold()
  }

  /** Opens the journal, or creates one, and hands its entries to `take`. */
  static open(options: JournalOptions, take: (entry: JournalEntry) => void): Journal {
    const { path } = options
    try {
      rmSync(newPath(path), { force: true })
      const descriptor = openSync(path, 'r+', 0o600)
      return orClosed(descriptor, () => new Journal(options, readAll(descriptor, path, take)))
    } catch (error) {
      if (systemErrorCode(error) !== 'ENOENT') throw storeFileError(error, path)
      if (isLink(path)) throw lostTarget(path, error)
      return new Journal(options, create(path, []))
    }
  }

  get bytes(): number {
    return this.size
  }

  /** The size after the last rewrite. */
  get baseBytes(): number {
    return this.base
  }

  /** Returns when the line would survive what `flush` promises; else throws, and the journal is as before. */
  append(entry: JournalEntry): void {
    this.presence.requireUnseen()
    // Writing to the end of a file that was emptied would hide that it was.
    if (fstatSync(this.descriptor).size < this.size) this.presence.requireNow()
    const line = Buffer.from(toLine(entry, this.next))
    try {
      this.cut()
      this.isTorn = true
      writeAll(this.descriptor, line, this.size)
      if (this.options.flush) fdatasyncSync(this.descriptor)
      if (this.options.flush) this.presence.requireNow()
      else this.presence.require()
      this.isTorn = false
    } catch (error) {
      this.tryCut()
      throw storeFileError(error, this.options.path)
    }
    this.size += line.length
    this.next++
  }

  /** Replaces all entries: a crash leaves the old file or the new one. */
  replace(entries: Iterable<JournalEntry>): void {
    this.presence.requireNow()
    const file = create(this.options.path, entries)
    this.hold()
    closeSync(this.descriptor)
    this.descriptor = file.descriptor
    this.next = file.next
    this.size = file.size
    this.base = file.base
    this.isTorn = false
  }

  /** Whatever happens to its folder, it stays the runtime's own file. */
  private hold(): void {
    const { path } = this.options
    ownFile(path, 'the store')
    this.presence.hold(path, () => this.size)
  }

  /** Reads the journal again from the beginning. */
  reread(take: (entry: JournalEntry) => void): void {
    readAll(this.descriptor, this.options.path, take)
  }

  /** The damage of the file as it is now; null for none. */
  damage(): string | null {
    try {
      const { size } = readJournal(this.descriptor, this.options.path, () => undefined)
      const lost = this.size - size
      return lost > 0 ? `The last line of the journal ${this.options.path} is not what was written.` : null
    } catch (error) {
      return messageOf(error)
    }
  }

  close(): void {
    closeSync(this.descriptor)
  }

  private cut(): void {
    if (this.isTorn) ftruncateSync(this.descriptor, this.size)
    this.isTorn = false
  }

  private tryCut(): void {
    try {
      this.cut()
    } catch {
      // The rest is cut before the next line is written, or when the file is opened again.
    }
  }
}

interface OpenFile extends JournalState {
  readonly descriptor: number
}

/** Reads all entries, and cuts a torn end off. */
function readAll(descriptor: number, path: string, take: (entry: JournalEntry) => void): OpenFile {
  const read = readJournal(descriptor, path, take)
  if (fstatSync(descriptor).size > read.size) ftruncateSync(descriptor, read.size)
  return { descriptor, ...read }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
}

/** The target of the link may come back: an empty journal in its place would hide it. */
function lostTarget(path: string, cause: unknown): StoreError {
  const message = `The journal ${path} is a link to a file that is not there. Bring that file back, or remove the link to begin with an empty store.`
  return new StoreError('store', message, { details: { path }, cause })
}

function newPath(path: string): string {
  return `${path}.new`
}

/** Closes the descriptor when `use` fails. */
function orClosed<T>(descriptor: number, use: () => T): T {
  try {
    return use()
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
}

function create(path: string, entries: Iterable<JournalEntry>): OpenFile {
  const descriptor = openSync(newPath(path), 'w+', 0o600)
  return orClosed(descriptor, () => {
    let next = 0
    let size = 0
    let text = toLine({ store: FORMAT, version: FORMAT_VERSION }, next++)
    const write = () => {
      const bytes = Buffer.from(text)
      writeAll(descriptor, bytes, size)
      size += bytes.length
      text = ''
    }
    for (const entry of entries) {
      text += toLine(entry, next++)
      if (text.length > MANY) write()
    }
    write()
    fsyncSync(descriptor)
    renameSync(newPath(path), path)
    flushFolder(dirname(path))
    return { descriptor, next, size, base: size, version: FORMAT_VERSION }
  })
}

/** A rename is on the disk when its folder is. Some systems cannot open a folder; there nothing can be done. */
function flushFolder(folder: string): void {
  try {
    const descriptor = openSync(folder, 'r')
    try {
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
  } catch {
    // Such a system cannot flush folders.
  }
}

function writeAll(descriptor: number, bytes: Buffer, position: number): void {
  let written = 0
  while (written < bytes.length) {
    written += writeSync(descriptor, bytes, written, bytes.length - written, position + written)
  }
}

/** How many characters to write at once. */
const MANY = 1_000_000

const FORMAT = 'legate-json'
/**
 * 2: rows are compared with the record when they are read. Version 1 has equal lines; its record may cover rows of another
 * form.
 */
const FORMAT_VERSION = 2

export interface JournalState {
  /** The number of the next line. */
  readonly next: number
  /** Bytes of whole lines: a torn end comes after them. */
  readonly size: number
  /** The size after the last rewrite. */
  readonly base: number
  /** The version of its format. */
  readonly version: number
}

const CHUNK = 1 << 20

/** Hands over every line but the first. Throws where the file is not ours, or damaged before its end. */
export function readJournal(descriptor: number, path: string, take: (entry: JournalEntry) => void): JournalState {
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
 * Yields whole lines. A killed process may leave the beginning of a line, which was never acknowledged. A line with its line
 * end was written whole, and so was a line that has another character in its place: if it cannot be read, somebody changed it.
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
