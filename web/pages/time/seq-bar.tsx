// The slider over events: it drives everything on the page, and runs nothing.

import { memo, type ReactNode, useEffect, useMemo, useState } from 'react'
import type { DurableEvent } from '../../data/types.ts'
import { Button, IconButton } from '../../parts/button.tsx'
import { clock } from '../../words/format.ts'
import { type Mark, markOf } from './event-words.ts'

interface SeqBarProps {
  readonly events: readonly DurableEvent[]
  /** How many events there are, and how many of them count; null: all of them, and those that come. */
  readonly last: number
  readonly seq: number | null
  readonly onTravel: (seq: number | null) => void
}

const PLAY_MS = 50
const PLAY_STEPS = 160

export function SeqBar({ events, last, seq, onTravel }: SeqBarProps): ReactNode {
  const at = seq ?? last
  const travel = (to: number) => onTravel(to >= last ? null : Math.max(1, to))
  const play = usePlay(at, last, travel)
  const words = seq === null ? `now, ${clock(Date.now())}` : `as it was at ${clock(events[at - 1]?.at ?? 0)}`
  return (
    <div className="seq">
      <div className="row">
        <IconButton icon="first" label="One event back" disabled={at <= 1} onClick={() => travel(at - 1)} />
        <IconButton icon={play.isOn ? 'stop' : 'play'} label={play.isOn ? 'Stop' : 'Play'} onClick={play.toggle} />
        <IconButton icon="last" label="One event on" disabled={seq === null} onClick={() => travel(at + 1)} />
      </div>
      <div className="seq-bar">
        <Ticks events={events} last={last} />
        <input
          type="range"
          min={1}
          max={Math.max(1, last)}
          value={at}
          aria-label="Event"
          aria-valuetext={`Event ${at} of ${last}, ${words}`}
          onChange={(event) => travel(Number(event.target.value))}
        />
      </div>
      <div className="row">
        <div className="seq-t">
          <b>
            Event {at} of {last}
          </b>
          <span>{words}</span>
        </div>
        <Button isSmall disabled={seq === null} onClick={() => onTravel(null)}>
          Live
        </Button>
      </div>
    </div>
  )
}

/** From here to the end, or from the beginning where this is the end. */
function usePlay(at: number, last: number, travel: (to: number) => void) {
  const [isOn, setOn] = useState(false)
  useEffect(() => {
    if (!isOn) return
    if (at >= last) return setOn(false)
    const timer = setTimeout(() => travel(at + Math.ceil(last / PLAY_STEPS)), PLAY_MS)
    return () => clearTimeout(timer)
  })
  const toggle = () => {
    if (!isOn && at >= last) travel(1)
    setOn(!isOn)
  }
  return { isOn, toggle }
}

const MOST_TICKS = 400
const RANK: Readonly<Record<Mark, number>> = { plain: 0, agent: 1, failed: 2, needs: 3 }

/** One tick for each event, or for several: then the one that stands out most. */
const Ticks = memo(function Ticks({ events, last }: Pick<SeqBarProps, 'events' | 'last'>): ReactNode {
  const marks = useMemo(() => marksOf(events.slice(0, last)), [events, last])
  return (
    <svg viewBox="0 0 1000 16" preserveAspectRatio="none" aria-hidden="true">
      {marks.map((mark, at) => (
        <rect
          key={at}
          className={`tick tick-${mark}`}
          x={(at / Math.max(1, marks.length - 1)) * 998}
          width={mark === 'plain' ? 1 : 2}
          y={mark === 'plain' ? 9 : 1}
          height={mark === 'plain' ? 5 : 13}
        />
      ))}
    </svg>
  )
})

function marksOf(events: readonly DurableEvent[]): Mark[] {
  const many = Math.min(MOST_TICKS, events.length)
  const marks = Array.from({ length: many }, (): Mark => 'plain')
  for (const [at, event] of events.entries()) {
    const place = Math.floor((at / events.length) * many)
    const mark = markOf(event)
    if (RANK[mark] > RANK[marks[place] ?? 'plain']) marks[place] = mark
  }
  return marks
}
