import type { ReactNode } from 'react'
import { useInboxItems, useOpenRuns } from '../../data/server.ts'
import { Shape } from '../../parts/state.tsx'
import { type Shown, shownInfo, shownItem } from '../../words/shown.ts'
import { Card } from './card.tsx'

const LINES: readonly (readonly [Shown, string])[] = [
  ['working', 'being worked on'],
  ['queued', 'ready, waits for a worker'],
  ['waiting', 'waiting for a subagent or a timer'],
  ['needs', 'waits for a person'],
  ['stalled', 'nobody has its agent'],
]

/** How many open runs stand where. */
export function QueueCard(): ReactNode {
  const runs = useOpenRuns()
  const items = useInboxItems().value ?? []
  return (
    <Card title="Queue" width={4} asked={runs}>
      {(open) => {
        const shown = open.map(shownInfo)
        const counts = { stalled: items.filter((item) => shownItem(item) === 'stalled').length }
        const numberOf = (state: Shown) =>
          state === 'stalled' ? counts.stalled : shown.filter((one) => one === state).length
        return (
          <ul className="q">
            {LINES.map(([state, words]) => (
              <li key={state}>
                <Shape state={state} isDecoration />
                <span>{words}</span>
                <b className="num">{numberOf(state)}</b>
              </li>
            ))}
          </ul>
        )
      }}
    </Card>
  )
}
