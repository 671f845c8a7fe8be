// What the thread page remembers beside the tree: what is open, what somebody wants to see, which dialog is there.

import { createContext, type ReactNode, useContext, useSyncExternalStore } from 'react'
import type { UsageStats } from '../../../data/types.ts'
import { Cell } from '../../../window/cell.ts'

/** A dialog about a node. */
export interface NodeDialog {
  readonly kind: 'fork' | 'edit' | 'versions' | 'saw' | 'explain'
  readonly nodeId: string
}

/** One thread page. It outlives the rows, which come and go as somebody scrolls. */
export class ThreadState {
  readonly dialog = new Cell<NodeDialog | null>(null)
  /** The nodes that must be on the page, however far away: the way to one that a link names. */
  readonly wanted = new Cell<ReadonlySet<string>>(new Set())
  private readonly open = new Map<string, boolean>()
  private readonly isCaughtUp: () => boolean
  private readonly listeners = new Set<() => void>()

  /** `isCaughtUp`: whether what is seen is how things are, and not how they were while history is read. */
  constructor(isCaughtUp: () => boolean) {
    this.isCaughtUp = isCaughtUp
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => {
      this.listeners.delete(listener)
    }
  }

  /** What is open stays open, and what is folded stays folded, whatever its first state was by. */
  isOpen(id: string, first: boolean): boolean {
    const known = this.open.get(id)
    if (known !== undefined) return known
    if (this.isCaughtUp()) this.open.set(id, first)
    return first
  }

  setOpen(ids: Iterable<string>, isOpen: boolean): void {
    for (const id of ids) this.open.set(id, isOpen)
    for (const listener of [...this.listeners]) listener()
  }

  foldAll(): void {
    this.setOpen([...this.open.keys()], false)
  }
}

interface ThreadPlace {
  readonly thread: ThreadState
  /** Where the thread scrolls; null while it is not there yet. */
  readonly scroller: HTMLElement | null
  readonly usage: UsageStats | undefined
  readonly owner: string | null
  readonly conversationId: string
  /** Draws the thread of a run: the rows of a call show those of its children. */
  readonly renderRun: (run: { readonly runId: string; readonly depth: number; readonly asker: string }) => ReactNode
}

const Place = createContext<ThreadPlace | null>(null)
export const ThreadProvider = Place.Provider

export function useThread(): ThreadPlace {
  const place = useContext(Place)
  if (place === null) throw new Error('A row of a thread needs <ThreadProvider> around it.')
  return place
}

/** Whether a row is open, and how to change it. */
export function useFold(id: string, first: boolean): readonly [isOpen: boolean, toggle: () => void] {
  const { thread } = useThread()
  const get = () => thread.isOpen(id, first)
  const isOpen = useSyncExternalStore(thread.subscribe, get, get)
  return [isOpen, () => thread.setOpen([id], !isOpen)]
}
