import type { RunTree, UsageStats } from '../data/types.ts'

/** Dollars of a run and of all that it delegated; null where a price is unknown, undefined while it is asked for. */
export function usdOfRun(run: RunTree, stats: UsageStats | undefined): number | null | undefined {
  if (stats === undefined) return undefined
  let sum = 0
  const seen = new Set<string>()
  const add = ({ conversationId, children }: RunTree): boolean => {
    const usd = seen.has(conversationId)
      ? 0
      : (stats.byLane[conversationId]?.usd ?? (conversationId in stats.byLane ? null : 0))
    seen.add(conversationId)
    if (usd === null) return false
    sum += usd
    return children.every(add)
  }
  return add(run) ? sum : null
}

/** Dollars of the model calls of a run itself. */
export function ownUsd(conversationId: string, stats: UsageStats | undefined): number | null | undefined {
  if (stats === undefined) return undefined
  return conversationId in stats.byLane ? (stats.byLane[conversationId]?.usd ?? null) : 0
}
