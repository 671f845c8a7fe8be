import { NotFoundError } from '../base/error.ts'
import { after, type Later } from '../base/maybe.ts'
import { type EventRow, type LiveEvent, type RunEvent, toEvent } from '../graph/event.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Id, Turn } from '../graph/rows.ts'
import { lookWith, MissingRows, untilLoaded } from '../store/look.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { KeepAlive } from './ends.ts'
import type { Feeds, TreeFeed } from './feeds.ts'
import { type EventScope, EventView } from './fields/view.ts'
import { pages } from './pages.ts'

export interface FollowOptions extends TreeOptions {
  readonly runId: Id
  readonly sees?: EventScope
}

export interface TreeOptions {
  readonly store: Store
  readonly feeds: Feeds
  readonly keepAlive: KeepAlive
  /** Only events with a greater sequence number. */
  readonly after: number
  /** True: shows everything so far of the nodes that stream, once, instead of the deltas before that. */
  readonly live: boolean
}

/**
 * The events of one run and of its delegations, in order, from the beginning or after `seq`; ends with the run. It
 * reads only the part of a tree's log between the run's first event and its last.
 */
export function follow(options: FollowOptions): Later<AsyncIterableIterator<RunEvent>> {
  const { store, runId } = options
  const found = lookWith(store, runId, (tree) => ({ tree, turn: tree.turn(runId) }))
  return after(found, ({ tree, turn }) => followIn(tree, turn, options))
}

function followIn(
  tree: TreeReader,
  turn: Turn | undefined,
  options: FollowOptions,
): Later<AsyncIterableIterator<RunEvent>> {
  const { runId, sees } = options
  if (turn === undefined) return refuseDeleted(options)
  const view = new EventView(tree, runId, sees)
  if (turn.state === 'ended') return readEnded(options, view, turn)
  return enterTree(options, { tree, view, rootId: turn.rootId, runId, after: firstWanted(options, turn) })
}

/**
 * The events of a whole tree, of all its runs and lanes. Ends when its reader stops, the tree is deleted or the runtime closes.
 */
export async function followTree(options: TreeOptions, id: Id): Promise<AsyncIterableIterator<RunEvent>> {
  const { store } = options
  const { tree, row } = await lookWith(store, id, (rows) => ({ tree: rows, row: rows.conversation(id) }))
  if (row === undefined) throw await notFound(store, 'conversation', id)
  const from = Math.max(0, Math.floor(options.after))
  return enterTree(options, { tree, view: null, rootId: row.rootId, runId: null, after: from })
}

interface Entrance {
  readonly tree: TreeReader
  readonly view: EventView | null
  readonly rootId: Id
  readonly runId: Id | null
  readonly after: number
}

function enterTree(options: TreeOptions, entrance: Entrance): Later<AsyncIterableIterator<RunEvent>> {
  const { tree, rootId, after: from } = entrance
  const { feeds } = options
  return after(feeds.enter(rootId, from, tree.lastSeq(rootId)), (feed) => {
    const parts = { ...entrance, feed }
    if (!options.live) return new Follower(options, parts)
    const caughtUp = makeLiveReader(options, feed).catch((error: unknown) => {
      feeds.leave(rootId)
      throw error
    })
    return caughtUp.then((liveEvents) => new Follower(options, { ...parts, liveEvents }))
  })
}

async function makeLiveReader({ store, feeds }: TreeOptions, feed: TreeFeed): Promise<() => LiveEvent[]> {
  const { liveReader } = await import('./live-state.ts')
  return liveReader({ store, feeds, feed })
}

async function refuseDeleted(options: FollowOptions): Promise<never> {
  throw await deletedError(options)
}

/** Reads a run that is over page by page, and keeps nothing of it. */
async function* readEnded(options: FollowOptions, view: EventView, turn: Turn): AsyncGenerator<RunEvent, void> {
  for await (const events of pages(options.store, turn.rootId, { after: firstWanted(options, turn) })) {
    if (options.store.near !== undefined) await untilLoaded(() => view.prepare(events))
    for (const row of events) {
      const event = view.show(toEvent(row))
      if (event === undefined) continue
      if (event.seq > options.after) yield event
      if (isEnd(event, options.runId)) return
    }
  }
  // The run was deleted meanwhile: the reader has not seen everything.
  const isThere = (await options.store.rootOf(options.runId)) !== undefined
  if (!isThere) throw await deletedError(options)
}

interface FollowParts extends Omit<Entrance, 'tree'> {
  readonly feed: TreeFeed
  /** Everything so far of the nodes that stream; absent where readers want every delta instead. */
  readonly liveEvents?: () => LiveEvent[]
}

interface WaitingReader {
  readonly resolve: (result: IteratorResult<RunEvent>) => void
  readonly reject: (error: unknown) => void
}

class Follower implements AsyncIterableIterator<RunEvent> {
  private readonly options: TreeOptions
  private readonly parts: FollowParts
  private readonly tree: TreeFeed
  private index = 0
  private generation = 0
  /** The place in the buffer. */
  private lastSeq: number
  /** Durable events up to this one were read, from the buffer or from the store. */
  private read: number
  /** Events that come before those of the buffer. */
  private early: readonly RunEvent[] = []
  private earlyIndex = 0
  private isReading = false
  /** An event that is shown when rows about it are loaded. */
  private held: RunEvent | undefined
  private failure: { readonly error: unknown } | undefined
  /** True until it has caught up: it skips deltas, and then gets all of them as one. */
  private isBehind: boolean
  private isDone = false
  private readonly waiting: WaitingReader[] = []
  private readonly stopListening: () => void

  constructor(options: TreeOptions, parts: FollowParts) {
    this.options = options
    this.parts = parts
    this.tree = parts.feed
    this.generation = this.tree.generation
    this.index = this.tree.indexAfter(parts.after)
    this.lastSeq = parts.after
    this.read = parts.after
    this.isBehind = parts.liveEvents !== undefined
    this.stopListening = this.tree.onMore(() => this.deliver())
    options.feeds.lastReader = this
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<RunEvent>> {
    const isFirst = this.waiting.length === 0
    const result = isFirst ? (this.take() ?? this.endOfClosed()) : undefined
    if (this.failure !== undefined) return this.fail(this.failure.error)
    if (result !== undefined) return Promise.resolve(result)
    return new Promise((resolve, reject) => {
      if (this.waiting.push({ resolve, reject }) === 1) this.options.keepAlive.hold()
    })
  }

  return(): Promise<IteratorResult<RunEvent>> {
    this.finish()
    const end: IteratorResult<RunEvent> = { value: undefined, done: true }
    if (this.waiting.length > 0) this.options.keepAlive.release()
    for (const { resolve } of this.waiting.splice(0)) resolve(end)
    return Promise.resolve(end)
  }

  private deliver(): void {
    while (this.waiting.length > 0) {
      const result = this.take() ?? this.endOfClosed()
      if (result === undefined) return
      this.waiting.shift()?.resolve(result)
      if (this.waiting.length === 0) this.options.keepAlive.release()
    }
  }

  private take(): IteratorResult<RunEvent> | undefined {
    if (this.isDone) return { value: undefined, done: true }
    const { runId } = this.parts
    for (let next = this.nextShown(); next !== undefined; next = this.nextShown()) {
      const { event } = next
      if (event === undefined) continue
      const isLast = runId !== null && isEnd(event, runId)
      if (isLast) this.finish()
      if (event.seq > this.options.after) return { value: event, done: false }
      if (isLast) return { value: undefined, done: true }
    }
    return undefined
  }

  /** The next event, as the view shows it; undefined while there is none, or rows about it are being loaded. */
  private nextShown(): { readonly event: RunEvent | undefined } | undefined {
    if (this.held !== undefined && this.isReading) return undefined
    const next = this.held ?? this.nextEvent()
    this.held = undefined
    const { view } = this.parts
    if (next === undefined || view === null) return next === undefined ? undefined : { event: next }
    try {
      return { event: view.show(next) }
    } catch (error) {
      if (!(error instanceof MissingRows)) throw error
      this.held = next
      this.readThen(error.load())
      return undefined
    }
  }

  private nextEvent(): RunEvent | undefined {
    for (;;) {
      if (this.generation !== this.tree.generation) this.findPlace()
      const early = this.early[this.earlyIndex]
      if (early !== undefined) {
        this.earlyIndex++
        return early
      }
      const isNear = this.read >= this.tree.start
      const next = isNear ? this.nextBuffered() : undefined
      if (next !== undefined) return next
      if (!(isNear ? this.catchUp() : this.readBack())) return undefined
    }
  }

  private nextBuffered(): RunEvent | undefined {
    for (let next = this.tree.at(this.index); next !== undefined; next = this.tree.at(this.index)) {
      this.index++
      this.lastSeq = next.seq
      const isDurable = Number.isInteger(next.seq)
      if (isDurable) this.read = next.seq
      if (isDurable || !this.isBehind) return next
    }
    return undefined
  }

  /** All deltas so far are in what it gets now, and all later ones are behind its place in the buffer. False for nothing new. */
  private catchUp(): boolean {
    if (!this.isBehind) return false
    this.isBehind = false
    this.setEarly(this.parts.liveEvents?.() ?? [])
    return true
  }

  private setEarly(events: readonly RunEvent[]): void {
    this.early = events
    this.earlyIndex = 0
  }

  /** Reads one page of what the buffer does not hold. False while the store has not answered. */
  private readBack(): boolean {
    if (this.isReading || this.failure !== undefined) return false
    this.isBehind = this.parts.liveEvents !== undefined
    const { read, tree } = this
    const page = this.options.store.events(tree.rootId, read, Math.min(PAGE, tree.start - read))
    if (!(page instanceof Promise)) {
      this.takePage(page)
      return true
    }
    this.readThen(page.then((rows) => this.takePage(rows)))
    return false
  }

  /** Goes on when something was read. */
  private readThen(read: Promise<void>): void {
    this.isReading = true
    read.then(
      () => this.readOn(),
      (error: unknown) => this.failWaiting(error),
    )
  }

  /** A page is empty where the tree was deleted. */
  private takePage(rows: readonly EventRow[]): void {
    this.setEarly(rows.map(toEvent))
    this.read = rows.at(-1)?.seq ?? this.tree.start
  }

  private readOn(): void {
    this.isReading = false
    this.deliver()
  }

  private failWaiting(error: unknown): void {
    this.isReading = false
    this.failure = { error }
    const [first] = this.waiting.splice(0, 1)
    if (first === undefined) return
    this.options.keepAlive.release()
    first.reject(error)
    this.finish()
    for (const { resolve } of this.waiting.splice(0)) resolve({ value: undefined, done: true })
  }

  private fail(error: unknown): Promise<never> {
    this.failure = undefined
    this.finish()
    return Promise.reject(error)
  }

  private findPlace(): void {
    this.generation = this.tree.generation
    this.index = this.tree.indexAfter(this.lastSeq)
  }

  private endOfClosed(): IteratorResult<RunEvent> | undefined {
    if (!this.tree.isClosed || this.isReading) return undefined
    this.finish()
    return { value: undefined, done: true }
  }

  private finish(): void {
    if (this.isDone) return
    this.isDone = true
    this.stopListening()
    this.options.feeds.leave(this.tree.rootId)
  }
}

const PAGE = 1_000

function isEnd(event: RunEvent, runId: Id): boolean {
  return event.type === 'run-end' && event.runId === runId
}

function firstWanted({ after }: FollowOptions, { afterSeq }: Turn): number {
  return Math.max(Math.floor(after), afterSeq)
}

/** The error for a deleted run. A memory store also drops old ended trees. */
async function deletedError({ store, runId }: FollowOptions): Promise<NotFoundError> {
  const error = await notFound(store, 'run', runId)
  if (error.details['deleted'] !== undefined) return error
  const message = `The run ${runId} is no longer in this store. A memory store keeps the newest ended trees: see memoryStore({ keep }).`
  return new NotFoundError('not_found', message, { details: { runId } })
}
