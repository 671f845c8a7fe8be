// A run in time: a slider over its events drives the head, the timeline, the flame graph and the log.

import './time.css'
import { treeOf } from 'legate/client'
import { type ReactNode, useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import { client } from '../../data/client.ts'
import { useRequest } from '../../data/request.ts'
import { useRun } from '../../data/run.ts'
import { useTreeSource } from '../../data/tree.ts'
import type { TreeSource, TreeStore } from '../../data/tree-store.ts'
import type { Timeline as TimelineRun } from '../../data/types.ts'
import { RunFrame } from '../../panes/run-frame.tsx'
import { SkeletonThread } from '../../parts/states.tsx'
import { useNow } from '../../window/clock.ts'
import { navigate, pathOfRun, usePlace } from '../../window/router.ts'
import { total } from '../../words/format.ts'
import { turnShown } from '../../words/shown.ts'
import { boxOf, type Metric, type Used, type UsedBy } from './flame.ts'
import { amount, FlameGraph } from './flame-graph.tsx'
import { Log } from './log.tsx'
import { nobody, useLastSeq, usePast, withMoment } from './past.ts'
import { type Reading, Readout } from './readout.tsx'
import { SeqBar } from './seq-bar.tsx'
import { Timeline } from './timeline.tsx'

/** How long the slider rests before the address names its place. */
const NAMED_AFTER_MS = 250

export function TimePage({ conversationId }: { readonly conversationId: string }): ReactNode {
  const run = useRun(conversationId)
  const { query } = usePlace()
  const [seq, setSeq] = useState<number | null>(() => Number(query.get('seq')) || null)
  const last = useLastSeq(run.store)
  const held = seq === null || seq >= last ? null : seq
  const then = usePast(run.store, held)
  const at = run.store?.events[(held ?? last) - 1]?.at ?? 0
  const timeline = useTimeline(conversationId, then ?? run.store)
  const usedBy = useUsed(timeline, run.store, held ?? last)
  const past = withMoment(then, at, timeline === undefined ? 0 : spentBy(timeline, usedBy))
  useEffect(() => {
    const to = pathOfRun(conversationId, 'time') + (seq === null ? '' : `?seq=${seq}`)
    const timer = setTimeout(() => navigate(to, { replace: true }), NAMED_AFTER_MS)
    return () => clearTimeout(timer)
  }, [conversationId, seq])
  return (
    <RunFrame run={run} view="time" past={past}>
      {({ store }) => (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached with the keyboard
        <section className="timepage" aria-label="Time" tabIndex={0}>
          <SeqBar events={store.events} last={last} seq={held} onTravel={setSeq} />
          {timeline === undefined ? (
            <SkeletonThread />
          ) : (
            <Charts timeline={timeline} usedBy={usedBy} at={at} last={store.events.at(-1)?.at ?? at} />
          )}
          <h2 className="chart-h">What happened</h2>
          <Log events={store.events} seq={held ?? last} />
          <Hatches />
        </section>
      )}
    </RunFrame>
  )
}

/** The run that was the last one at the moment, in time; not one that was queued. */
function useTimeline(conversationId: string, source: TreeSource | null): TimelineRun | undefined {
  const read = () => (source === null ? undefined : turnShown(treeOf(source.get(), conversationId)?.runs ?? [])?.runId)
  const runId = useSyncExternalStore(source?.subscribe ?? nobody, read, read)
  const key = runId === undefined ? null : `tree ${source?.rootId} timeline ${runId}`
  return useRequest(key, () => client.timeline(runId ?? '')).value
}

interface ChartsProps {
  readonly timeline: TimelineRun
  readonly usedBy: UsedBy
  /** The moment, and that of the last event. */
  readonly at: number
  readonly last: number
}

/** A run that goes on is drawn up to now, and one that is over up to its end. */
function Charts(props: ChartsProps): ReactNode {
  const { isPast } = useTreeSource()
  const { timeline, at } = props
  if (isPast) return <ChartsAt {...props} />
  return timeline.end === null ? <LiveCharts {...props} /> : <ChartsAt {...props} at={Math.min(at, timeline.end)} />
}

function LiveCharts(props: ChartsProps): ReactNode {
  return <ChartsAt {...props} at={Math.max(props.at, useNow())} />
}

const METRICS: readonly (readonly [Metric, string])[] = [
  ['time', 'Time'],
  ['tokens', 'Tokens'],
  ['usd', 'Dollars'],
]

function ChartsAt({ timeline, usedBy, at: now, last }: ChartsProps): ReactNode {
  const [metric, setMetric] = useState<Metric>('time')
  const [reading, setReading] = useState<Reading | null>(null)
  const box = boxOf(timeline, { metric, now, usedBy })
  const end = Math.max(now, timeline.end ?? last)
  return (
    <>
      <div className="chart-h">
        <h2>Timeline</h2>
        <Legend />
      </div>
      <Timeline timeline={timeline} now={now} end={end} usedBy={usedBy} onRead={setReading} />
      <div className="chart-h">
        <h2>Where it went</h2>
        <fieldset className="seg">
          <legend className="vh">Width of the boxes</legend>
          {METRICS.map(([name, label]) => (
            <button key={name} type="button" aria-pressed={metric === name} onClick={() => setMetric(name)}>
              {label}
            </button>
          ))}
        </fieldset>
        <span className="meta">
          {metric === 'time'
            ? `${amount(box.value, metric)} of all agents together, waiting hatched`
            : amount(box.value, metric)}
        </span>
      </div>
      <FlameGraph box={box} metric={metric} onRead={setReading} />
      <Readout reading={reading} />
    </>
  )
}

/** Tokens and dollars of each node by then. A try costs what it costs when it ends, so most nodes have all of it or nothing. */
function useUsed(timeline: TimelineRun | undefined, store: TreeStore | null, seq: number): UsedBy {
  return useMemo(() => {
    const found = new Map<string, number>()
    for (const event of store?.events.slice(0, seq) ?? []) {
      if (event.type !== 'usage' || event.nodeId === null) continue
      found.set(event.nodeId, (found.get(event.nodeId) ?? 0) + total(event.usage))
    }
    const spans = new Map((timeline === undefined ? [] : spansOf(timeline)).map((span) => [span.nodeId, span]))
    return (nodeId): Used => {
      const tokens = found.get(nodeId) ?? 0
      const span = spans.get(nodeId)
      const whole = span === undefined ? 0 : total(span.usage)
      if (tokens === 0 || span === undefined || whole === 0) return { tokens, usd: 0 }
      return { tokens, usd: span.usd === null ? null : (span.usd * tokens) / whole }
    }
  }, [timeline, store, seq])
}

function spansOf({ spans }: TimelineRun): TimelineRun['spans'][number][] {
  return spans.flatMap((span) => [span, ...span.runs.flatMap(spansOf)])
}

function spentBy(timeline: TimelineRun, usedBy: UsedBy): number | null {
  const spent = spansOf(timeline).map(({ nodeId }) => usedBy(nodeId).usd)
  return spent.reduce<number | null>((sum, usd) => (sum === null || usd === null ? null : sum + usd), 0)
}

const LEGEND = [
  ['b-model', 'model'],
  ['b-tool', 'tool'],
  ['wait', 'waits for others'],
  ['person', 'waits for a person'],
  ['b-fail', 'failed or lost'],
] as const

function Legend(): ReactNode {
  return (
    <div className="legend">
      {LEGEND.map(([name, words]) => (
        <span key={name}>
          <svg className="lg" aria-hidden="true">
            <rect width="18" height="10" rx="2" className={name.startsWith('b-') ? name : `hb-${name}`} />
            {name.startsWith('b-') ? null : <rect width="18" height="10" rx="2" fill={`url(#p-${name})`} />}
          </svg>
          {words}
        </span>
      ))}
    </div>
  )
}

/** The patterns of waiting. */
function Hatches(): ReactNode {
  return (
    <svg width="0" height="0" className="vh" aria-hidden="true">
      <defs>
        {(['wait', 'person'] as const).map((name) => (
          <pattern
            key={name}
            id={`p-${name}`}
            width="6"
            height="6"
            patternUnits="userSpaceOnUse"
            patternTransform="rotate(45)"
          >
            <path className={`p-${name}`} d="M0 0v6" strokeWidth="2.2" />
          </pattern>
        ))}
      </defs>
    </svg>
  )
}
