// The state of one tree, from its events, for as many components as look at it.
//
// Stays true:
// - Events are reduced as they come, and components hear of them once per frame at most.
// - While old events come in, components hear of them a few times a second: nobody can read faster.

import { emptyTree, reduceTree, type TreeState } from 'legate/client'
import { type TreeWatch, watchTree } from './feed.ts'
import type { DurableEvent, RunEvent } from './types.ts'

/** Where components read a tree: as it is now, or as it was. */
export interface TreeSource {
  readonly rootId: string
  readonly subscribe: (listener: () => void) => () => void
  readonly get: () => TreeState
  /** True for a moment that is over: nothing can be answered in it. */
  readonly isPast: boolean
  /** When that moment was, and the dollars that were spent by then. */
  readonly moment?: { readonly at: number; readonly usd: number | null }
}

/** Events older than this, when they arrive, are history. */
const OLD_MS = 5_000
const HISTORY_EVERY_MS = 400
const HIDDEN_EVERY_MS = 200
/** History that comes in pieces has no longer pauses. */
const QUIET_MS = 1_000

export class TreeStore implements TreeSource, TreeWatch {
  readonly rootId: string
  readonly isPast = false
  /** The stored events, in order. The array grows; read it after `subscribe` has told of a change. */
  readonly events: DurableEvent[] = []
  private state: TreeState = emptyTree()
  private shown: TreeState = this.state
  private readonly listeners = new Set<() => void>()
  private isScheduled = false
  private toldAt = 0
  private tookHistoryAt = Number.NEGATIVE_INFINITY

  constructor(rootId: string) {
    this.rootId = rootId
  }

  readonly get = (): TreeState => this.shown

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => {
      this.listeners.delete(listener)
    }
  }

  seq(): number {
    return this.state.seq
  }

  take(event: RunEvent): void {
    const before = this.state
    this.state = reduceTree(before, event)
    if (this.state === before) return
    if (this.state.seq > before.seq) this.events.push(event as DurableEvent)
    const isHistory = Date.now() - event.at > OLD_MS
    if (isHistory) this.tookHistoryAt = performance.now()
    if (!this.isScheduled) this.schedule(isHistory)
  }

  /** True when what happened before has been read: what comes now happens now. */
  readonly isCaughtUp = (): boolean => performance.now() - this.tookHistoryAt > QUIET_MS

  /** Changes the state by something that no event tells. */
  change(by: (state: TreeState) => TreeState): void {
    this.state = by(this.state)
    if (!this.isScheduled) this.schedule(false)
  }

  reset(): void {
    this.state = emptyTree()
    this.events.length = 0
    if (!this.isScheduled) this.schedule(false)
  }

  private schedule(isHistory: boolean): void {
    this.isScheduled = true
    const wait = isHistory ? Math.max(0, this.toldAt + HISTORY_EVERY_MS - performance.now()) : 0
    if (wait > 0) setTimeout(this.tell, wait)
    else if (document.visibilityState === 'visible') requestAnimationFrame(this.tell)
    else setTimeout(this.tell, HIDDEN_EVERY_MS)
  }

  private readonly tell = (): void => {
    this.isScheduled = false
    this.toldAt = performance.now()
    this.shown = this.state
    for (const listener of [...this.listeners]) listener()
  }
}

interface HeldTree {
  readonly store: TreeStore
  readonly leave: () => void
  users: number
  timer: ReturnType<typeof setTimeout> | undefined
}

/** A tree that nobody looks at is kept for a moment: the next view of the same run needs it again. */
const KEEP_MS = 20_000
const held = new Map<string, HeldTree>()

/** The store of a tree, by the id of its root conversation. Give it back with `releaseTree`. */
export function holdTree(rootId: string): TreeStore {
  const known = held.get(rootId)
  if (known !== undefined) {
    clearTimeout(known.timer)
    known.users++
    return known.store
  }
  const store = new TreeStore(rootId)
  held.set(rootId, { store, leave: watchTree(rootId, store), users: 1, timer: undefined })
  return store
}

export function releaseTree(rootId: string): void {
  const known = held.get(rootId)
  if (known === undefined || --known.users > 0) return
  known.timer = setTimeout(() => {
    held.delete(rootId)
    known.leave()
  }, KEEP_MS)
}
