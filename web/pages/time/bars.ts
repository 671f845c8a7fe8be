// What each agent did and when, as bars; and where time, tokens and dollars went, as boxes within boxes.

import type { Timeline } from '../../data/types.ts'

type Span = Timeline['spans'][number]
type Wait = Span['waits'][number]

export type BarKind = 'model' | 'tool' | 'fail' | 'wait' | 'person'

/** One thing that an agent did, or waited for. */
export interface Bar {
  readonly kind: BarKind
  readonly name: string
  readonly from: number
  readonly to: number
  /** True while it goes on. */
  readonly isOpen: boolean
  readonly nodeId: string
  readonly span: Span
}

/** The bars of one run. */
export interface Row {
  readonly run: Timeline
  readonly depth: number
  readonly bars: readonly Bar[]
}

/** A row for each run that had begun by then, hosts before their children. */
export function rowsOf(run: Timeline, now: number, depth = 0): Row[] {
  if (run.start > now) return []
  const below = run.spans.flatMap((span) => span.runs.flatMap((child) => rowsOf(child, now, depth + 1)))
  return [{ run, depth, bars: barsOf(run, now) }, ...below]
}

function barsOf(run: Timeline, now: number): Bar[] {
  const queued = run.waits.map((wait) => waitBar(run.spans[0], wait, now))
  const bars = [...queued, ...run.spans.flatMap((span) => spanBars(span, now))]
  return joinWaits(bars.flatMap((bar) => bar ?? [])).sort((a, b) => a.from - b.from)
}

/** The tries and waits of a node. A node that only waits for others before it has none. */
export function spanBars(span: Span, now: number): Bar[] {
  const waits = span.waits.filter(({ reason }) => reason !== 'nodes').map((wait) => waitBar(span, wait, now))
  const tries = span.runs.length > 0 || !isWork(span) ? [] : span.attempts.flatMap((one) => worked(span, one))
  return [...tries.map((one) => tryBar(span, one, now)), ...waits].flatMap((bar) => bar ?? [])
}

type Attempt = Span['attempts'][number]

/** The parts of a try in which the node did not wait for a person. */
function worked({ waits }: Span, attempt: Attempt): Attempt[] {
  const asked = waits.filter(({ reason, end }) => isPerson(reason) && (end === null || end > attempt.start))
  const parts: Attempt[] = []
  let start: number | null = attempt.start
  for (const wait of asked) {
    if (start !== null && wait.start > start) parts.push({ ...attempt, start, end: wait.start })
    start = wait.end
  }
  const isLeft = start !== null && (attempt.end === null || attempt.end > start)
  return isLeft && start !== null ? [...parts, { ...attempt, start }] : parts
}

function isPerson(reason: Wait['reason']): boolean {
  return reason === 'approval' || reason === 'question'
}

function isWork({ kind, tool, model }: Span): boolean {
  return tool !== null || model !== null || kind === 'agent_message' || kind === 'character_message'
}

function tryBar(span: Span, { attempt, start, end, error }: Attempt, now: number): Bar | undefined {
  const times = cut(start, end, now)
  if (times === undefined) return undefined
  const isLast = attempt === span.attempts.at(-1)?.attempt
  const hasFailed = error !== null || (isLast && FAILED.has(span.state) && !times.isOpen)
  const kind = hasFailed ? 'fail' : span.tool === null ? 'model' : 'tool'
  const of = span.attempts.length > 1 ? `, attempt ${attempt}` : ''
  return {
    kind,
    name: `${nameOf(span)}${of}${error === null ? '' : `: ${error}`}`,
    ...times,
    nodeId: span.nodeId,
    span,
  }
}

const FAILED: ReadonlySet<string> = new Set(['errored', 'uncertain'])

export function nameOf({ tool, model, purpose }: Span): string {
  return tool ?? (model === null ? (purpose ?? 'model call') : model.slice(model.lastIndexOf('/') + 1))
}

function waitBar(span: Span | undefined, { reason, start, end }: Wait, now: number): Bar | undefined {
  const times = cut(start, end, now)
  if (times === undefined || span === undefined) return undefined
  return { kind: isPerson(reason) ? 'person' : 'wait', name: WAITS[reason](span), ...times, nodeId: span.nodeId, span }
}

const WAITS: Readonly<Record<Wait['reason'], (span: Span) => string>> = {
  queue: () => 'its turn',
  nodes: () => 'calls before it',
  children: ({ runs }) => runs.map(({ agent }) => agent).join(', '),
  approval: ({ tool }) => `${tool ?? 'a call'} needs a yes`,
  question: () => 'asks you something',
  retry: () => 'the next try',
}

/** The part of a time that had passed by then; undefined where none had. */
function cut(from: number, end: number | null, now: number) {
  if (from > now) return undefined
  const isOpen = end === null || end > now
  return { from, to: isOpen ? now : end, isOpen }
}

/** A host that waits for several children at once waits once. */
function joinWaits(bars: readonly Bar[]): Bar[] {
  const joined: Bar[] = []
  for (const bar of bars.filter(({ kind }) => kind === 'wait').sort((a, b) => a.from - b.from)) {
    const last = joined.at(-1)
    if (last === undefined || bar.from > last.to) joined.push(bar)
    else {
      const name = last.name.split(', ').includes(bar.name) ? last.name : `${last.name}, ${bar.name}`
      joined[joined.length - 1] = { ...last, name, to: Math.max(last.to, bar.to), isOpen: last.isOpen || bar.isOpen }
    }
  }
  return [...bars.filter(({ kind }) => kind !== 'wait'), ...joined]
}
