// The timeline: a row for each agent. Working is filled, waiting is hatched, tries stand side by side.

import type { ReactNode } from 'react'
import { useConversationTree } from '../../data/tree.ts'
import type { RunTree, Timeline as TimelineRun } from '../../data/types.ts'
import { Link } from '../../parts/link.tsx'
import { Shape } from '../../parts/state.tsx'
import { pathOfRun } from '../../window/router.ts'
import { clock, count, money, span } from '../../words/format.ts'
import { shownRun } from '../../words/shown.ts'
import { type Bar, type BarKind, type Row, rowsOf } from './bars.ts'
import type { UsedBy } from './flame.ts'
import type { Reading } from './readout.tsx'
import { useWidth } from './use-width.ts'

interface TimelineProps {
  readonly timeline: TimelineRun
  /** The moment up to which it is drawn, and the end of the axis. */
  readonly now: number
  readonly end: number
  readonly usedBy: UsedBy
  readonly onRead: (reading: Reading) => void
}

const ROW = 32
const TOP = 24
const MOST_ROWS = 300
const LETTER = 6.2

export function Timeline({ timeline, now, end, usedBy, onRead }: TimelineProps): ReactNode {
  const tree = useConversationTree(timeline.conversationId)
  const runs = new Map((tree?.runs ?? []).flatMap(withBelow).map((run) => [run.runId, run]))
  // Several things happen in one millisecond: what had begun by an event, its tree says.
  const rows = rowsOf(timeline, now).filter(({ run }) => (runs.get(run.runId)?.startedAt ?? null) !== null)
  const shown = rows.slice(0, MOST_ROWS)
  const more = rows.length - shown.length
  return (
    <>
      <div className="tl">
        <Names rows={shown} runs={runs} usedBy={usedBy} />
        <Bars rows={shown} from={timeline.start} now={now} end={end} onRead={onRead} />
      </div>
      {more > 0 ? <p className="meta">{count(more, 'more agent')} below them.</p> : null}
    </>
  )
}

interface NamesProps {
  readonly rows: readonly Row[]
  readonly runs: ReadonlyMap<string, RunTree>
  readonly usedBy: UsedBy
}

function Names({ rows, runs, usedBy }: NamesProps): ReactNode {
  return (
    <div className="names">
      {rows.map(({ run, depth }) => {
        const known = runs.get(run.runId)
        return (
          <Link key={run.runId} to={pathOfRun(run.conversationId)} className={`lv${Math.min(depth, 6)}`}>
            <Shape state={known === undefined ? 'queued' : shownRun(known)} />
            <span className="cut">{run.agent}</span>
            <span className="meta">{money(spentOf(run, usedBy))}</span>
          </Link>
        )
      })}
    </div>
  )
}

function withBelow(run: RunTree): RunTree[] {
  return [run, ...run.children.flatMap(withBelow)]
}

/** Dollars of its own calls. */
function spentOf({ spans }: TimelineRun, usedBy: UsedBy): number | null {
  let sum = 0
  for (const { nodeId } of spans) {
    const { usd } = usedBy(nodeId)
    if (usd === null) return null
    sum += usd
  }
  return sum
}

interface BarsProps {
  readonly rows: readonly Row[]
  readonly from: number
  readonly now: number
  readonly end: number
  readonly onRead: (reading: Reading) => void
}

function Bars({ rows, from, now, end, onRead }: BarsProps): ReactNode {
  const [place, width] = useWidth()
  const height = TOP + rows.length * ROW + 4
  const scale = (width - 8) / Math.max(1, end - from)
  const x = (at: number) => (at - from) * scale
  const name = `Timeline: ${count(rows.length, 'agent')} over ${span(now - from)}`
  return (
    <div ref={place}>
      <svg viewBox={`0 0 ${Math.max(1, width)} ${height}`} height={height} role="img" aria-label={name}>
        <Axis from={from} end={end} x={x} height={height} />
        {rows.map((row, at) => (
          <g key={row.run.runId}>
            {row.bars.map((bar, index) => (
              <BarMark key={index} bar={bar} row={row} y={TOP + at * ROW + 7} x={x} onRead={onRead} />
            ))}
          </g>
        ))}
        <line className="head-l" x1={x(now)} x2={x(now)} y1={16} y2={height} />
      </svg>
    </div>
  )
}

const STEPS_S = [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400]

interface AxisProps {
  readonly from: number
  readonly end: number
  readonly x: (at: number) => number
  readonly height: number
}

function Axis({ from, end, x, height }: AxisProps): ReactNode {
  const most = Math.max(2, Math.floor(x(end) / 110))
  const step = 1_000 * (STEPS_S.find((one) => (end - from) / 1_000 / one <= most) ?? 86_400 * 7)
  const marks = Array.from({ length: Math.min(60, Math.floor((end - from) / step) + 1) }, (_, at) => at * step)
  return (
    <g>
      {marks.map((ms) => (
        <g key={ms}>
          <line className="grid" x1={x(from + ms)} x2={x(from + ms)} y1={20} y2={height} />
          <text className="ax" x={x(from + ms)} y={12} textAnchor={ms === 0 ? 'start' : 'middle'}>
            {ms === 0 ? clock(from) : step < 60_000 ? span(ms) : `${Math.round(ms / 60_000)} min`}
          </text>
        </g>
      ))}
    </g>
  )
}

export const KINDS: Readonly<Record<BarKind, string>> = {
  model: 'model call',
  tool: 'tool call',
  fail: 'failed',
  wait: 'waits',
  person: 'waits for a person',
}

interface BarMarkProps {
  readonly bar: Bar
  readonly row: Row
  readonly y: number
  readonly x: (at: number) => number
  readonly onRead: (reading: Reading) => void
}

function BarMark({ bar, row, y, x, onRead }: BarMarkProps): ReactNode {
  const { kind, name, from, to, isOpen, nodeId } = bar
  const isThin = kind === 'wait'
  const width = Math.max(2, x(to) - x(from) - 1)
  const box = { x: x(from), y: isThin ? y + 5 : y, width, height: isThin ? 8 : 18, rx: Math.min(3, width / 2) }
  const read = () =>
    onRead({
      name: `${row.run.agent}: ${kind === 'wait' ? `waits for ${name}` : name}`,
      facts: [`${KINDS[kind]}, ${span(to - from)}`, `${clock(from)} to ${isOpen ? 'now' : clock(to)}`],
      place: { conversationId: row.run.conversationId, nodeId },
    })
  const fits = !isThin && width - 10 > name.length * LETTER
  return (
    <g onPointerEnter={read}>
      <rect {...box} className={isHatched(kind) ? `hb-${kind}` : `b-${kind}`} />
      {isHatched(kind) ? <rect {...box} fill={`url(#p-${kind})`} /> : null}
      {fits && kind === 'person' ? (
        <rect x={box.x} y={y} width={name.length * LETTER + 14} height={18} rx={3} className="hb-person" />
      ) : null}
      {fits ? (
        <text className={`bt bt-${kind}`} x={box.x + 6} y={y + 13}>
          {name}
        </text>
      ) : null}
    </g>
  )
}

export function isHatched(kind: string): boolean {
  return kind === 'wait' || kind === 'person'
}
