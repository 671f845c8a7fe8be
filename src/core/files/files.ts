// The files of a runtime as one agent uses them: `Files` in a tool's context, bound to the agent's layers. `FileDomain`
// makes them, file tools and user code call them, and a backend (memory or disk) keeps the bytes.
//
// Stays true:
// - Every operation reads the path, asks `FileAccess`, checks its arguments and only then looks at the backend, in this
//   order. A denial therefore tells nothing about which files exist.
// - Paths are logical (`/workspace/x`). No message shows where an area really lies.
// - Writes and edits of one path run one after another; each happens whole or not at all.
// - An owner with files of its own reaches no others: `FileDomain.of` chooses them, and nothing after it.

import { InputError } from '../base/error.ts'
import { type OptionRules, oneOf } from '../base/options.ts'
import { hasOwnFolder, isOwnersFolder, OWNERS, type Owners, ownerFolder } from '../base/owner-folder.ts'
import { checkGrant, type Grant, type Layer, useLayer } from '../grant/grant.ts'
import { plainName } from '../grant/guarded.ts'
import type { Request } from '../grant/request.ts'
import { FileAccess, type FilePolicy, POLICY } from './access.ts'
import type { FileBackend, FileInfo, Range } from './backend.ts'
import type { Edit } from './edit.ts'
import { type FileOperation, fileNotFound, IS_DIRECTORY, invalidArgument, OPERATIONS } from './failure.ts'
import { below, isName, type LogicalPath, readFilePath } from './path.ts'
import { undecidedFiles } from './undecided-files.ts'

/** The files of a runtime for one agent: the agent's layers decide every operation. */
export interface Files {
  /** The entries of one directory that the agent may list, sorted by path. */
  list(directory: string): Promise<Listing>
  /** Asks for `file.list`, like a listing that shows the file. */
  stat(path: string): Promise<FileInfo>
  /** Reads a part of a file, or a whole file of up to 16 MB. */
  readBytes(path: string, range?: Partial<Range>): Promise<Uint8Array>
  /** Reads a whole text, or `count` lines after the first `from`, without their last line end. */
  readText(path: string, lines?: { readonly from?: number; readonly count?: number }): Promise<string>
  /** Finds the matches of a regular expression (flag `g`); with `overlap`, matches may share that many characters. */
  match(path: string, pattern: RegExp, options?: { readonly overlap?: number }): Promise<string[]>
  /** Writes whole or not at all. Creates missing directories. */
  write(path: string, data: string | Uint8Array, options?: { readonly overwrite?: boolean }): Promise<FileChange>
  /** Applies all edits or none. Asks for `file.read` and `file.write`. */
  edit(path: string, edits: readonly Edit[]): Promise<FileChange>
  delete(path: string): Promise<void>
  /**
   * Runs `work` with the real path of a directory, for programs of this machine. Asks for `file.list`; the actions of a
   * program there are not decided here.
   */
  inDirectory<T>(directory: string, work: (real: string) => Promise<T>): Promise<T>
  /**
   * True when rules keep a skill or another definition from the agent, by its path on this machine. Files outside of
   * the areas are never kept, and a grant without rules for files keeps none.
   */
  isKept(place: string): boolean
  /** Directories below which the agent may list or read. */
  allowedDirectories(): string[]
  /** Describes what the agent may do where, one line for each place that rules name, and each rule that denies or asks. */
  describe(): string
}

/** True for a file of this machine that rules keep from the caller. */
export type Keeper = (place: string) => boolean

export interface Listing {
  readonly entries: readonly FileInfo[]
  /** True when there are more than 10,000 entries. */
  readonly isCut: boolean
}

export interface FileChange {
  readonly path: string
  readonly size: number
}

export interface FileParts {
  readonly backend: FileBackend
  readonly policy: FilePolicy
  readonly inTurn: InTurn
}

const MOST_LISTED = 10_000
const MOST_READ = 16_000_000

/**
 * Checks in this order: is it a path, may the agent, are the arguments right, does it exist. So a denial reveals
 * nothing about files.
 */
class BoundFiles implements Files {
  private readonly parts: FileParts
  private readonly layers: readonly Layer[]
  private readonly access: FileAccess

  constructor(parts: FileParts, layers: readonly Layer[], isApproved: (request: Request) => boolean) {
    this.parts = parts
    this.layers = layers
    const { backend, policy } = parts
    this.access = new FileAccess({ areas: backend.areas, policy, layers, isApproved })
  }

  async list(directory: string): Promise<Listing> {
    const path = readFilePath(directory, 'directory')
    if (path.text === '/') return { entries: this.areas(), isCut: false }
    const verdict = this.access.check('list', path)
    let kept = 0
    const keep = (name: string) => {
      if (kept > MOST_LISTED || !isName(name) || !this.access.isShown(below(path, name), verdict)) return false
      kept++
      return kept <= MOST_LISTED
    }
    const entries = await this.parts.backend.list(path, keep)
    return { entries: entries.sort((a, b) => (a.path < b.path ? -1 : 1)), isCut: kept > MOST_LISTED }
  }

  async stat(given: string): Promise<FileInfo> {
    const path = readFilePath(given, 'directory')
    this.access.check('list', path)
    return this.parts.backend.stat(path)
  }

  async readBytes(given: string, { offset = 0, length }: Partial<Range> = {}): Promise<Uint8Array> {
    const path = this.fileAt(given, 'read')
    if (!Number.isInteger(offset) || offset < 0) throw invalidArgument('offset', offset, 'give 0 or more.')
    if (length !== undefined && !(Number.isInteger(length) && length > 0))
      throw invalidArgument('length', length, 'give a number above 0.')
    const most = Math.min(length ?? MOST_READ, MOST_READ)
    const { bytes, size } = await this.parts.backend.read(path, { offset, length: most })
    if (length === undefined && size - offset > MOST_READ) throw tooLarge(path, size)
    return bytes
  }

  async readText(given: string, lines: { readonly from?: number; readonly count?: number } = {}): Promise<string> {
    const path = this.fileAt(given, 'read')
    const { from = 0, count } = lines
    if (!(from >= 0)) throw invalidArgument('from', from, 'give 0 or more.')
    if (count !== undefined && !(count > 0)) throw invalidArgument('count', count, 'give a number above 0.')
    const text = await this.textAt(path)
    if (from === 0 && count === undefined) return text
    const { textLines } = await texts()
    return textLines(text)
      .slice(from, count === undefined ? undefined : from + count)
      .join('\n')
  }

  async match(given: string, pattern: RegExp, { overlap = 0 }: { readonly overlap?: number } = {}): Promise<string[]> {
    const path = this.fileAt(given, 'read')
    const { checkPattern, matchesIn } = await texts()
    checkPattern(pattern, overlap)
    return matchesIn(await this.textAt(path), pattern, overlap)
  }

  async write(
    given: string,
    data: string | Uint8Array,
    { overwrite = true }: { readonly overwrite?: boolean } = {},
  ): Promise<FileChange> {
    const path = this.fileAt(given, 'write')
    const bytes = typeof data === 'string' ? Buffer.from(data) : data
    if (!(bytes instanceof Uint8Array)) throw invalidArgument('data', data, 'give a text or bytes.')
    await this.parts.inTurn(path.text, () => this.put(path, bytes, overwrite))
    return { path: path.text, size: bytes.length }
  }

  async edit(given: string, edits: readonly Edit[]): Promise<FileChange> {
    const path = this.fileAt(given, 'write')
    this.access.check('read', path)
    return this.parts.inTurn(path.text, async () => {
      const { applyEdits } = await texts()
      const bytes = Buffer.from(applyEdits(await this.textAt(path), edits, path.text))
      await this.put(path, bytes, true)
      return { path: path.text, size: bytes.length }
    })
  }

  async delete(given: string): Promise<void> {
    const path = this.fileAt(given, 'delete')
    const guard = (names: readonly string[]) => this.access.checkNamed(path, names, 'delete')
    await this.parts.inTurn(path.text, () => this.parts.backend.delete(path, guard))
  }

  private put(path: LogicalPath, bytes: Uint8Array, overwrite: boolean): Promise<void> {
    const guard = (names: readonly string[]) => this.access.checkNamed(path, names, 'write')
    if (namesDriver(path, bytes)) guard([ATTRIBUTES])
    return this.parts.backend.write(path, bytes, { overwrite, guard })
  }

  async inDirectory<T>(directory: string, work: (real: string) => Promise<T>): Promise<T> {
    const path = readFilePath(directory, 'directory')
    this.access.check('list', path)
    return this.parts.backend.inDirectory(path, work)
  }

  isKept(place: string): boolean {
    const path = this.parts.backend.nameOf(place)
    if (path === undefined) return false
    return path.segments.some(isOwnersFolder) || this.access.isKept(path)
  }

  allowedDirectories(): string[] {
    const may = (operations: readonly FileOperation[]) => operations.includes('list') || operations.includes('read')
    const found = this.reach().filter(({ place, operations }) => place.endsWith('/') && may(operations))
    return found.map(({ place }) => place)
  }

  describe(): string {
    const reach = this.reach()
    return [describeReach(reach), ...(reach.length === 0 ? [] : limitsIn(this.layers))].join('\n')
  }

  /** Counts operations that need a person's consent as allowed. */
  private reach(): Reach[] {
    return reachOf(this.layers, (operation, text) =>
      this.access.may(operation, { text, segments: text.slice(1).split('/') }),
    )
  }

  private areas(): FileInfo[] {
    const paths = this.parts.backend.areas.map((area) => ({ text: `/${area}`, segments: [area] }))
    const shown = paths.filter((path) => this.access.isShown(path, 'allow'))
    if (shown.length === 0) this.access.check('list', { text: '/', segments: [] })
    return shown.map(({ text }) => ({ path: text, type: 'directory', size: 0, modifiedAt: 0 }))
  }

  /** Reads the path of a file and checks that the agent may run this operation on it. */
  private fileAt(given: string, operation: FileOperation): LogicalPath {
    const path = readFilePath(given)
    this.access.check(operation, path)
    if (path.segments.length < 2) throw fileNotFound(path.text, IS_DIRECTORY)
    return path
  }

  private async textAt(path: LogicalPath): Promise<string> {
    const { bytes, size } = await this.parts.backend.read(path, { offset: 0, length: MOST_READ })
    if (size > MOST_READ) throw tooLarge(path, size)
    const { decodeText } = await texts()
    return decodeText(bytes, path.text)
  }
}

/** Loaded with the first file that is read as text. */
const texts = () => import('./edit.ts')

const ATTRIBUTES = '.gitattributes'

/** True for attributes that send files through a program of the configuration: `*.psd filter=lfs`. */
function namesDriver({ segments }: LogicalPath, bytes: Uint8Array): boolean {
  if (plainName(segments.at(-1) ?? '') !== ATTRIBUTES) return false
  return /\s(?:filter|diff|merge)=/.test(Buffer.from(bytes).toString('latin1'))
}

function tooLarge({ text: path }: LogicalPath, size: number): InputError {
  const message = `Too large to read at once: ${path} (size=${size}). Read parts of it with an offset and a length.`
  return new InputError('invalid_input', message, { details: { path, size } })
}

/** A place that rules name, and the operations allowed there. */
export interface Reach {
  /** `/workspace/docs/` for everything below it, else the path as the rule spells it. */
  readonly place: string
  readonly operations: readonly FileOperation[]
}

/**
 * Finds the places, among those that some layer names, where an agent can do something. Leaves out a place inside
 * another one with the same operations.
 */
export function reachOf(layers: readonly Layer[], may: (operation: FileOperation, path: string) => boolean): Reach[] {
  const found = placesIn(layers).flatMap((place) => {
    const operations = OPERATIONS.filter((operation) => may(operation, exampleOf(place)))
    return operations.length === 0 ? [] : [{ place, operations }]
  })
  return found.filter((reach) => !found.some((other) => covers(other, reach)))
}

/** Writes one line for each place: `/p/: ls, stat, read, write, delete`. */
export function describeReach(reach: readonly Reach[]): string {
  const lines = reach.map(({ place, operations }) => `${place}: ${operations.map((name) => WORDS[name]).join(', ')}`)
  return lines.join('\n')
}

const LIMITS = { deny: 'Denied', ask: 'A person is asked first', free: 'Nobody is asked' } as const

/** Writes one line for each rule about files that denies or asks: it may concern a part of a place only. */
function limitsIn(layers: readonly Layer[]): string[] {
  const lines = (['deny', 'ask', 'free'] as const).flatMap((kind) =>
    layers.flatMap((layer) => (layer[kind] ?? []).filter(isFileRule).map((rule) => `${LIMITS[kind]}: ${rule}`)),
  )
  return [...new Set(lines)]
}

const isFileRule = (rule: string) => rule.startsWith('file.')

const WORDS = { list: 'ls, stat', read: 'read', write: 'write', delete: 'delete' } as const

/** Includes `/internal/` only where a rule names it. */
function placesIn(layers: readonly Layer[]): string[] {
  const rules = layers.flatMap(({ allow, ask, deny }) => [...allow, ...ask, ...deny])
  const patterns = rules.filter(isFileRule).map((rule) => rule.slice(rule.indexOf(':') + 1))
  const places = patterns.map((pattern) => pattern.replace(/\/\*\*$/, '/'))
  return [...new Set(['/userinput/', '/workspace/', ...places])].sort()
}

/** A path at that place which no rule names. */
function exampleOf(place: string): string {
  return place.replaceAll('*', 'any').replace(/\/$/, '/any')
}

function covers(outer: Reach, inner: Reach): boolean {
  if (outer === inner || !outer.place.endsWith('/') || !inner.place.startsWith(outer.place)) return false
  return inner.operations.join() === outer.operations.join()
}

/** Runs work on one path after another; other paths are not waited for. */
export type InTurn = <T>(path: string, work: () => Promise<T>) => Promise<T>

/** An edit reads and then writes: two at a time would lose one. */
export function makeInTurn(): InTurn {
  const last = new Map<string, Promise<unknown>>()
  return (path, work) => {
    const done = (last.get(path) ?? Promise.resolve()).then(work, work)
    last.set(path, done)
    const forget = () => {
      if (last.get(path) === done) last.delete(path)
    }
    done.then(forget, forget)
    return done
  }
}

/** A file of the runtime itself in an area of its agents. */
export interface RuntimeFile {
  /** Where an agent would look for it. */
  readonly path: string
  /** Where it is on this machine. */
  readonly place: string
  /** Its name for people: `the store`. */
  readonly what: string
}

/** Rules for all files of a runtime. */
export interface FileSettings extends FilePolicy {
  /**
   * Whose the files are: `own` gives each owner of runs areas of its own, `shared` gives all of them the same ones. Runs without an
   * owner, and those of the person at this machine, use the areas themselves. Left out: nobody else may start an agent that works
   * with files.
   */
  readonly owners?: Owners
}

export const SETTINGS: OptionRules<FileSettings> = { ...POLICY, owners: oneOf(...OWNERS) }

/** A folder in which programs of one owner run. */
export interface OwnerFolder {
  /** Unlike that of every other folder. For this process: it is shown to nobody. */
  readonly key: string
  /** Runs `work` with the real path of the folder, which is made when it is missing. */
  use<T>(work: (real: string) => Promise<T>): Promise<T>
}

/** The files of a runtime: `createRuntime({ files })`. The same for every agent in it; grants say who may do what. */
export class FileDomain {
  /** Whose the files are; null where nobody has said it. */
  readonly owners: Owners | null
  private readonly parts: FileParts
  /** The files of owners who have their own, or of whom nobody has said which they have. */
  private readonly others: Map<string, FileDomain> = new Map()

  constructor(backend: FileBackend, settings: FileSettings, inTurn: InTurn = makeInTurn()) {
    this.owners = settings.owners ?? null
    this.parts = { backend, policy: settings, inTurn }
  }

  /**
   * The files as runs of this owner have them; null for runs without one. Where nobody has said whose the files are, every
   * operation of another owner fails and names the two choices.
   */
  of(owner: string | null): FileDomain {
    if (this.owners === 'shared' || !hasOwnFolder(owner)) return this
    const known = this.others.get(owner)
    if (known !== undefined) return known
    const { backend, policy, inTurn } = this.parts
    const own = this.owners === 'own' ? backend.within(ownerFolder(owner)) : undecidedFiles(backend)
    const ownTurn: InTurn = (path, work) => inTurn(`${path}\n${owner}`, work)
    const made = new FileDomain(own, { ...policy, owners: 'shared' }, ownTurn)
    if (this.others.size >= MOST_KEPT) this.others.clear()
    this.others.set(owner, made)
    return made
  }

  /** Where programs of this owner run that nobody gave a folder; null where that is the folder of this process. */
  folderOf(owner: string | null): OwnerFolder | null {
    if (this.owners !== 'own' || !hasOwnFolder(owner)) return null
    const { backend } = this.of(owner).parts
    if (!backend.isOnDisk || !backend.areas.includes('workspace')) return null
    const { text, segments } = WORKSPACE
    return { key: ownerFolder(owner).join('/'), use: (work) => backend.inDirectory({ text, segments }, work) }
  }

  /** Deletes the files that an owner has alone. Gives how many there were. */
  async forgetOwner(owner: string): Promise<number> {
    if (!hasOwnFolder(owner)) return 0
    this.others.delete(owner)
    return this.parts.backend.erase(ownerFolder(owner))
  }

  /** For your own code, with a grant of its own: `files.open({ use: ['file.*:/workspace/**'] })`. */
  open(grant: Grant): Files {
    checkGrant(grant, 'files.open(grant)')
    return this.bind([useLayer('the app', grant)], () => false)
  }

  /**
   * The runtime's own files that lie in an area: its store, tokens, recordings, settings. No agent finds them there, but a
   * program that it starts can.
   */
  async runtimeFiles(): Promise<readonly RuntimeFile[]> {
    const { ownPlaces } = await import('../base/system/own-files.ts')
    return ownPlaces().flatMap(({ path: place, what }) => {
      const path = this.parts.backend.nameOf(place)
      return path === undefined ? [] : [{ path: path.text, place, what }]
    })
  }

  /** For an agent: all layers that decide for it, and whether a person allowed what they ask for. */
  bind(layers: readonly Layer[], isApproved: (request: Request) => boolean): Files {
    return new BoundFiles(this.parts, layers, isApproved)
  }

  /**
   * The path of a file of this machine that an agent may write without being asked; null where it may not, or where the file is
   * elsewhere.
   */
  writablePath(place: string, layers: readonly Layer[]): string | null {
    const { backend, policy } = this.parts
    const path = backend.nameOf(place)
    const access = new FileAccess({ areas: backend.areas, policy, layers, isApproved: () => false })
    return path !== undefined && access.isFree('write', path) ? path.text : null
  }
}

/** So many owners are kept at hand. */
const MOST_KEPT = 1_000
const WORKSPACE = { text: '/workspace', segments: ['workspace'] } as const
