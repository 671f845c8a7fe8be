// The tree as it was: its stored events up to one of them, and nothing more. Nothing is run or asked for.

import { emptyTree, reduceTree, type TreeState } from 'legate/client'
import { useMemo, useSyncExternalStore } from 'react'
import type { TreeSource, TreeStore } from '../../data/tree-store.ts'
import type { DurableEvent } from '../../data/types.ts'

/** How far apart kept states are: going back costs so many events at most. */
const EVERY = 256

/** States of one tree at any of its events. */
class PastStates {
  private readonly kept: TreeState[] = [emptyTree()]

  /** The state after the first `seq` events. */
  at(events: readonly DurableEvent[], seq: number): TreeState {
    const near = Math.min(Math.floor(seq / EVERY), this.kept.length - 1)
    let state = this.kept[near] ?? emptyTree()
    for (let at = near * EVERY; at < seq; at++) {
      const event = events[at]
      if (event !== undefined) state = reduceTree(state, event)
      if ((at + 1) % EVERY === 0 && this.kept.length === (at + 1) / EVERY) this.kept.push(state)
    }
    return state
  }
}

/** The tree at an event; null where it is the last one, and the tree is as it is. */
export function usePast(store: TreeStore | null, seq: number | null): TreeSource | null {
  const states = useMemo(() => new PastStates(), [store])
  return useMemo(() => {
    if (store === null || seq === null) return null
    const state = states.at(store.events, seq)
    return { rootId: store.rootId, isPast: true, subscribe: nobody, get: () => state }
  }, [store, states, seq])
}

/** The same tree, with what its head says of the moment. */
export function withMoment(past: TreeSource | null, at: number, usd: number | null): TreeSource | null {
  return past === null ? null : { ...past, moment: { at, usd } }
}

/** How many events of a tree are known. */
export function useLastSeq(store: TreeStore | null): number {
  const last = () => store?.get().seq ?? 0
  return useSyncExternalStore(store?.subscribe ?? nobody, last, last)
}

/** Who never tells of a change. */
export function nobody(): () => void {
  return () => undefined
}
