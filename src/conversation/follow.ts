import type { RunEvent } from '../graph/event.ts'
import type { Id } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'
import type { TreeFeed } from './feed.ts'
import type { Feeds } from './feeds.ts'

export interface FollowOptions {
  readonly store: Store
  readonly feeds: Feeds
  readonly rootId: Id
  readonly runId: Id
  /** Only events with a greater sequence number. */
  readonly after: number
}

/** The events of one run and of what it delegated, in order, from the beginning or after `seq`; ends with the run. */
export function follow(options: FollowOptions): AsyncIterableIterator<RunEvent> {
  return new Follower(options)
}

class Follower implements AsyncIterableIterator<RunEvent> {
  private readonly options: FollowOptions
  private readonly family: Map<Id, boolean>
  private readonly tree: TreeFeed
  private index = 0
  private generation = 0
  private lastSeq = 0
  private isDone = false
  private readonly waiting: ((result: IteratorResult<RunEvent>) => void)[] = []
  private readonly stopListening: () => void

  constructor(options: FollowOptions) {
    this.options = options
    this.family = new Map([[options.runId, true]])
    this.tree = options.feeds.enter(options.rootId)
    this.stopListening = this.tree.onMore(() => this.deliver())
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<RunEvent>> {
    const isFirst = this.waiting.length === 0
    const result = isFirst ? (this.take() ?? this.endOfClosed() ?? this.endOfForgotten()) : undefined
    if (result !== undefined) return Promise.resolve(result)
    return new Promise((resolve) => {
      this.waiting.push(resolve)
    })
  }

  return(): Promise<IteratorResult<RunEvent>> {
    this.finish()
    const end: IteratorResult<RunEvent> = { value: undefined, done: true }
    for (const resolve of this.waiting.splice(0)) resolve(end)
    return Promise.resolve(end)
  }

  private deliver(): void {
    while (this.waiting.length > 0) {
      const result = this.take() ?? this.endOfClosed()
      if (result === undefined) return
      this.waiting.shift()?.(result)
    }
  }

  private take(): IteratorResult<RunEvent> | undefined {
    if (this.isDone) return { value: undefined, done: true }
    if (this.generation !== this.tree.generation) this.findPlace()
    for (let event = this.tree.at(this.index); event !== undefined; event = this.tree.at(this.index)) {
      this.index++
      this.lastSeq = event.seq
      if (!this.isFamily(event)) continue
      const isLast = event.type === 'run-end' && event.turnId === this.options.runId
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

  /** A memory store may have forgotten an ended tree: then there is nothing more to come. */
  private endOfForgotten(): IteratorResult<RunEvent> | undefined {
    if (this.options.store.turn(this.options.runId) !== undefined) return undefined
    this.finish()
    return { value: undefined, done: true }
  }

  private finish(): void {
    if (this.isDone) return
    this.isDone = true
    this.stopListening()
    this.options.feeds.leave(this.options.rootId)
  }

  /** Is the event of this run or of a run it started, at any depth? */
  private isFamily(event: RunEvent): boolean {
    const known = this.family.get(event.turnId)
    if (known !== undefined) return known
    const link = this.options.store.link(event.turnId)
    const host = link?.hostTurnId ?? event.parentId
    const isOurs = host !== null && this.isFamily({ ...event, turnId: host, parentId: null })
    this.family.set(event.turnId, isOurs)
    return isOurs
  }
}
