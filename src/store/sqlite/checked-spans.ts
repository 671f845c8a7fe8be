import type { StoreError } from '../../base/error.ts'
import { sha256 } from '../../base/hash.ts'
import type { Id, Turn } from '../../graph/rows.ts'
import { tampered } from '../tampered.ts'
import { atOneMoment } from './at-one-moment.ts'
import { type Connection, textOf } from './driver.ts'
import { COMMITS_PER_TREE, SPAN } from './rows.ts'
import { type ReadSpan, SpanCheck, type WrongSpan } from './span-check.ts'
import { readSpanText, readSpanTexts } from './span-text.ts'

/** Gives rows of the file to who works with them, and only such as its commits wrote. */
export class CheckedSpans {
  /** In a transaction that writes: what is read is of one moment. */
  isWriting = false
  private readonly check = new SpanCheck()
  private readonly trees = new Map<Id, StoreError>()
  private readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** Trees that were found to be changed from outside, and are still there: one error for each. */
  found(db: Connection): readonly StoreError[] {
    for (const rootId of this.trees.keys()) if (db.first(RECORD, [rootId]) === undefined) this.trees.delete(rootId)
    return [...this.trees.values()]
  }

  /** Nothing is added to a tree that was changed from outside. */
  require(db: Connection, rootId: Id | null): void {
    const error = rootId === null ? undefined : this.trees.get(rootId)
    if (error !== undefined && this.found(db).includes(error)) throw error
  }

  /** Undefined when its tree was deleted. */
  read(db: Connection, first: number, end: number): ReadSpan | undefined {
    const once = () => this.look(db, first, end)
    const found = once()
    if (found === undefined || 'rows' in found) return found
    // Another process may have written between two looks.
    const again = this.isWriting ? found : atOneMoment(db, once)
    if (again === undefined || 'rows' in again) return again
    throw this.refuse(db, again)
  }

  /** The same of several whole ones. What is wrong with one is found when it is read by itself. */
  readAll(db: Connection, firsts: readonly number[]): ReadSpan[] {
    return this.check.checkAll(db, readSpanTexts(db, firsts)).flatMap((one, at) => {
      const first = firsts[at] ?? 0
      return 'rows' in one ? one : (this.read(db, first, first + SPAN) ?? [])
    })
  }

  /** A text is named by its hash; who commits by hand may name it otherwise. */
  requireBody(hash: string, text: string): void {
    if (!IS_HASH.test(hash) || sha256(text) === hash) return
    throw tampered(`The text ${hash} is not what was written`, { rootId: null, path: this.path })
  }

  /** Looks through all rows: for a tree in which a run seems to be missing. */
  requireWhole(db: Connection, rootId: Id): void {
    const [first = 0] = db.first(RECORD, [rootId]) ?? []
    const [n] = db.first(MISSING, [Number(first), Number(first) + COMMITS_PER_TREE]) ?? []
    if (typeof n !== 'number') return
    const error = tampered(`Row ${n} of the file is missing`, { rootId, path: this.path })
    this.trees.set(rootId, error)
    throw error
  }

  /** A turn that another lane leads to. */
  misplaced({ id, rootId }: Turn): StoreError {
    return tampered(`The turn ${id} is found in another conversation than its own`, { rootId, path: this.path })
  }

  /** Nothing is decided by events: the tree goes on for who does not read them. */
  unreadableEvents(rootId: Id, commit: number): StoreError {
    return tampered(`The events of commit ${commit} are not what was written`, { rootId, path: this.path, commit })
  }

  private look(db: Connection, first: number, end: number): ReadSpan | WrongSpan | undefined {
    const text = readSpanText(db, first, end)
    if (text.lines !== '') return this.check.check(db, text)
    // Of a tree that was deleted neither rows nor seals are left.
    const [writer] = db.first(SEAL, [first]) ?? []
    return writer === undefined ? undefined : { what: `Row ${first} of the file is missing`, writer: Number(writer) }
  }

  private refuse(db: Connection, { what, writer }: WrongSpan): StoreError {
    const rootId = rootOf(db, writer)
    const error = tampered(what, { rootId, path: this.path })
    if (rootId !== null) this.trees.set(rootId, this.trees.get(rootId) ?? error)
    return error
  }
}

const IS_HASH = /^[0-9a-f]{64}$/

const MISSING = `SELECT seals.n FROM seals LEFT JOIN rows ON rows.n = seals.n
  WHERE seals.writer >= ? AND seals.writer < ? AND rows.n IS NULL LIMIT 1`
const SEAL = 'SELECT writer FROM seals WHERE n = ?'
const RECORD = 'SELECT n FROM commits WHERE root_id = ?'
const ROOT = 'SELECT CAST(root_id AS BLOB) FROM commits WHERE n = ?'

/** The record says whose commit it was; a row that was changed may say anything. */
function rootOf(db: Connection, writer: number): Id | null {
  const [rootId] = db.first(ROOT, [Math.floor(writer / COMMITS_PER_TREE) * COMMITS_PER_TREE + 1]) ?? []
  return rootId == null ? null : textOf(rootId)
}
