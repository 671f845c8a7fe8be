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
  private position = 0
  private isDone = false
  private waiting: ((result: IteratorResult<RunEvent>) => void) | undefined
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
    const result = this.take() ?? this.endOfClosed() ?? this.endOfForgotten()
    if (result !== undefined) return Promise.resolve(result)
    return new Promise((resolve) => {
      this.waiting = resolve
    })
  }

  return(): Promise<IteratorResult<RunEvent>> {
    this.finish()
    const end: IteratorResult<RunEvent> = { value: undefined, done: true }
    this.waiting?.(end)
    this.waiting = undefined
    return Promise.resolve(end)
  }

  private deliver(): void {
    if (this.waiting === undefined) return
    const result = this.take() ?? this.endOfClosed()
    if (result === undefined) return
    const resolve = this.waiting
    this.waiting = undefined
    resolve(result)
  }

  private take(): IteratorResult<RunEvent> | undefined {
    if (this.isDone) return { value: undefined, done: true }
    for (let found = this.tree.at(this.position); found !== undefined; found = this.tree.at(this.position)) {
      this.position = found.next
      const { event } = found
      if (!this.isFamily(event)) continue
      const isLast = event.type === 'run-end' && event.turnId === this.options.runId
      if (isLast) this.finish()
      if (event.seq > this.options.after) return { value: event, done: false }
      if (isLast) return { value: undefined, done: true }
    }
    return undefined
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
