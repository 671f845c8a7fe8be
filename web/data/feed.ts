// The one stream of the tab: which trees went on, and the events of the trees that somebody looks at.
//
// Stays true:
// - There is one connection, however many components listen. Who begins or ends to watch a tree makes it anew, from where each
//   tree is.
// - A chain of events never holds the page for long: it pauses after a few milliseconds.

import { Cell, useCell } from '../window/cell.ts'
import { client, isUnauthenticated, messageOf, noteSession } from './client.ts'
import type { RunEvent, TreeChange } from './types.ts'

/** How the page stands with the server. */
export type Connection =
  | { readonly kind: 'connecting' | 'live' | 'resting' }
  | { readonly kind: 'lost'; readonly since: number; readonly retryAt: number; readonly reason: string }

/** Somebody who takes the events of a tree. */
export interface TreeWatch {
  /** The number of the last stored event that it has. */
  seq(): number
  take(event: RunEvent): void
  /** The tree is not what it was: all of it comes again. */
  reset(): void
}

const MOST_TREES = 16
const RESTART_MS = 30
const REST_AFTER_MS = 30_000
const MOST_WAIT_MS = 30_000
/** The longest that events are taken in one go. */
const SLICE_MS = 8

const connection = new Cell<Connection>({ kind: 'connecting' })

const watches = new Map<string, TreeWatch>()
const changeListeners = new Set<(change: TreeChange | null) => void>()
let abort: AbortController | null = null
let isBegun = false
/** Whether a connection has held before: then changes may have been missed in between. */
let hasConnected = false
let restartTimer: ReturnType<typeof setTimeout> | undefined
let restTimer: ReturnType<typeof setTimeout> | undefined

export function useConnection(): Connection {
  return useCell(connection)
}

const FIRST_MS = 400

/** Begins as soon as somebody watches a tree, or a moment later: so the first connection is mostly the right one. */
export function beginFeed(): void {
  if (watches.size > 0) return startFeed()
  clearTimeout(restartTimer)
  isBegun = true
  restartTimer = setTimeout(startFeed, FIRST_MS)
}

/** Begins, or begins again at once. */
export function startFeed(): void {
  clearTimeout(restartTimer)
  isBegun = true
  abort?.abort()
  abort = new AbortController()
  void readOn(abort.signal)
}

export function stopFeed(): void {
  clearTimeout(restartTimer)
  isBegun = false
  abort?.abort()
  abort = null
}

/** Takes the events of a tree, by the id of its root conversation. Gives the way to end it. */
export function watchTree(rootId: string, watch: TreeWatch): () => void {
  watches.set(rootId, watch)
  restartSoon()
  return () => {
    if (watches.get(rootId) !== watch) return
    watches.delete(rootId)
    restartSoon()
  }
}

/** Hears of each tree that went on; of null when changes may have been missed. */
export function onChange(listener: (change: TreeChange | null) => void): () => void {
  changeListeners.add(listener)
  return () => {
    changeListeners.delete(listener)
  }
}

function restartSoon(): void {
  if (!isBegun) return
  clearTimeout(restartTimer)
  restartTimer = setTimeout(startFeed, RESTART_MS)
}

async function readOn(signal: AbortSignal): Promise<void> {
  for (let attempt = 1; !signal.aborted; attempt++) {
    try {
      await readFeed(signal, () => {
        attempt = 1
      })
    } catch (error) {
      if (signal.aborted) return
      if (isUnauthenticated(error)) return noteSession(error)
      if (isGone(error)) forgetPlaces()
      const waitMs = Math.min(MOST_WAIT_MS, 500 * 2 ** Math.min(attempt, 8))
      lose(error, waitMs)
      await pause(waitMs, signal)
    }
  }
}

async function readFeed(signal: AbortSignal, heard: () => void): Promise<void> {
  const trees = Object.fromEntries([...watches].slice(0, MOST_TREES).map(([id, watch]) => [id, watch.seq()]))
  const onConnect = () => {
    heard()
    noteSession(null)
    connection.set({ kind: 'live' })
    if (hasConnected) for (const listener of [...changeListeners]) listener(null)
    hasConnected = true
  }
  const onReconnect = ({ waitMs, error }: { readonly waitMs: number; readonly error: unknown }) => lose(error, waitMs)
  let since = performance.now()
  for await (const item of client.feed({ trees, signal, onConnect, onReconnect })) {
    if (signal.aborted) return
    if (item.type === 'tree') watches.get(item.data.rootId)?.take(item.data.event)
    else for (const listener of [...changeListeners]) listener(item.type === 'change' ? item.data : null)
    if (performance.now() - since < SLICE_MS) continue
    await breathe()
    since = performance.now()
  }
}

function lose(error: unknown, waitMs: number): void {
  const known = connection.get()
  const since = known.kind === 'lost' ? known.since : Date.now()
  connection.set({ kind: 'lost', since, retryAt: Date.now() + waitMs, reason: messageOf(error) })
}

/** A tree was deleted, or has fewer events than we have seen: nothing of what we have of it counts. */
function isGone(error: unknown): boolean {
  const status = (error as { readonly status?: number }).status
  return status === 404 || status === 400
}

function forgetPlaces(): void {
  for (const watch of watches.values()) watch.reset()
}

/** Lets the browser paint and answer before it goes on. */
function breathe(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(null)
  })
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** A tab that nobody looks at holds no connection: browsers have few of them. */
export function restWhileHidden(): void {
  document.addEventListener('visibilitychange', () => {
    clearTimeout(restTimer)
    if (document.visibilityState === 'hidden') restTimer = setTimeout(rest, REST_AFTER_MS)
    else if (connection.get().kind === 'resting') startFeed()
  })
}

function rest(): void {
  stopFeed()
  connection.set({ kind: 'resting' })
}
