import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { StoreError } from '../../core/base/error.ts'
import { anything, code, type OptionRules, oneOf, positive, readOptions } from '../../core/base/options.ts'
import { ownFolder } from '../../core/base/system/own-files.ts'
import type { Commit } from '../../core/graph/commit.ts'
import type { Id } from '../../core/graph/rows.ts'
import { finding, type Removal, type Tombstone, type VerifyReport, type WholeTree } from '../../core/store/archive.ts'
import { requireFolder, storeFileError, watchFile } from '../../core/store/file-presence.ts'
import { bury, memoryArchive, putTree, removeTombstone, tombstoneIn } from '../../core/store/memory/archive.ts'
import { forgetOwnerRows, readChanges, readSpent } from '../../core/store/memory/beside.ts'
import { applyCommit, checkCommit } from '../../core/store/memory/commit.ts'
import { putBeside } from '../../core/store/memory/feed.ts'
import { memoryRegistry, type RegistryLog } from '../../core/store/memory/registry.ts'
import { dropRegistered, putRegistered } from '../../core/store/memory/registry-table.ts'
import { memoryReader } from '../../core/store/memory/scan.ts'
import { piecesOf, putPiece } from '../../core/store/memory/snapshot.ts'
import { emptyTables, forgetTree, type StoredTree, type Tables } from '../../core/store/memory/tables.ts'
import { liftedBy, readTombstone, tampered, wentOn } from '../../core/store/not-found.ts'
import { hasNoProcess } from '../../core/store/process-proof.ts'
import type { LocalStore } from '../../core/store/store.ts'
import { Documents } from './documents.ts'
import { Journal } from './journal.ts'
import { lockFolder } from './lock.ts'
import { extend, type JournalEntry, newRows, nextLink } from './record.ts'

export { type JsonSession, jsonSession } from './session.ts'

export interface JsonStoreOptions {
  /** The folder of the store. It is made if it is not there, in a folder that is there already. */
  readonly folder: string
  /** The failure that acknowledged commits survive: `process` = kill -9 (the default), `power` = also a power cut. */
  readonly durability?: 'process' | 'power'
  /** How many trees without an open turn are kept, with their documents. Default: all. */
  readonly keep?: number
  /**
   * The journal is rewritten when it reaches this size, and later when it reaches four times its size after the last rewrite.
   * Default 8 MB.
   */
  readonly compactBytes?: number
  /** Called when a document could not be written; nothing else fails with it. Default: a warning of the process. */
  readonly report?: (error: Error) => void
}

const OPTIONS: OptionRules<JsonStoreOptions> = {
  folder: anything,
  durability: oneOf('process', 'power'),
  keep: anything,
  compactBytes: positive,
  report: code,
}

/**
 * Keeps rows in memory and in a journal of this folder, for one process at a time; beside it one readable document per
 * conversation. Opens the folder at once; throws StoreError when that is not possible.
 */
export function jsonStore(folderOrOptions: string | JsonStoreOptions): LocalStore {
  const given = typeof folderOrOptions === 'string' ? { folder: folderOrOptions } : folderOrOptions
  const options = readOptions<JsonStoreOptions>('jsonStore()', given ?? {}, OPTIONS)
  const folder = resolve(folderOf(options))
  checkKeep(options)
  let current: JsonRows | undefined = openRows({ ...options, folder })
  const rows = (): JsonRows => {
    if (current !== undefined) return current.present()
    const message = `The JSON store in ${folder} was closed. Open a new one.`
    throw new StoreError('store_closed', message, { details: { path: folder } })
  }
  const open = {
    get tables() {
      return rows().tables
    },
  }
  // Only one process has the folder, so the only news is that the journal is gone.
  const watchers = watchFile(() => rows().lookForJournal())
  return {
    name: 'json',
    address: folder,
    shared: false,
    commit: (commit) => rows().commit(commit),
    ...memoryReader(open),
    tampered: () => [...rows().tampered.values()],
    archive: {
      ...memoryArchive(open),
      verify: (rootId) => rows().verify(rootId),
      restore: (whole, instead) => rows().restore(whole, instead),
      bury: (stone) => rows().keep(stone),
      remove: (rootId, removal) => rows().remove(rootId, removal),
      forgetOwner: (owner, keptDay) => rows().forgetOwner(owner, keptDay),
      compact: () => rows().compact(),
    },
    changes: (after, limit) => readChanges(rows().tables.feed, after, limit),
    usage: (query) => readSpent(rows().tables, query),
    registry: memoryRegistry(() => rows().tables.registry, {
      put: (row) => rows().registryLog.put(row),
      drop: (kind, id) => rows().registryLog.drop(kind, id),
    }),
    watch: (changed) => {
      rows()
      return watchers.add(changed)
    },
    reopen: () => rows().reload(),
    close: async () => {
      watchers.end()
      const open = current
      current = undefined
      open?.close()
    },
  }
}

const JOURNAL = 'store.journal'
const GROWTH = 4

function folderOf({ folder }: JsonStoreOptions): string {
  if (typeof folder === 'string' && folder !== '') return folder
  throw new StoreError('store', 'A JSON store needs the path of a folder: jsonStore("sessions").')
}

/** Deleted trees do not come back, so a wrong number must not delete all. */
function checkKeep({ keep = Number.POSITIVE_INFINITY }: JsonStoreOptions): void {
  if (keep === Number.POSITIVE_INFINITY || (Number.isInteger(keep) && keep >= 0)) return
  throw new StoreError('store', 'jsonStore({ keep }) is a whole number, 0 or more; left out, all trees are kept.')
}

function openRows(options: JsonStoreOptions): JsonRows {
  const { folder } = options
  try {
    if (statSync(folder, { throwIfNoEntry: false }) === undefined) makeFolder(resolve(folder))
    ownFolder(folder, 'the store')
    const release = lockFolder(folder)
    try {
      return new JsonRows(options, release)
    } catch (error) {
      release()
      throw error
    }
  } catch (error) {
    throw storeFileError(error, folder)
  }
}

function makeFolder(folder: string): void {
  requireFolder(folder)
  mkdirSync(folder, { mode: 0o700 })
}

/** The tables, and the journal that restores them. */
class JsonRows {
  tables: Tables = emptyTables()
  /** By tree: the errors of trees that were changed from outside. */
  readonly tampered = new Map<Id, StoreError>()
  /** Writes changes of the registry to the journal, like commits. */
  readonly registryLog: RegistryLog = {
    put: (row) => this.append({ registered: row }),
    drop: (kind, id) => this.append({ dropped: { kind, id } }),
  }
  private readonly options: JsonStoreOptions
  private readonly release: () => void
  private readonly journal: Journal
  private readonly documents: Documents
  /** After a rewrite failed for want of space, the size at which to try again. */
  private nextTryBytes = 0

  constructor(options: JsonStoreOptions, release: () => void) {
    const { folder, durability = 'process', report = warn } = options
    this.options = options
    this.release = release
    this.documents = new Documents({ folder, report, reader: memoryReader(this) })
    this.journal = Journal.open({ path: join(folder, JOURNAL), flush: durability === 'power' }, (entry) =>
      this.take(entry),
    )
    this.distrust()
    if (this.journal.isOld) this.migrate()
    removeLeftovers(folder)
    this.trim(Date.now())
    this.documents.removeDeleted(this.tables.tombstones)
    this.documents.repair(this.tables.conversations.values().map(({ id }) => id))
  }

  /** Rewrites the journal of an older store, if its rows agree with their record. If none do, they have another form. */
  private migrate(): void {
    const archive = memoryArchive(this)
    const trees = [...this.tables.trees.values()].map(({ id }) => id)
    if (trees.length > 0 && trees.every((id) => archive.verify(id).findings.length > 0)) {
      this.journal.close()
      throw olderForm(this.options.folder)
    }
    this.compact()
  }

  /** Gives itself; throws when its journal is gone. */
  present(): this {
    this.journal.presence.requireUnseen()
    return this
  }

  /** Throws when its journal is gone; else there is no news. */
  lookForJournal(): number {
    this.journal.presence.require()
    return 0
  }

  /** Writes the journal first: everything in the tables can be read back. */
  commit(commit: Commit): void {
    this.requireAsWritten(commit.rootId)
    checkCommit(this.tables, commit)
    const link = nextLink(this.tables, commit)
    this.journal.append(link === undefined ? { commit } : { commit, link })
    const tree = applyCommit(this.tables, commit)
    if (tree !== undefined && link !== undefined) extend(tree, link)
    if (tree !== undefined) putBeside(this.tables, tree, commit)
    for (const id of shownIn(commit)) this.documents.changed(id)
    if (tree !== undefined) {
      updateEnded(this.tables, tree)
      this.trim(commit.at)
    }
    if (this.isGrown()) this.compact()
  }

  /** Compares rows from the file with their record before the first commit to their tree. */
  private requireAsWritten(rootId: Id | null): void {
    const tree = rootId === null ? undefined : this.tables.trees.get(rootId)
    if (tree?.isUnchecked !== true) return
    const known = this.tampered.get(tree.id)
    if (known !== undefined) throw known
    const [wrong] = memoryArchive(this).verify(tree.id).findings
    if (wrong !== undefined) {
      const error = tampered(wrong.message.replace(/\.$/, ''), { rootId, path: this.options.folder })
      this.tampered.set(tree.id, error)
      throw error
    }
    tree.isUnchecked = false
  }

  restore(whole: WholeTree, instead?: string): void {
    const before = instead === undefined ? undefined : this.makeRoom(whole.rootId, instead)
    try {
      checkCommit(this.tables, newRows(whole))
      liftedBy(this.tables.tombstones, whole, headOf(whole))
      this.journal.append({ tree: whole })
    } catch (error) {
      if (before !== undefined) this.put(before)
      throw error
    }
    this.put(whole)
    for (const { letter, id } of whole.rows) if (letter === 'c') this.documents.changed(id)
    this.trim(Date.now())
    if (this.isGrown()) this.compact()
  }

  /** Takes away the tree of which a newer copy comes, and gives it. */
  private makeRoom(rootId: Id, instead: string): WholeTree | undefined {
    const archive = memoryArchive(this)
    const tree = this.tables.trees.get(rootId)
    if (tree === undefined || archive.head(rootId) !== instead) throw wentOn(rootId)
    const before = archive.read(rootId)
    forgetTree(this.tables, tree)
    this.tables.writes++
    return before
  }

  /** Keeps the tombstone of a tree that was deleted elsewhere. */
  keep(stone: Tombstone): void {
    this.journal.append({ stone })
    this.tables.tombstones.push(stone)
  }

  remove(rootId: Id, removal: Removal): Tombstone | undefined {
    const stone = tombstoneIn(this.tables, rootId, removal)
    if (stone === undefined || removal.dryRun === true) return stone
    this.bury(stone)
    this.tampered.delete(rootId)
    return stone
  }

  /** Verifies the rows against their record, and the journal line by line. */
  verify(rootId?: Id): VerifyReport {
    const verified = memoryArchive(this).verify(rootId)
    const damage = this.journal.damage()
    if (damage === null) return verified
    const place = { subject: 'store', id: this.options.folder, rootId: null, conversationId: null } as const
    return { ...verified, findings: [...verified.findings, finding('unreadable', place, damage)] }
  }

  reload(): void {
    this.tables = emptyTables()
    this.journal.reread((entry) => this.take(entry))
    this.distrust()
  }

  private distrust(): void {
    for (const tree of this.tables.trees.values()) tree.isUnchecked = true
  }

  close(): void {
    try {
      if (!this.journal.presence.isGone) this.documents.flush()
      this.journal.close()
    } finally {
      this.release()
    }
  }

  /** Writes the journal anew: else its earlier lines would still tell of the owner. */
  forgetOwner(owner: string, keptDay?: string): void {
    this.journal.append({ forgotten: owner, ...(keptDay === undefined ? {} : { keptDay }) })
    forgetOwnerRows(this.tables, owner, keptDay)
    this.compact()
  }

  private append(entry: JournalEntry): void {
    if (this.isGrown()) this.compact()
    this.journal.append(entry)
  }

  private take(entry: JournalEntry): void {
    if ('commit' in entry) {
      const tree = applyCommit(this.tables, entry.commit)
      if (tree !== undefined && entry.link !== undefined) extend(tree, entry.link)
      if (tree !== undefined) {
        putBeside(this.tables, tree, entry.commit)
        updateEnded(this.tables, tree)
      }
    } else if ('tree' in entry) this.put(entry.tree)
    else if ('stone' in entry) bury(this.tables, readTombstone(entry.stone))
    else if ('forgotten' in entry) forgetOwnerRows(this.tables, entry.forgotten, entry.keptDay)
    else if ('registered' in entry) putRegistered(this.tables.registry, entry.registered)
    else if ('dropped' in entry) dropRegistered(this.tables.registry, entry.dropped.kind, entry.dropped.id)
    else if (!('store' in entry)) putPiece(this.tables, entry)
  }

  private put(whole: WholeTree): void {
    const earlier = this.tables.trees.get(whole.rootId)
    if (earlier !== undefined) forgetTree(this.tables, earlier)
    const tree = putTree(this.tables, whole)
    if (tree === undefined) return
    tree.chain = whole.records.map(({ events: _, ...link }) => link)
    removeTombstone(this.tables, liftedBy(this.tables.tombstones, whole, headOf(whole)))
    updateEnded(this.tables, tree)
  }

  /** Writes the tombstone first, and removes the documents: a deleted tree stays deleted. */
  private bury(stone: Tombstone): void {
    this.journal.append({ stone })
    bury(this.tables, stone)
    for (const { id } of stone.conversations) this.documents.remove(id)
  }

  /** Deletes surplus ended trees. The commit is stored already, so a failure is only reported. */
  private trim(at: number): void {
    const { ended } = this.tables
    const { keep = Number.POSITIVE_INFINITY, folder, report = warn } = this.options
    try {
      while (ended.size > keep && ended.first !== null) this.remove(ended.first.id, { at, reason: 'maximum' })
    } catch (error) {
      report(storeFileError(error, join(folder, JOURNAL)))
    }
  }

  private isGrown(): boolean {
    const { compactBytes = 8_000_000 } = this.options
    const { bytes, baseBytes } = this.journal
    return bytes > Math.max(compactBytes, GROWTH * baseBytes, this.nextTryBytes)
  }

  /** Rewrites the journal. Its rows are stored already: where there is no space for a second file, the first continues. */
  compact(): void {
    try {
      this.journal.replace(piecesOf(this.tables))
    } catch (error) {
      const { folder, report = warn } = this.options
      this.nextTryBytes = 2 * this.journal.bytes
      report(storeFileError(error, join(folder, JOURNAL)))
    }
  }
}

function olderForm(folder: string): StoreError {
  const message = `The JSON store in ${folder} was written by an older version, in a form that this one does not read; it was left as it is. Export its trees with that version and import them into a new folder.`
  return new StoreError('store', message, { details: { path: folder } })
}

function updateEnded({ ended }: Tables, tree: StoredTree): void {
  if (tree.openTurns > 0) ended.delete(tree)
  else ended.add(tree)
}

function headOf({ records }: WholeTree): string {
  return records.at(-1)?.hash ?? ''
}

/** Conversations whose document this commit changes: a turn has ended, or the conversation was closed. */
function shownIn({ turns, conversations }: Commit): ReadonlySet<Id> {
  const ended = turns.filter(({ state }) => state === 'ended').map(({ conversationId }) => conversationId)
  const closed = conversations.filter(({ metadata }) => metadata['closed_at'] !== undefined).map(({ id }) => id)
  return new Set([...ended, ...closed])
}

/** Removes files that a killed process was about to put in place. Files of a running process are recent and stay. */
function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const [found, pid] = LEFTOVER.exec(name) ?? []
    if (found === undefined) continue
    const file = join(folder, name)
    const { mtimeMs } = statSync(file, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() }
    const isLeft = pid !== undefined && hasNoProcess(Number(pid))
    if (isLeft || Date.now() - mtimeMs > LEFTOVER_MS) rmSync(file, { force: true })
  }
}

/** A lock may come from another machine; documents come from processes of this machine. */
const LEFTOVER = /^(?:store\.lock-.*|.*\.json\.(\d+)-[0-9a-f]{8})\.new$/
const LEFTOVER_MS = 60_000

function warn(error: Error): void {
  process.emitWarning(error.message, 'LegateWarning')
}
