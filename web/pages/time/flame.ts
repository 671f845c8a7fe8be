// Where time, tokens and dollars of a run went: boxes within boxes. The width of a box is the sum of those in it.

import type { Timeline } from '../../data/types.ts'
import { type BarKind, nameOf, spanBars } from './bars.ts'

export type Metric = 'time' | 'tokens' | 'usd'

/** A box: a run with what it did and whom it asked, or one thing that it did. */
export interface Box {
  readonly name: string
  readonly kind: BarKind | 'agent'
  readonly value: number
  readonly nodeId: string | null
  readonly conversationId: string
  readonly parts: readonly Box[]
}

/** What nodes had used by a moment. */
export interface Used {
  readonly tokens: number
  /** US dollars; null where a price is unknown. */
  readonly usd: number | null
}

export type UsedBy = (nodeId: string) => Used

export interface FlameParts {
  readonly metric: Metric
  /** Only what had happened by then counts. */
  readonly now: number
  readonly usedBy: UsedBy
}

/** The box of a run, as far as things had happened. */
export function boxOf(run: Timeline, parts: FlameParts): Box {
  const { conversationId, agent } = run
  const boxes = run.spans.flatMap((span) => {
    const begun = span.runs.filter(({ start }) => start <= parts.now)
    const own = parts.metric === 'time' ? timeBoxes(span, parts.now) : usedBoxes(span, parts)
    return [...own.map((box) => ({ ...box, conversationId })), ...begun.map((child) => boxOf(child, parts))]
  })
  const value = boxes.reduce((sum, box) => sum + box.value, 0)
  return {
    name: agent,
    kind: 'agent',
    value,
    nodeId: null,
    conversationId,
    parts: boxes.filter((box) => box.value > 0),
  }
}

type OwnBox = Omit<Box, 'conversationId'>

/** Waiting for a child is the width of the child. */
function timeBoxes(span: Timeline['spans'][number], now: number): OwnBox[] {
  return spanBars(span, now)
    .filter(({ kind }) => kind !== 'wait' || span.runs.length === 0)
    .map(({ kind, name, from, to, nodeId }) => ({ kind, name, value: to - from, nodeId, parts: [] }))
}

function usedBoxes(span: Timeline['spans'][number], { metric, usedBy }: FlameParts): OwnBox[] {
  const { tokens, usd } = usedBy(span.nodeId)
  const value = metric === 'tokens' ? tokens : (usd ?? 0)
  return value === 0 ? [] : [{ kind: 'model', name: nameOf(span), value, nodeId: span.nodeId, parts: [] }]
}

/** How many boxes stand one in another. */
export function depthOf({ parts }: Box): number {
  return 1 + Math.max(0, ...parts.map(depthOf))
}
