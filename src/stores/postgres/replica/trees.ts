// Copies of trees in this process, kept up with a database elsewhere.
//
// Owns:      when a copy is compared with the truth, what is loaded of it, and that a commit whose answer was lost is stored once.
// Called by: stores that several machines share (`store/postgres`), and simulations with another transport.
// Must stay true:
//   - `tree()` shows every commit that was acknowledged, anywhere, before it was called.
//   - The database decides: a copy that is old makes a commit fail, never a wrong row.
//   - Nothing here waits for the database but the caller: the event loop goes on.

import { StoreError } from '../../../core/base/error.ts'
import type { Commit } from '../../../core/graph/commit.ts'
import type { EventRow } from '../../../core/graph/event.ts'
import type { TreeReader } from '../../../core/graph/reader.ts'
import type { Id } from '../../../core/graph/rows.ts'
import { checkCommit } from '../../../core/store/memory/commit.ts'
import type { Tables } from '../../../core/store/memory/tables.ts'
import { requireNoTreeRows, staleRow, unknownTree } from '../../../core/store/store.ts'
import { NEWEST } from './part.ts'
import { bodiesLacking, CHECKED, Replica, type ReplicaLimits, type ReplicaOptions, tablesOf } from './replica.ts'
import {
  AnswerLost,
  type Head,
  Refused,
  type SendOptions,
  type Transport,
  type TreePart,
  type WantedRows,
} from './transport.ts'

export interface TreesOptions {
  readonly transport: Transport
  /** Throws when the store is closed. */
  readonly requireOpen: () => void
  /** Lets other work run. */
  readonly defer: () => Promise<void>
  /** Waits between two tries at sending. */
  readonly pause: (ms: number) => Promise<void>
  /** For how long a commit is sent again while the database does not answer. */
  readonly patienceMs: number
  readonly now: () => number
  /** How much of large trees is kept. */
  readonly limits?: ReplicaLimits
}

const LIMITS: ReplicaLimits = { whole: 5_000, turns: 8 }

/** So many large trees are kept whole for those who read all of them. */
const MOST_WHOLE = 2

/** Copies with more rows than this together are forgotten, those that were used longest ago first. */
const MOST_ROWS = 100_000

/** It remembers the trees of so many turns. */
const MOST_TURNS = 20_000

export class Trees {
  private readonly options: TreesOptions
  private readonly ofReplicas: ReplicaOptions
  /** In the order of their last use. */
  private readonly replicas = new Map<Id, Replica>()
  /** Large trees as a whole, for those who read all of them. */
  private readonly wholes = new Map<Id, Replica>()
  /** The trees of turns that this process has written to. */
  private readonly roots = new Map<Id, Id>()
  private size = 0
  private readonly loading = new Map<Replica, Promise<boolean>>()
  /** How many searches for rows are under way. */
  private readonly finding = new Map<Replica, number>()
  private readonly shrinking = new Set<Replica>()

  constructor(options: TreesOptions) {
    this.options = options
    const { requireOpen, limits = LIMITS } = options
    this.ofReplicas = { requireOpen, limits, find: (replica, wanted) => this.find(replica, wanted) }
  }

  /** All rows of a tree, as they are now or later. */
  async tree(rootId: Id): Promise<TreeReader> {
    return (await this.whole(rootId)).reader
  }

  /** Rows of a tree, as they are now or later; those of a large one as far as they are here. */
  async near(rootId: Id): Promise<TreeReader> {
    return (await this.fresh(rootId)).near
  }

  /** Stores a commit, or throws. */
  async commit(commit: Commit): Promise<void> {
    this.options.requireOpen()
    if (commit.rootId === null) requireNoTreeRows(commit)
    // Rules plan on a copy, and only on rows of one tree. Whoever puts rows together by hand is checked first.
    else if (commit.plannedOn === undefined) await this.check(commit, commit.rootId)
    const head = await this.send(commit)
    if (head === undefined || commit.rootId === null) return
    numberEvents(commit.events, head.seq)
    const replica = this.use(commit.rootId)
    const open = this.resized(replica, () => replica.takeOwn(commit, head))
    this.wholes.get(commit.rootId)?.takeOwn(commit, head)
    this.noteTurns(commit.turns, commit.rootId)
    if (open.length > 0) await this.find(replica, { ids: open, lanes: [], open: false })
  }

  /** The tree of a turn that this process has written to; it may have been deleted since. */
  writtenRoot(turnId: Id): Id | undefined {
    return this.roots.get(turnId)
  }

  private noteTurns(turns: Commit['turns'], rootId: Id): void {
    for (const { id } of turns) this.roots.set(id, rootId)
    for (const id of this.roots.keys()) {
      if (this.roots.size <= MOST_TURNS) return
      this.roots.delete(id)
    }
  }

  /** Forgets the rows of a tree: they are loaded anew. */
  forget(rootId: Id): void {
    const replica = this.replicas.get(rootId)
    if (replica !== undefined) this.resized(replica, () => replica.clear())
    this.wholes.get(rootId)?.clear()
    this.wholes.delete(rootId)
  }

  forgetAll(): void {
    this.replicas.clear()
    this.wholes.clear()
    this.roots.clear()
    this.size = 0
  }

  /** The rows of a tree, where this process has all that it knows to be there. A tree that it is about to make has none. */
  unchecked(rootId: Id, isNew = false): TreeReader | undefined {
    this.options.requireOpen()
    const replica = isNew ? this.use(rootId) : this.replicas.get(rootId)
    // Somebody was faster, and others may read it here.
    if (isNew && replica?.head !== undefined) return undefined
    if (isNew) replica?.empty()
    return replica?.isCurrent === true && !replica.isHeard ? replica.unchecked : undefined
  }

  /** Somebody is said to have written to a tree. */
  hear(rootId: Id): void {
    const replica = this.replicas.get(rootId)
    if (replica !== undefined) replica.isHeard = true
  }

  /** The copy of a tree, where there is one. */
  known(rootId: Id): Replica | undefined {
    return this.replicas.get(rootId)
  }

  private async whole(rootId: Id): Promise<Replica> {
    const near = await this.fresh(rootId)
    if (near.isWhole) return near
    const limits = { whole: Number.POSITIVE_INFINITY, turns: 0 }
    const known = this.wholes.get(rootId) ?? new Replica(rootId, { ...this.ofReplicas, limits })
    this.wholes.delete(rootId)
    this.wholes.set(rootId, known)
    for (const id of this.wholes.keys()) if (this.wholes.size > MOST_WHOLE) this.wholes.delete(id)
    const { head } = near
    while (head !== undefined && !known.has(head) && (await this.loadOnce(known)));
    this.options.requireOpen()
    return known
  }

  private async fresh(rootId: Id): Promise<Replica> {
    this.options.requireOpen()
    const before = this.use(rootId)
    if (this.isLoadDue(before)) return this.loadDue(before)
    const known = before.head
    const head = await this.options.transport.head(rootId)
    this.options.requireOpen()
    const replica = this.use(rootId)
    // Where this process has made the tree meanwhile, the answer was older.
    if (head === undefined && (replica !== before || replica.head !== known)) return this.fresh(rootId)
    if (head === undefined) this.resized(replica, () => replica.empty())
    else while (!replica.has(head) && (await this.loadOnce(replica)));
    this.options.requireOpen()
    return replica
  }

  /** True where a head would only announce a load. A load that is under way may show less than this caller has to see. */
  private isLoadDue(replica: Replica): boolean {
    return (replica.head === undefined || replica.isHeard) && !this.loading.has(replica)
  }

  /** Loads without asking for the head first: the rows come with theirs. */
  private async loadDue(replica: Replica): Promise<Replica> {
    const since = replica.head
    replica.isHeard = false
    const isThere = await this.loadOnce(replica)
    this.options.requireOpen()
    const { head, rootId } = replica
    const isKept = this.replicas.get(rootId) === replica
    const isLoaded = isThere ? head !== undefined && head.tree === (since ?? head).tree : head === undefined
    return isKept && isLoaded ? replica : this.fresh(rootId)
  }

  /** Loads what a copy lacks; callers that come meanwhile share it. False where the tree is gone. */
  private loadOnce(replica: Replica): Promise<boolean> {
    const known = this.loading.get(replica)
    if (known !== undefined) return known
    const { head } = replica
    const part = (head === undefined ? this.loadFirst(replica) : this.loadNewer(replica, head)).finally(() => {
      this.loading.delete(replica)
    })
    const loaded = part.then((open) => {
      if (open === undefined || open.length === 0) return open !== undefined
      return this.find(replica, { ids: open, lanes: [], open: false }).then(() => true)
    })
    this.loading.set(replica, loaded)
    return loaded
  }

  /** Gives the ids of open turns that the copy needs, too; undefined where the tree is gone. */
  private async loadFirst(replica: Replica): Promise<readonly Id[] | undefined> {
    const { rootId, limits } = replica
    const { transport, defer } = this.options
    const { whole, turns } = limits
    const part = await transport.load(rootId, whole)
    if (part !== undefined && part.rows === undefined) {
      const wanted = { ids: [rootId], lanes: [{ laneId: rootId, last: NEWEST, limit: turns }], open: true }
      return this.loadPart(replica, wanted)
    }
    if (part === undefined) return this.isGone(replica)
    const tables = await tablesOf(rootId, part, defer)
    this.resized(replica, () => replica.adopt(tables, part.head))
    return []
  }

  /** Loads the newest rows of a large tree. */
  private async loadPart(replica: Replica, wanted: WantedRows): Promise<readonly Id[] | undefined> {
    const part = await this.findIn(replica, wanted)
    if (part === undefined) return this.isGone(replica)
    const tables = await tablesOf(replica.rootId, part, this.options.defer)
    this.resized(replica, () => replica.adopt(tables, part.head, wanted))
    return []
  }

  private isGone(replica: Replica): undefined {
    // Where this process has made the tree meanwhile, the answer was older.
    if (replica.head !== undefined) return
    this.resized(replica, () => replica.clear())
    replica.empty()
  }

  private async loadNewer(replica: Replica, since: Head): Promise<readonly Id[]> {
    const { rootId } = replica
    const newer = await this.options.transport.newer(rootId, since)
    if (newer === undefined) {
      // It was deleted, or deleted and made again: then it is loaded anew.
      this.resized(replica, () => replica.clear())
      return []
    }
    const part = replica.isWhole ? newer : await this.withBodies(replica, newer)
    // While it was loading, the copy may have been forgotten: then a part is not enough.
    const isSame = replica.head?.tree === part.head.tree
    return isSame ? this.resized(replica, () => replica.take(part)) : []
  }

  /** Adds rows to the copy of a large tree. */
  private async find(replica: Replica, wanted: WantedRows): Promise<void> {
    this.finding.set(replica, (this.finding.get(replica) ?? 0) + 1)
    try {
      while (!(await this.findOnce(replica, wanted)));
    } finally {
      const left = (this.finding.get(replica) ?? 1) - 1
      if (left > 0) this.finding.set(replica, left)
      else this.finding.delete(replica)
      this.shrinkLater(replica)
    }
  }

  /** False where the tree has changed meanwhile. */
  private async findOnce(replica: Replica, wanted: WantedRows): Promise<boolean> {
    const part = await this.findIn(replica, wanted)
    this.options.requireOpen()
    if (part === undefined || replica.head === undefined) return true
    if (this.resized(replica, () => replica.add(part, wanted))) return true
    if (!replica.has(part.head)) await this.loadOnce(replica)
    return false
  }

  private async findIn(replica: Replica, wanted: WantedRows): Promise<TreePart | undefined> {
    const part = await this.options.transport.find(replica.rootId, wanted)
    return part === undefined ? undefined : this.withBodies(replica, part)
  }

  /** A large tree has only the texts that its rows name. */
  private async withBodies({ rootId, rows }: Replica, part: TreePart): Promise<TreePart> {
    const hashes = bodiesLacking(rows, rootId, part.rows ?? [])
    if (hashes.length === 0) return part
    return { ...part, bodies: [...part.bodies, ...(await this.options.transport.bodies(rootId, hashes))] }
  }

  private use(rootId: Id): Replica {
    const known = this.replicas.get(rootId)
    const replica = known ?? new Replica(rootId, this.ofReplicas)
    if (known === undefined) this.size += replica.size
    else this.replicas.delete(rootId)
    this.replicas.set(rootId, replica)
    return replica
  }

  /** Changes a copy, and forgets others where all of them have too many rows. */
  private resized<T>(replica: Replica, change: () => T): T {
    const before = replica.size
    const result = change()
    if (this.replicas.get(replica.rootId) !== replica) return result
    this.size += replica.size - before
    if (this.size > MOST_ROWS) this.forgetOldest()
    this.shrinkLater(replica)
    return result
  }

  /** Whoever reads rows that were just loaded does so before: a copy loses none while somebody searches. */
  private shrinkLater(replica: Replica): void {
    if (!replica.isTooLarge || this.finding.has(replica) || this.shrinking.has(replica)) return
    if (this.replicas.get(replica.rootId) !== replica) return
    this.shrinking.add(replica)
    const shrink = () => {
      this.shrinking.delete(replica)
      if (!this.finding.has(replica) && replica.isTooLarge) this.resized(replica, () => replica.shrink())
    }
    this.options.defer().then(shrink, shrink)
  }

  private forgetOldest(): void {
    for (const [rootId, replica] of this.replicas) {
      if (this.size <= MOST_ROWS * 0.8) return
      this.replicas.delete(rootId)
      this.size -= replica.size
    }
  }

  private async check(commit: Commit, rootId: Id): Promise<void> {
    const { rows } = await this.whole(rootId)
    // Engines are of no tree: the database checks their versions.
    checkCommit(rows, { ...commit, engines: [] })
  }

  private async send(commit: Commit): Promise<Head | undefined> {
    const { now, pause, patienceMs } = this.options
    const giveUpAt = now() + patienceMs
    for (let tries = 0; ; tries++) {
      try {
        return await this.sendOnce(commit, tries > 0)
      } catch (error) {
        if (!(error instanceof AnswerLost)) throw error
        if (now() >= giveUpAt) throw noAnswer(patienceMs, error)
        await pause(Math.min(1_000, 20 * 2 ** tries))
        this.options.requireOpen()
      }
    }
  }

  private async sendOnce(commit: Commit, again: boolean): Promise<Head | undefined> {
    try {
      return await this.options.transport.send(commit, this.sending(commit, again))
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (commit.rootId !== null) this.markOld(commit.rootId)
      throw await this.refusal(commit)
    }
  }

  /** Somebody else has written to it. */
  private markOld(rootId: Id): void {
    this.replicas.get(rootId)?.markOld()
  }

  private sending(commit: Commit, again: boolean): SendOptions {
    const { rootId, plannedOn = CHECKED } = commit
    const known = rootId === null ? [] : [this.replicas.get(rootId), this.wholes.get(rootId)]
    const tables = known.flatMap((replica) => replica?.rows ?? [])
    const inTables = <T>(find: (rows: Tables) => T | undefined) => tables.map(find).find((found) => found !== undefined)
    return {
      again,
      tree: known[0]?.head?.tree ?? null,
      isPresumed: plannedOn === 0,
      seen: plannedOn === CHECKED ? null : plannedOn,
      turnOf: (id) => inTables(({ nodes }) => nodes.get(id)?.row.turnId) ?? '',
      conversationOf: (id) =>
        commit.conversations.find((row) => row.id === id) ??
        inTables(({ conversations }) => conversations.get(id)?.row),
    }
  }

  /** The reason for a refusal, in the words of all stores: found by the rows as they are now. */
  private async refusal(commit: Commit): Promise<Error> {
    const { rootId, conversations, turns, nodes, links, engines } = commit
    const [engine] = engines
    if (rootId === null) return staleRow('engines', engine ?? NO_ROW)
    // The ledger plans again on fresh rows, whatever was wrong.
    if (commit.plannedOn !== undefined) return staleRow('trees', { id: rootId, version: 2 })
    try {
      await this.check(commit, rootId)
    } catch (error) {
      return error as Error
    }
    const tables = { conversations, turns, nodes, links, engines }
    for (const [table, rows] of Object.entries(tables)) {
      const row = rows.find(({ version }) => version > 1) ?? rows[0]
      if (row !== undefined) return staleRow(table, row)
    }
    return unknownTree(rootId, commit)
  }
}

const NO_ROW = { id: '', version: 1 }

function numberEvents(events: readonly EventRow[], last: number): void {
  events.forEach((event, index) => {
    ;(event as { seq: number }).seq = last - events.length + index + 1
  })
}

function noAnswer(patienceMs: number, cause: unknown): StoreError {
  const message = `The database has not answered for ${Math.round(patienceMs / 1000)} s. Nobody knows whether the commit was stored; read its rows when the database is back.`
  return new StoreError('store_busy', message, { cause })
}
