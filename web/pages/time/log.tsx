import type { ReactNode } from 'react'
import type { DurableEvent } from '../../data/types.ts'
import { Link } from '../../parts/link.tsx'
import { pathOfRun } from '../../window/router.ts'
import { clock } from '../../words/format.ts'
import { eventWords } from './event-words.ts'

const MOST_LINES = 14

/** What had happened last by a moment; the moment itself is the last line. */
export function Log({ events, seq }: { readonly events: readonly DurableEvent[]; readonly seq: number }): ReactNode {
  const shown = events.slice(Math.max(0, seq - MOST_LINES), seq)
  return (
    <ol className="log" aria-label="What happened">
      {shown.map((event) => (
        <li key={event.seq} className={event.seq === seq ? 'now' : undefined} data-seq={event.seq}>
          <span className="fig">{event.seq}</span>
          <span className="fig">{clock(event.at)}</span>
          <b className="cut">{event.path.at(-1)}</b>
          <Link className="cut words" to={pathOfRun(event.conversationId, '', event.nodeId ?? undefined)}>
            {eventWords(event)}
          </Link>
        </li>
      ))}
    </ol>
  )
}
