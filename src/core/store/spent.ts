import type { Spent } from '../graph/commit.ts'
import { addUsage } from '../graph/content.ts'

/** The usage of an owner on a day, summed over all trees, deleted ones included. */
export type DayUsage = Spent

export interface SpentQuery {
  /** Only of this owner. */
  readonly owner?: string
  /** The first day and the last, in UTC: `2026-11-17`. */
  readonly from: string
  readonly to: string
}

/** Sums with the same key are one. */
export function spentKey({ owner, day, agent, model }: Spent): string {
  return JSON.stringify([owner, day, agent, model])
}

export function addSpent(a: Spent, b: Spent): Spent {
  return {
    ...a,
    runs: a.runs + b.runs,
    modelCalls: a.modelCalls + b.modelCalls,
    usage: addUsage(a.usage, b.usage),
  }
}
