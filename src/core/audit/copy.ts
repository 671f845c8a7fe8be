// Copying a store: all its trees and tombstones, into a store of any kind.
//
// Owns:      what is done with each tree: copied, renewed, left as it is, or refused; and the report of all of it.
// Called by: `runtime.copyFrom()`, for `legate copy`.
// Must stay true:
//   - One tree is in memory at a time, and a tree comes whole or not at all: whoever is ended in the middle begins again.
//   - Nothing that the other store has on its own is changed: a tree that went on there, or was deleted there, stays so.
//   - Two stores with different trees of one id are no copies of each other: then nothing more is copied.

import { ConflictError, InputError } from '../base/error.ts'
import type { Later } from '../base/maybe.ts'
import { code, type OptionRules, readOptions } from '../base/options.ts'
import type { Id } from '../graph/rows.ts'
import type { Archive, Tombstone, WholeTree } from '../store/archive.ts'
import type { Ledger } from '../store/ledger.ts'
import type { Store } from '../store/store.ts'
import { archiveOf, checkTree } from './archive.ts'

/** How far a copy has come, and in the end what it did. */
export interface CopyReport {
  /** How many trees were copied. */
  readonly copied: number
  /** Trees that an earlier copy brought, and that went on since: their newer form is there now. */
  readonly renewed: number
  /** Trees that were there already, as they are. */
  readonly there: number
  /** Trees that were there already, and went on or were deleted there. */
  readonly ahead: number
  /** Tombstones of deleted trees that were copied. */
  readonly tombstones: number
  /** Trees that an earlier copy brought, and that were deleted since: they are deleted there, too. */
  readonly deleted: number
  /** Nodes of the trees that were copied or renewed. */
  readonly nodes: number
  /** Trees that were not copied, and why. */
  readonly refused: readonly { readonly rootId: Id; readonly message: string }[]
}

export interface CopyOptions {
  /** Called after each tree. */
  readonly progress?: (report: CopyReport) => void
}

const OPTIONS: OptionRules<CopyOptions> = { progress: code }

/** Copies all trees and tombstones of a store. Say it again: it takes what is new. */
export async function copyStore(from: Store, ledger: Ledger, given: CopyOptions): Promise<CopyReport> {
  const { progress = () => undefined } = readOptions<CopyOptions>('copyFrom()', given, OPTIONS)
  const copy = new Copy(from, ledger)
  for await (const rootId of rootsOf(from)) {
    await copy.tree(rootId)
    progress(copy.report)
    // Stores may answer at once, so other work gets its turn between two trees.
    await new Promise(setImmediate)
  }
  await copy.tombstones()
  return copy.report
}

const PAGE = 500

async function* rootsOf(store: Store): AsyncGenerator<Id> {
  for (let last = ''; ; ) {
    const page = await store.conversations({ after: last, limit: PAGE })
    for (const { id, rootId } of page) if (id === rootId) yield id
    last = page.at(-1)?.id ?? ''
    if (page.length < PAGE) return
  }
}

/** Archives whose trees can be compared without reading them. */
type Comparable = Archive & Required<Pick<Archive, 'head' | 'bury'>>

class Copy {
  private readonly from: Comparable
  private readonly to: Comparable
  private readonly ledger: Ledger
  private readonly counts = { copied: 0, renewed: 0, there: 0, ahead: 0, tombstones: 0, deleted: 0, nodes: 0 }
  private readonly refused: { rootId: Id; message: string }[] = []

  constructor(from: Store, ledger: Ledger) {
    this.from = comparable(from)
    this.to = comparable(ledger.store)
    this.ledger = ledger
  }

  get report(): CopyReport {
    return { ...this.counts, refused: this.refused }
  }

  async tree(rootId: Id): Promise<void> {
    const [head, known] = [await this.from.head(rootId), await this.to.head(rootId)]
    if (head === known) this.counts.there++
    else if (known === undefined) await this.add(rootId)
    else await this.compare(rootId, known)
  }

  private async add(rootId: Id): Promise<void> {
    if ((await this.to.tombstone(rootId)) !== undefined) this.counts.ahead++
    else await this.take(rootId, () => undefined)
  }

  /** A tree of this id is there, and not the same. */
  private async compare(rootId: Id, known: string): Promise<void> {
    await this.take(rootId, async (tree) => {
      if (hasCommit(tree, known)) return known
      const there = await this.to.read(rootId)
      if (there !== undefined && hasCommit(there, tree.records.at(-1)?.hash)) return null
      throw differentTree(rootId)
    })
  }

  /** Copies a tree, instead of the one that ends in the hash that `over` gives; not at all where it gives null. */
  private async take(rootId: Id, over: (tree: WholeTree) => Later<string | undefined | null>): Promise<void> {
    const tree = await this.read(rootId)
    if (tree === undefined) return
    const instead = await over(tree)
    if (instead === null) {
      this.counts.ahead++
      return
    }
    try {
      await checkTree(this.ledger, tree)
    } catch (error) {
      if (!InputError.isInstance(error)) throw error
      this.refuse(rootId, error.message.replace(/^The export is not taken: /, ''))
      return
    }
    await this.to.restore(tree, instead)
    this.counts[instead === undefined ? 'copied' : 'renewed']++
    this.counts.nodes += tree.rows.filter(({ letter }) => letter === 'n').length
  }

  /** Undefined where the tree was deleted meanwhile, or cannot be read. */
  private async read(rootId: Id): Promise<WholeTree | undefined> {
    try {
      return await this.from.read(rootId)
    } catch (error) {
      this.refuse(rootId, error instanceof Error ? error.message : String(error))
      return undefined
    }
  }

  private refuse(rootId: Id, message: string): void {
    this.refused.push({ rootId, message })
  }

  async tombstones(): Promise<void> {
    const known = new Set((await this.to.tombstones()).map(nameOf))
    for (const stone of await this.from.tombstones()) if (!known.has(nameOf(stone))) await this.tombstone(stone)
  }

  private async tombstone(stone: Tombstone): Promise<void> {
    const { rootId, hash, at, reason } = stone
    const there = await this.to.head(rootId)
    if (there === undefined) {
      await this.to.bury(stone)
      this.counts.tombstones++
    } else if (there === hash) {
      await this.to.remove(rootId, { at, reason })
      this.counts.deleted++
    } else if ((await this.from.head(rootId)) === undefined) {
      this.refuse(
        rootId,
        `It was deleted since an earlier copy, after it went on. Delete it there, too: legate forget ${rootId}`,
      )
    }
  }
}

function comparable(store: Store): Comparable {
  const archive = archiveOf(store)
  if (archive.head !== undefined && archive.bury !== undefined) return archive as Comparable
  const message = `The store "${store.name}" keeps no hashes by which a copy finds what is there already. Use export and import.`
  throw new InputError('invalid_input', message)
}

function hasCommit({ records }: WholeTree, hash: string | undefined): boolean {
  return records.some((record) => record.hash === hash)
}

function nameOf({ rootId, hash }: Tombstone): string {
  return `${rootId} ${hash}`
}

function differentTree(rootId: Id): ConflictError {
  const message = `The other store has a different tree of the id ${rootId}: it went on in both stores, or they are no copies of each other. That tree stays as it is, and nothing more is copied.`
  return new ConflictError('conflict', message, { details: { rootId, stale: false } })
}
