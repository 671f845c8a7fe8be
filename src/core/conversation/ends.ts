import { onAbort } from '../base/abort.ts'
import { IdMap } from '../base/collections.ts'
import { isLegateError, NotFoundError, StoreError } from '../base/error.ts'
import type { Later } from '../base/maybe.ts'
import type { Commit } from '../graph/commit.ts'
import { readOutcome } from '../graph/conclude.ts'
import { type Outcome, type OutcomeRecord, withWords } from '../graph/outcome.ts'
import { type TreeReader, treeWith } from '../graph/reader.ts'
import type { Id, Node, Turn } from '../graph/rows.ts'
import { look, mayHaveEnded, rootFor, treeLoaded, untilLoaded } from '../store/look.ts'
import { notFound } from '../store/not-found.ts'
import type { Store, StoreChange } from '../store/store.ts'

/**
 * The callers in this process that wait for a turn to end. They are only notified: the end itself is in the turn's row.
 */
export class TurnEnds {
  private readonly store: Store
  private readonly waiters: IdMap<Waiter[]> = new IdMap()
  private readonly keepAlive: KeepAlive
  private readonly found: (turnId: Id) => void

  /** `found` hears of turns that were found to have ended in other processes. */
  constructor(store: Store, keepAlive: KeepAlive, found: (turnId: Id) => void) {
    this.store = store
    this.keepAlive = keepAlive
    this.found = found
  }

  /** The outcome of a turn, now or when it ends. The process stays alive until then. */
  wait(turnId: Id, rootId?: Id): Promise<Outcome> {
    const tree = this.treeOf(turnId, rootId)
    return tree instanceof Promise ? tree.then((loaded) => this.waitIn(loaded, turnId)) : this.waitIn(tree, turnId)
  }

  /**
   * Waits for a turn that this process has just recorded. Its copy of the tree need not be compared: an end that somebody
   * else writes is told, or found by the next look.
   */
  waitRecorded(turnId: Id, rootId: Id | undefined): Promise<Outcome> {
    const root = rootId ?? this.store.writtenRoot?.(turnId)
    const tree = root === undefined ? undefined : this.store.known?.(root)
    return tree?.turn(turnId)?.state === 'running' ? this.waitIn(tree, turnId) : this.wait(turnId, rootId)
  }

  private treeOf(turnId: Id, rootId: Id | undefined): Later<TreeReader> {
    const { store } = this
    if (store.near !== undefined) return this.nearEnd(turnId, rootId)
    return rootId === undefined ? treeWith(store, turnId) : store.tree(rootId)
  }

  /** The rows of a tree, with those of the turn's outcome. */
  private async nearEnd(turnId: Id, rootId?: Id): Promise<TreeReader> {
    return treeLoaded(this.store, rootId ?? (await rootFor(this.store, turnId)) ?? turnId, (tree) => {
      const turn = tree.turn(turnId)
      if (turn?.outcome) readOutcome(tree, turn.outcome)
    })
  }

  private waitIn(tree: TreeReader, turnId: Id): Promise<Outcome> {
    const turn = tree.turn(turnId)
    if (turn?.outcome) return Promise.resolve(readOutcome(tree, turn.outcome))
    const altered = this.findAltered(turn)
    if (altered !== undefined) return Promise.reject(altered)
    return new Promise((resolve, reject) => {
      this.add(turnId, { resolve, reject, rootId: turn?.rootId ?? null })
      if (turn === undefined) this.failDeleted(turnId).catch(reject)
    })
  }

  /** The outcome of a turn, or null as soon as the signal aborts: nothing is kept for a caller that stopped waiting. */
  async waitUnless(turnId: Id, signal: AbortSignal | undefined): Promise<Outcome | null> {
    if (signal?.aborted) return null
    const tree = await this.treeOf(turnId, undefined)
    const turn = tree.turn(turnId)
    if (turn?.outcome) return readOutcome(tree, turn.outcome)
    const altered = this.findAltered(turn)
    if (altered !== undefined) throw altered
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        rootId: turn?.rootId ?? null,
        resolve: (outcome) => {
          leave()
          resolve(outcome)
        },
        reject: (error) => {
          leave()
          reject(error)
        },
      }
      this.add(turnId, waiter)
      const leave = onAbort(signal, () => {
        this.remove(turnId, waiter)
        resolve(null)
      })
      if (turn === undefined) this.failDeleted(turnId).catch(reject)
    })
  }

  /** The error for a tree that was changed from outside, in which no turn ends any more. */
  private findAltered(turn: Turn | undefined): StoreError | undefined {
    if (turn === undefined) return undefined
    return this.store.tampered?.().find(({ details }) => details['rootId'] === turn.rootId)
  }

  isAwaited(turnId: Id): boolean {
    return this.waiters.has(turnId)
  }

  private add(turnId: Id, waiter: Waiter): void {
    const others = this.waiters.get(turnId)
    if (others !== undefined) {
      others.push(waiter)
      return
    }
    this.waiters.set(turnId, [waiter])
    this.keepAlive.hold()
  }

  private remove(turnId: Id, waiter: Waiter): void {
    const waiting = this.waiters.get(turnId) ?? []
    const at = waiting.indexOf(waiter)
    if (at < 0) return
    waiting.splice(at, 1)
    if (waiting.length > 0) return
    this.waiters.delete(turnId)
    this.keepAlive.release()
  }

  committed(commit: Commit): void {
    if (this.waiters.size === 0) return
    for (const turn of commit.turns) {
      if (turn.state === 'ended' && this.waiters.has(turn.id))
        this.notify(turn, (record) => this.whole(commit, turn, record))
    }
  }

  /** Called when another process has written: something that is told, or anything. */
  async changed(change?: StoreChange): Promise<void> {
    const waiting = this.waiters.entries()
    const ids = waiting.map(([turnId]) => turnId)
    const ended = await mayHaveEnded(this.store, ids, change)
    const looks = waiting.map(([turnId, waiters]) => {
      // Whoever waits for a turn that is not recorded yet does not know its tree.
      const rootId = waiters.find((waiter) => waiter.rootId !== null)?.rootId ?? undefined
      const isMeant = rootId === undefined || ended.includes(turnId)
      return isMeant && this.waiters.has(turnId) ? this.lookAt(turnId, rootId) : undefined
    })
    // Together: a store far away answers for many trees at once.
    await Promise.all(looks)
  }

  private async lookAt(turnId: Id, rootId: Id | undefined): Promise<void> {
    try {
      const tree = await this.treeOf(turnId, rootId)
      const turn = tree.turn(turnId)
      if (turn?.state === 'ended') {
        this.notify(turn, (record) => readOutcome(tree, record))
        this.found(turnId)
      } else if (turn === undefined) await this.failDeleted(turnId)
    } catch (error) {
      if (!isLegateError(error, 'tampered')) throw error
      if (this.waiters.has(turnId)) this.fail(turnId, error)
    }
  }

  /** Fails the waiters of a deleted run. A run that is still being recorded is not deleted. */
  private async failDeleted(turnId: Id): Promise<void> {
    const error = await notFound(this.store, 'run', turnId)
    if (error.details['deleted'] !== undefined && this.waiters.has(turnId)) this.fail(turnId, error)
  }

  /** Called when the runtime closes: fails all waiters, which would not be notified here. */
  close(): void {
    this.failAll((runId) => {
      const message = `The runtime was closed before the run ${runId} ended. Open its store again and attach to it.`
      return new StoreError('store_closed', message, { details: { runId } })
    })
  }

  /** Fails all waiters, because no end can be recorded any more. */
  failAll(errorOf: (runId: Id) => Error): void {
    for (const [turnId] of [...this.waiters.entries()]) this.fail(turnId, errorOf(turnId))
  }

  /** Fails the waiters of one tree. */
  failTree(rootId: Id, error: Error): void {
    for (const [turnId, waiting] of [...this.waiters.entries()]) {
      if (waiting.some((waiter) => waiter.rootId === rootId)) this.fail(turnId, error)
    }
  }

  private fail(turnId: Id, error: Error): void {
    const waiting = this.waiters.get(turnId) ?? []
    this.waiters.delete(turnId)
    this.keepAlive.release()
    for (const { reject } of waiting) reject(error)
  }

  /** The whole outcome of a turn that a commit has ended, mostly from that commit alone. */
  private whole({ nodes }: Commit, { rootId }: Turn, record: OutcomeRecord): Later<Outcome> {
    const said = nodes.find(({ id }) => id === record.answerNodeId)
    if (said !== undefined && record.delegations.length === 0) return withWords(record, said.output)
    // The commit is of this process, so its own copy has what the outcome names, or can load it.
    const own = this.store.known?.(rootId)
    if (own !== undefined) return untilLoaded(() => readOutcome(own, record))
    return look(this.store, rootId, (tree) => readOutcome(tree, record))
  }

  private notify(turn: Turn, wholeOf: (record: OutcomeRecord) => Later<Outcome>): void {
    const waiting = this.waiters.get(turn.id)
    if (waiting === undefined || turn.outcome === null) return
    this.waiters.delete(turn.id)
    this.keepAlive.release()
    const outcome = wholeOf(turn.outcome)
    for (const { resolve } of waiting) resolve(outcome)
  }
}

interface Waiter {
  /** The tree of the turn; null while the turn is not recorded. */
  readonly rootId: Id | null
  resolve(outcome: Later<Outcome>): void
  reject(error: Error): void
}

type NodePlace = Pick<Node, 'id' | 'rootId'>

interface NodeWaiter extends Pick<Node, 'rootId'> {
  tell(ended: Node): void
}

/** The code in this process that waits for nodes to end. It is only notified: the end itself is in the node's row. */
export class NodeEnds {
  private readonly store: Store
  private readonly waiters: IdMap<NodeWaiter> = new IdMap()

  constructor(store: Store) {
    this.store = store
  }

  /** The node when it has ended; null as soon as the signal aborts. Takes one waiter at a time. */
  async waitUnless({ id: nodeId, rootId }: NodePlace, signal: AbortSignal): Promise<Node | null> {
    const node = await look(this.store, rootId, (tree) => tree.node(nodeId))
    if (node !== undefined && node.endedAt !== null) return node
    return new Promise((resolve) => {
      const leave = onAbort(signal, () => {
        this.waiters.delete(nodeId)
        resolve(null)
      })
      const tell = (ended: Node) => {
        leave()
        resolve(ended)
      }
      this.waiters.set(nodeId, { rootId, tell })
    })
  }

  committed({ nodes }: Commit): void {
    if (this.waiters.size === 0) return
    for (const node of nodes) if (node.endedAt !== null) this.notify(node)
  }

  /** Called when another process has written: to one tree, or to any. */
  async changed(changedId?: Id): Promise<void> {
    for (const [nodeId, { rootId }] of [...this.waiters.entries()]) {
      if (rootId !== (changedId ?? rootId)) continue
      const node = await look(this.store, rootId, (tree) => tree.node(nodeId))
      if (node !== undefined && node.endedAt !== null) this.notify(node)
    }
  }

  private notify(node: Node): void {
    const waiter = this.waiters.get(node.id)
    this.waiters.delete(node.id)
    waiter?.tell(node)
  }
}

/** Keeps the process alive. Node ends a process that only awaits promises, so a timer runs while somebody waits. */
export class KeepAlive {
  private timer: ReturnType<typeof setInterval> | undefined
  private holders = 0

  hold(): void {
    this.timer ??= setInterval(() => undefined, 2 ** 30)
    if (this.holders++ === 0) this.timer.ref()
  }

  release(): void {
    if (--this.holders === 0) this.timer?.unref()
  }
}

/**
 * Runs that were started here and are not in the rows yet. Their ids are known from the start, so callers can find
 * them.
 */
export class Recordings {
  private readonly open: Map<Id, Recording> = new Map()

  add(recording: Recording): void {
    const { runId, started } = recording
    this.open.set(runId, recording)
    const done = () => {
      // A start under the same key may have come after it.
      if (this.open.get(runId) === recording) this.open.delete(runId)
    }
    started.then(done, done)
  }

  get isEmpty(): boolean {
    return this.open.size === 0
  }

  ofRun(runId: Id): Recording | undefined {
    return this.open.get(runId)
  }

  /** Settles when every earlier start of this run or conversation is recorded or refused. */
  async settled(id?: Id): Promise<void> {
    const meant = [...this.open.values()].filter(
      ({ runId, conversationId, place }) =>
        id === undefined || id === runId || id === conversationId || place !== undefined,
    )
    await Promise.allSettled(meant.map(({ started }) => started))
  }
}

/** A run that may not be recorded yet. */
export interface StartingRun {
  readonly conversationId: Id
  /** Where its conversation is certain only once it is recorded. */
  readonly place?: { readonly conversationId: Id } | undefined
  readonly started?: Promise<unknown>
}

interface Recording extends StartingRun {
  readonly runId: Id
  readonly started: Promise<unknown>
}

/** Resolves when no turn is open, in the whole store or in one tree. Background runs count too. */
export async function untilIdle(store: Store, ends: TurnEnds, rootId: Id | undefined): Promise<void> {
  for (;;) {
    const [turn] = await store.openTurns(1, rootId)
    if (turn === undefined) return
    await ends.wait(turn.id, turn.rootId).catch(unlessDeleted)
  }
}

/** A run that another process ended and deleted has ended too. */
function unlessDeleted(error: unknown): void {
  if (!NotFoundError.isInstance(error)) throw error
}
