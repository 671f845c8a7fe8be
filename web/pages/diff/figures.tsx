import type { ReactNode } from 'react'
import type { TimelineRun } from '../../data/types.ts'
import { money, span, tokens, total } from '../../words/format.ts'
import type { Comparison } from './sides.ts'

/** Five figures of the second run, and by how much they differ from the first. */
export function FigureRow({ comparison }: { readonly comparison: Comparison }): ReactNode {
  const { diff, first, second } = comparison
  const { changes, same } = diff
  return (
    <dl className="delta">
      <Figure label="Differ" value={String(changes.length)} change={`of ${changes.length + same} nodes`} />
      <Figure
        label="Tokens"
        value={tokens(total(second.timeline.usage))}
        change={signed(total(second.timeline.usage) - total(first.timeline.usage), tokens)}
      />
      <Figure
        label="Dollars"
        value={money(second.timeline.usd)}
        change={signed(difference(first.timeline.usd, second.timeline.usd), money)}
      />
      <Figure
        label="Time"
        value={diff.second.durationMs === null ? 'not over' : span(diff.second.durationMs)}
        change={signed(difference(diff.first.durationMs, diff.second.durationMs), span)}
      />
      <Figure
        label="Subagents"
        value={String(subagentsIn(second.timeline))}
        change={signed(subagentsIn(second.timeline) - subagentsIn(first.timeline), String)}
      />
    </dl>
  )
}

interface FigureProps {
  readonly label: string
  readonly value: string
  readonly change: string | null
}

function Figure({ label, value, change }: FigureProps): ReactNode {
  return (
    <div>
      <dt className="meta">{label}</dt>
      <dd className="v">
        {value}
        {change === null ? null : <small>{change}</small>}
      </dd>
    </div>
  )
}

/** All runs below a run. */
function subagentsIn({ spans }: TimelineRun): number {
  return spans.flatMap(({ runs }) => runs).reduce((sum, run) => sum + 1 + subagentsIn(run), 0)
}

/** Null where one of the two is not known. */
export function difference(first: number | null, second: number | null): number | null {
  return first === null || second === null ? null : second - first
}

/** `+310`, `−3.0 s`; null where the difference is too small to be shown. */
export function signed(amount: number | null, words: (amount: number) => string): string | null {
  const size = words(Math.abs(amount ?? 0))
  if (amount === null || size.startsWith('<') || !/[1-9]/.test(size)) return null
  return `${amount > 0 ? '+' : '−'}${size}`
}
