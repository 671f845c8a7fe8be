// The flame data of a run: what each of its nodes, and of the runs below, took of time, tokens and money.
//
// Stays true:
// - Tokens come from the events of model calls, one per call, so the spans of a run add up to what `runtime.usage` gives for it.
// - It reads the rows of the run and below, and the log from the first event of the run to the last.

import { addUsage, NO_USAGE, type Usage } from '../../graph/content.ts'
import type { EventBody, EventRow } from '../../graph/event.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id, Node, NodeState, Purpose, Turn } from '../../graph/rows.ts'
import { costOf } from '../../model/named/prices.ts'
import { look } from '../../store/look.ts'
import type { Store } from '../../store/store.ts'
import { pages } from '../pages.ts'
import { usageOf } from '../usage.ts'

/** A time in which a node, or a run, waited. */
export interface TimelineWait {
  /** `queue`: for a place; `nodes`: for nodes before it, or a free worker; `retry`: for the next try. */
  readonly reason: 'queue' | 'nodes' | 'children' | 'approval' | 'question' | 'retry'
  readonly start: number
  /** Null while it waits. */
  readonly end: number | null
}

/** One try of a node. */
export interface TimelineAttempt {
  readonly attempt: number
  readonly start: number
  /** Null while it goes on. */
  readonly end: number | null
  /** How it failed; null where it did not. */
  readonly error: string | null
  /** The tokens of its model calls. */
  readonly usage: Usage
}

/** One node in time. */
export interface TimelineSpan {
  readonly nodeId: Id
  readonly kind: string
  readonly purpose: Purpose | null
  /** The tool that a task calls; null for other nodes. */
  readonly tool: string | null
  readonly state: NodeState
  readonly preview: string
  /** When it was made; it may have waited before it ran. */
  readonly start: number
  /** When its last try began; null where it never ran. */
  readonly ranAt: number | null
  /** Null while it is open. */
  readonly end: number | null
  readonly waits: readonly TimelineWait[]
  readonly attempts: readonly TimelineAttempt[]
  /** The tokens of its model calls, also of those that failed. */
  readonly usage: Usage
  /** US dollars; null where a price is unknown. */
  readonly usd: number | null
  /** The model it called last; null where it called none. */
  readonly model: string | null
  /** The runs that it started. */
  readonly runs: readonly TimelineRun[]
}

/** A run in time, with everything below it. */
export interface TimelineRun {
  readonly runId: Id
  readonly conversationId: Id
  readonly agent: string
  readonly start: number
  /** Null while it is open. */
  readonly end: number | null
  /** The time before it began. */
  readonly waits: readonly TimelineWait[]
  /** The usage of the run and everything below it, as `runtime.usage` gives it: the sum of all spans. */
  readonly usage: Usage
  /** US dollars of the run and everything below it; null where a price is unknown. */
  readonly usd: number | null
  /** In the order of the graph. */
  readonly spans: readonly TimelineSpan[]
}

export async function timelineOf(store: Store, turn: Turn): Promise<TimelineRun> {
  const happened = await happenedIn(store, turn.rootId, [turn])
  return look(store, turn.rootId, (tree) => timelineRun(tree, turn, happened))
}

/** Reads the events of the nodes of these turns and below: the log is read once, however many there are. */
export async function happenedIn(store: Store, rootId: Id, turns: readonly Turn[]): Promise<HappenedById> {
  const runs = await look(store, rootId, (tree) => new Set(turns.flatMap(({ id }) => [...runsBelow(tree, id)])))
  const after = Math.min(...turns.map(({ afterSeq }) => afterSeq))
  return readHappened(store, rootId, after, runs)
}

function* runsBelow(tree: TreeReader, runId: Id): Generator<Id> {
  yield runId
  for (const { id } of tree.linksOf(runId)) yield* runsBelow(tree, id)
}

interface Happened {
  readonly waits: TimelineWait[]
  readonly attempts: TimelineAttempt[]
  usage: Usage
  /** That of the try that goes on. */
  tried: Usage
  usd: number | null
  model: string | null
}

export type HappenedById = ReadonlyMap<Id, Happened>

/** Reads what happened to nodes and runs, by their ids, until all of these runs have ended or the log has. */
async function readHappened(store: Store, rootId: Id, after: number, runs: ReadonlySet<Id>): Promise<HappenedById> {
  const open = new Set(runs)
  const found = new Map<Id, Happened>()
  for await (const events of pages(store, rootId, { after })) {
    for (const event of events) {
      if (!runs.has(event.runId)) continue
      takeEvent(found, event)
      if (event.body.type === 'run-end') open.delete(event.runId)
    }
    if (open.size === 0) break
  }
  return found
}

function takeEvent(found: Map<Id, Happened>, event: EventRow): void {
  const id = event.nodeId ?? event.runId
  const known = found.get(id) ?? { waits: [], attempts: [], usage: NO_USAGE, tried: NO_USAGE, usd: 0, model: null }
  found.set(id, known)
  const { body, at } = event
  if (body.type === 'usage') addCall(known, body)
  else if (body.type === 'retry') addAttempt(known, body, at)
  const begun = BEGIN[body.type]
  if (begun !== undefined) known.waits.push({ reason: begun, start: at, end: null })
  const ended = END[body.type]
  if (ended !== undefined) closeWait(known.waits, ended, at)
}

function addCall(known: Happened, { usage, model }: Extract<EventBody, { type: 'usage' }>): void {
  const usd = costOf(usage, model)
  known.usage = addUsage(known.usage, usage)
  known.tried = addUsage(known.tried, usage)
  known.usd = known.usd === null || usd === null ? null : known.usd + usd
  known.model = model
}

function addAttempt(known: Happened, retry: Extract<EventBody, { type: 'retry' }>, at: number): void {
  const start = known.waits.findLast(({ reason }) => reason === 'retry')?.end ?? 0
  const { attempt, error } = retry
  known.attempts.push({ attempt: attempt - 1, start: Math.min(start, at), end: at, error, usage: known.tried })
  known.tried = NO_USAGE
  known.waits.push({ reason: 'retry', start: at, end: Math.max(at, retry.wakeAt) })
}

type Begins = { readonly [Type in EventBody['type']]?: TimelineWait['reason'] }

const BEGIN: Begins = {
  'run-queued': 'queue',
  'delegation-start': 'children',
  'approval-request': 'approval',
  question: 'question',
}
const END: Begins = {
  'run-start': 'queue',
  'delegation-end': 'children',
  'approval-answer': 'approval',
  answer: 'question',
}

function closeWait(waits: TimelineWait[], reason: TimelineWait['reason'], at: number): void {
  const index = waits.findLastIndex((wait) => wait.reason === reason && wait.end === null)
  const wait = waits[index]
  if (wait !== undefined) waits[index] = { ...wait, end: at }
}

export function timelineRun(tree: TreeReader, turn: Turn, happened: HappenedById): TimelineRun {
  const { id: runId, conversationId, createdAt, startedAt, endedAt } = turn
  const links = tree.linksOf(runId)
  const spans = tree.nodesOf(runId).map((node) => {
    const runs = links.flatMap(({ id, taskId }) => (taskId === node.id ? (tree.turn(id) ?? []) : []))
    return spanOf(node, { runs: runs.map((run) => timelineRun(tree, run, happened)), happened: happened.get(node.id) })
  })
  const paid = spans.flatMap(({ usd, runs }) => [usd, ...runs.map((run) => run.usd)])
  return {
    runId,
    conversationId,
    agent: tree.conversation(conversationId)?.agent.name ?? '',
    start: startedAt ?? createdAt,
    end: endedAt,
    waits: closedAt(happened.get(runId)?.waits ?? [], endedAt),
    usage: usageOf(tree, runId)?.usage ?? NO_USAGE,
    usd: paid.reduce<number | null>((sum, usd) => (sum === null || usd === null ? null : sum + usd), 0),
    spans,
  }
}

interface SpanParts {
  readonly runs: readonly TimelineRun[]
  readonly happened: Happened | undefined
}

function spanOf(node: Node, { runs, happened }: SpanParts): TimelineSpan {
  const { id: nodeId, kind, purpose, state, preview, createdAt, startedAt, endedAt } = node
  return {
    nodeId,
    kind,
    purpose,
    tool: node.input.call?.name ?? null,
    state,
    preview,
    start: createdAt,
    ranAt: startedAt,
    end: endedAt,
    waits: [...waitBefore(node, happened), ...closedAt(happened?.waits ?? [], endedAt)],
    attempts: attemptsOf(node, happened),
    usage: happened?.usage ?? NO_USAGE,
    usd: happened === undefined ? 0 : happened.usd,
    model: happened?.model ?? null,
    runs,
  }
}

/** The time until a node first ran, or waited for something else. Rows keep only when its last try began. */
function waitBefore({ createdAt, startedAt, endedAt }: Node, happened: Happened | undefined): TimelineWait[] {
  if (happened !== undefined && happened.attempts.length > 0) return []
  const next = happened?.waits[0]?.start ?? Number.POSITIVE_INFINITY
  const end = Math.min(startedAt ?? endedAt ?? Number.POSITIVE_INFINITY, next)
  if (end <= createdAt) return []
  return [{ reason: 'nodes', start: createdAt, end: end === Number.POSITIVE_INFINITY ? null : end }]
}

/** A node that ended otherwise, such as by a cancel, waits no longer. */
function closedAt(waits: readonly TimelineWait[], endedAt: number | null): TimelineWait[] {
  return waits.map((wait) => (wait.end === null ? { ...wait, end: endedAt } : wait))
}

/** The tries that failed, and the last one. The first begins when the node was made, where others followed. */
function attemptsOf(
  { attempt, createdAt, startedAt, endedAt }: Node,
  happened: Happened | undefined,
): TimelineAttempt[] {
  const failed = (happened?.attempts ?? []).map((one) => (one.start === 0 ? { ...one, start: createdAt } : one))
  if (startedAt === null || startedAt < (failed.at(-1)?.end ?? 0)) return failed
  const usage = happened?.tried ?? NO_USAGE
  return [...failed, { attempt, start: startedAt, end: endedAt, error: null, usage }]
}
