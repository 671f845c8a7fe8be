// One conversation as pages show it: what it is, its tree, what it costs, and why it waits.

import { useEffect, useState } from 'react'
import { client } from './client.ts'
import { reload, useRequest } from './request.ts'
import { useTree } from './tree.ts'
import type { TreeStore } from './tree-store.ts'
import type { ConversationAnswer, RunLook, UsageStats, Why } from './types.ts'

/** A conversation that a page shows; `store` is null until its tree is followed. */
export interface ShownRun {
  readonly conversationId: string
  readonly conversation: ConversationAnswer | undefined
  readonly store: TreeStore | null
  readonly error: unknown
  readonly reload: () => void
}

export function useRun(conversationId: string): ShownRun {
  const key = `conversation ${conversationId}`
  const { value: conversation, error } = useRequest(key, () => client.conversation(conversationId).get())
  const store = useTree(conversation?.rootId)
  return { conversationId, conversation, store, error, reload: () => reload(key) }
}

const AGAIN_MS = 1_500

/** Counts up when the tree has changed, but so often at most. */
function useSlowly(store: TreeStore | null): number {
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    if (store === null) return
    let timer: ReturnType<typeof setTimeout> | undefined
    let seen = store.get().seq
    const leave = store.subscribe(() => {
      if (timer !== undefined || store.get().seq === seen) return
      timer = setTimeout(() => {
        timer = undefined
        seen = store.get().seq
        setTurn((was) => was + 1)
      }, AGAIN_MS)
    })
    return () => {
      clearTimeout(timer)
      leave()
    }
  }, [store])
  return turn
}

/** Asks again for everything below a key, a moment after the tree has changed. */
function useFollowing(store: TreeStore | null, prefix: string): void {
  const turn = useSlowly(store)
  useEffect(() => {
    if (turn > 0) reload(prefix)
  }, [turn, prefix])
}

/** Dollars and tokens of the tree, by conversation. */
export function useTreeUsage(store: TreeStore | null): UsageStats | undefined {
  const rootId = store?.rootId ?? null
  const key = rootId === null ? null : `tree ${rootId} usage`
  useFollowing(store, `tree ${rootId} `)
  return useRequest(key, () => client.conversation(rootId ?? '').usageStats({ of: 'tree' })).value
}

/** Why a run does not go on, or what it is doing. */
export function useWhy(rootId: string, runId: string | null): Why | undefined {
  return useRequest(runId === null ? null : `tree ${rootId} why ${runId}`, () => client.why(runId ?? '')).value
}

/** The run with its input and its limits. */
export function useLook(rootId: string, runId: string | null): RunLook | undefined {
  return useRequest(runId === null ? null : `tree ${rootId} look ${runId}`, () => client.look(runId ?? '')).value
}
