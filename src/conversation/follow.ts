import { NotFoundError } from '../base/error.ts'
import { after, type Later } from '../base/maybe.ts'
import { type RunEvent, toEvent } from '../graph/event.ts'
import { type TreeReader, treeWith } from '../graph/reader.ts'
import type { Id, Turn } from '../graph/rows.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { KeepAlive } from './ends.ts'
import type { Feeds, TreeFeed } from './feeds.ts'
import { type EventScope, EventView } from './fields/view.ts'
import { pages } from './pages.ts'

export interface FollowOptions {
  readonly store: Store
  readonly feeds: Feeds
  readonly keepAlive: KeepAlive
  readonly runId: Id
  /** Only events with a greater sequence number. */
  readonly after: number
  readonly sees?: EventScope
}

/**
 * The events of one run and of its delegations, in order, from the beginning or after `seq`; ends with the run. It
 * reads only the part of a tree's log between the run's first event and its last.
 */
export function follow(options: FollowOptions): Later<AsyncIterableIterator<RunEvent>> {
  return after(treeWith(options.store, options.runId), (tree) => followIn(tree, options))
}

function followIn(tree: TreeReader, options: FollowOptions): Later<AsyncIterableIterator<RunEvent>> {
  const { runId, sees, feeds } = options
  const turn = tree.turn(runId)
  if (turn === undefined) return refuseDeleted(options)
  const view = new EventView(tree, runId, sees)
  if (turn.state === 'ended') return readEnded(options, view, turn)
  const from = firstWanted(options, turn)
  return after(feeds.enter(turn.rootId, from), (feed) => new Follower(options, { view, feed, after: from }))
}

async function refuseDeleted(options: FollowOptions): Promise<never> {
  throw await deletedError(options)
}

/** Reads a run that is over page by page, and keeps nothing of it. */
async function* readEnded(options: FollowOptions, view: EventView, turn: Turn): AsyncGenerator<RunEvent, void> {
  for await (const events of pages(options.store, turn.rootId, { after: firstWanted(options, turn) })) {
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

interface FollowParts {
  readonly view: EventView
  readonly feed: TreeFeed
  /** The last event that nobody wants. */
  readonly after: number
}

class Follower implements AsyncIterableIterator<RunEvent> {
  private readonly options: FollowOptions
  private readonly view: EventView
  private readonly tree: TreeFeed
  private index = 0
  private generation = 0
  private lastSeq = 0
  private isDone = false
  private readonly waiting: ((result: IteratorResult<RunEvent>) => void)[] = []
  private readonly stopListening: () => void

  constructor(options: FollowOptions, { view, feed, after }: FollowParts) {
    this.options = options
    this.view = view
    this.tree = feed
    this.generation = this.tree.generation
    this.index = this.tree.indexAfter(after)
    this.lastSeq = after
    this.stopListening = this.tree.onMore(() => this.deliver())
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<RunEvent>> {
    const isFirst = this.waiting.length === 0
    const result = isFirst ? (this.take() ?? this.endOfClosed()) : undefined
    if (result !== undefined) return Promise.resolve(result)
    return new Promise((resolve) => {
      if (this.waiting.push(resolve) === 1) this.options.keepAlive.hold()
    })
  }

  return(): Promise<IteratorResult<RunEvent>> {
    this.finish()
    const end: IteratorResult<RunEvent> = { value: undefined, done: true }
    if (this.waiting.length > 0) this.options.keepAlive.release()
    for (const resolve of this.waiting.splice(0)) resolve(end)
    return Promise.resolve(end)
  }

  private deliver(): void {
    while (this.waiting.length > 0) {
      const result = this.take() ?? this.endOfClosed()
      if (result === undefined) return
      this.waiting.shift()?.(result)
      if (this.waiting.length === 0) this.options.keepAlive.release()
    }
  }

  private take(): IteratorResult<RunEvent> | undefined {
    if (this.isDone) return { value: undefined, done: true }
    if (this.generation !== this.tree.generation) this.findPlace()
    for (let next = this.tree.at(this.index); next !== undefined; next = this.tree.at(this.index)) {
      this.index++
      this.lastSeq = next.seq
      const event = this.view.show(next)
      if (event === undefined) continue
      const isLast = isEnd(event, this.options.runId)
      if (isLast) this.finish()
      if (event.seq > this.options.after) return { value: event, done: false }
      if (isLast) return { value: undefined, done: true }
    }
    return undefined
  }

  private findPlace(): void {
    this.generation = this.tree.generation
    this.index = this.tree.indexAfter(this.lastSeq)
  }

  private endOfClosed(): IteratorResult<RunEvent> | undefined {
    if (!this.tree.isClosed) return undefined
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
