// The flame graph: where time, tokens or dollars went. The width of a box is its share of the run.

import type { ReactNode } from 'react'
import { hrefOf, navigate, pathOfRun } from '../../window/router.ts'
import { money, span, tokens } from '../../words/format.ts'
import { type Box, depthOf, type Metric } from './flame.ts'
import type { Reading } from './readout.tsx'
import { isHatched, KINDS } from './timeline.tsx'
import { useWidth } from './use-width.ts'

interface FlameGraphProps {
  readonly box: Box
  readonly metric: Metric
  readonly onRead: (reading: Reading) => void
}

const ROW = 28
const LETTER = 6.2
const LEAST = 1.5

export function FlameGraph({ box, metric, onRead }: FlameGraphProps): ReactNode {
  const [place, width] = useWidth()
  const height = depthOf(box) * ROW
  return (
    <div ref={place} className="flame" data-total={box.value}>
      {box.value === 0 ? (
        <p className="meta">Nothing yet.</p>
      ) : (
        <svg viewBox={`0 0 ${Math.max(1, width)} ${height}`} height={height} aria-label="Flame graph">
          {boxes({ box, x: 0, depth: 0 }, width / box.value).map((placed, at) => (
            <BoxMark key={at} placed={placed} scale={width / box.value} top={box} metric={metric} onRead={onRead} />
          ))}
        </svg>
      )}
    </div>
  )
}

interface PlacedSpan {
  readonly box: Box
  readonly x: number
  readonly depth: number
}

/** All boxes with their places, but those that nobody could see. */
function boxes(placed: PlacedSpan, scale: number): PlacedSpan[] {
  if (placed.box.value * scale < LEAST) return []
  let x = placed.x
  const below = placed.box.parts.flatMap((box) => {
    const found = boxes({ box, x, depth: placed.depth + 1 }, scale)
    x += box.value * scale
    return found
  })
  return [placed, ...below]
}

/** A value in words. */
export function amount(value: number, metric: Metric): string {
  if (metric === 'time') return span(value)
  return metric === 'tokens' ? `${tokens(value)} tokens` : money(value)
}

interface BoxMarkProps {
  readonly placed: PlacedSpan
  readonly scale: number
  readonly top: Box
  readonly metric: Metric
  readonly onRead: (reading: Reading) => void
}

function BoxMark({ placed: { box, x, depth }, scale, top, metric, onRead }: BoxMarkProps): ReactNode {
  const width = box.value * scale
  const share = `${Math.round((box.value / top.value) * 100)} % of the run`
  const words = amount(box.value, metric)
  const place = { conversationId: box.conversationId, nodeId: box.nodeId }
  const to = pathOfRun(box.conversationId, '', box.nodeId ?? undefined)
  const kind = box.kind === 'agent' ? [] : [KINDS[box.kind]]
  const read = () => onRead({ name: box.name, facts: [...kind, words, share], place })
  const rect = { x, y: depth * ROW, width, height: ROW, rx: 3 }
  return (
    <a
      href={hrefOf(to)}
      tabIndex={width > 24 ? 0 : -1}
      aria-label={`${box.name}, ${words}, ${share}`}
      data-value={box.value}
      data-depth={depth}
      onPointerEnter={read}
      onFocus={read}
      onClick={(event) => {
        event.preventDefault()
        navigate(to)
      }}
    >
      <rect {...rect} className={isHatched(box.kind) ? `hb-${box.kind}` : `b-${box.kind}`} />
      {isHatched(box.kind) ? <rect {...rect} fill={`url(#p-${box.kind})`} /> : null}
      <Label box={box} words={words} x={x} y={depth * ROW} width={width} />
    </a>
  )
}

interface LabelProps {
  readonly box: Box
  readonly words: string
  readonly x: number
  readonly y: number
  readonly width: number
}

function Label({ box, words, x, y, width }: LabelProps): ReactNode {
  const most = Math.floor((width - 16) / LETTER)
  const whole = box.kind === 'agent' ? `${box.name} ${words}` : box.name
  const shown = wordsWithin(whole, most)
  if (shown === '') return null
  return (
    <>
      {isHatched(box.kind) ? (
        <rect
          className={`hb-${box.kind}`}
          x={x + 1}
          y={y + 1}
          width={shown.length * LETTER + 14}
          height={ROW - 2}
          rx={3}
        />
      ) : null}
      <text className={`bt bt-${box.kind}`} x={x + 8} y={y + 18}>
        {shown}
      </text>
    </>
  )
}

/** The first words that have room. A word that is cut off would not be a part of the name that a screen reader says. */
function wordsWithin(whole: string, most: number): string {
  if (whole.length <= most) return whole
  const end = whole.lastIndexOf(' ', most)
  return end < 0 ? '' : whole.slice(0, end)
}
