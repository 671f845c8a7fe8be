// How components read a tree: `useTree` gives the source, `TreePlace` hands it down, `useOfTree` reads a part of it.

import { runOf, type TreeNode, type TreeState, treeOf } from 'legate/client'
import { createContext, useContext, useEffect, useState, useSyncExternalStore } from 'react'
import { holdTree, releaseTree, type TreeSource, type TreeStore } from './tree-store.ts'
import type { ConversationTree, RunTree } from './types.ts'

/** The tree that a conversation belongs to, by the id of its root; null before the first look. */
export function useTree(rootId: string | undefined): TreeStore | null {
  const [store, setStore] = useState<TreeStore | null>(null)
  useEffect(() => {
    if (rootId === undefined) return
    setStore(holdTree(rootId))
    return () => {
      releaseTree(rootId)
      setStore(null)
    }
  }, [rootId])
  return store
}

const Place = createContext<TreeSource | null>(null)

/** Gives the tree to everything inside: `<TreePlace value={source}>`. */
export const TreePlace = Place.Provider

export function useTreeSource(): TreeSource {
  const source = useContext(Place)
  if (source === null) throw new Error('A part of a tree needs <TreePlace> around it.')
  return source
}

/** A part of the tree. `read` must give the same value, or the same object, while nothing has changed. */
export function useOfTree<Value>(read: (state: TreeState) => Value): Value {
  const { subscribe, get } = useTreeSource()
  const snapshot = () => read(get())
  return useSyncExternalStore(subscribe, snapshot, snapshot)
}

export function useNode(nodeId: string): TreeNode | undefined {
  return useOfTree((state) => state.nodes.get(nodeId))
}

export function useRunState(runId: string) {
  return useOfTree((state) => state.runs.get(runId))
}

export function useConversationTree(conversationId: string): ConversationTree | undefined {
  return useOfTree((state) => treeOf(state, conversationId, { limitTurns: 10_000 }))
}

/** A run with all that it delegated. The same object while nothing in it has changed. */
export function useRunTree(runId: string): RunTree | undefined {
  return useOfTree((state) => runOf(state, runId))
}
