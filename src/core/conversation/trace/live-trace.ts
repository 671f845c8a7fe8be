// Tells a telemetry what happens while it happens.
//
// Owns:      which spans begin when a model is asked or code runs, and which end with a commit.
// Called by: the doors where models and code run, for the context of their own spans; the runtime for every commit.
// Must stay true:
//   - A span ends with the commit that ends its row, in the process that writes it: once, whoever began it.
//   - Waiting is no open span. The wait is an event of the span, read from rows.
//   - Nothing here can fail a run: what goes wrong is reported.

import { after } from '../../base/maybe.ts'
import type { Commit } from '../../graph/commit.ts'
import { addUsage, NO_USAGE, type Usage } from '../../graph/content.ts'
import type { EventRow } from '../../graph/event.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id, Node, Turn } from '../../graph/rows.ts'
import type { ModelRequest, Part } from '../../model/model.ts'
import { onceLoaded, treeLoaded } from '../../store/look.ts'
import type { Store } from '../../store/store.ts'
import type { Inside, SpanStart, Telemetry } from '../../tool/telemetry.ts'
import { timelineOf } from '../data/timeline.ts'
import { spanIdOf } from './place.ts'
import {
  type HeardEnd,
  isCall,
  isOwnWork,
  isSpeaking,
  modelSpan,
  modelStart,
  runSpan,
  runStart,
  type SpanWait,
  toolSpan,
  toolStart,
  waitsForPeople,
} from './spans.ts'

export interface LiveTraceParts {
  readonly store: Store
  readonly telemetry: Telemetry
  readonly report: (error: unknown) => void
}

/** A node that runs, and the rows around it. */
export interface TracedNode {
  readonly tree: TreeReader
  readonly node: Node
  readonly turn: Turn
}

/** Commits that end nodes or turns. Others change what has ended. */
const ENDING: ReadonlySet<Commit['kind']> = new Set([
  ...(['expand', 'spawn', 'result', 'end', 'retry', 'ask', 'answer'] as const),
  ...(['cancel', 'expire', 'force', 'recover', 'deliver', 'say'] as const),
])

/** The call of a model that goes on, as its commit will tell it. */
interface OpenCall {
  readonly model: string
  readonly request: ModelRequest
  readonly begun: SpanStart
  usage: Usage
  heard: HeardEnd | undefined
}

/** The most spans that are remembered. Whoever ends the row of a forgotten one makes it anew. */
const MOST_BEGUN = 10_000

export class LiveTrace {
  private readonly parts: LiveTraceParts
  /** Calls of models that this process has begun, by node. */
  private readonly calls: Map<Id, OpenCall> = new Map()
  /** Runs and calls of tools that this process has begun, by their ids. */
  private readonly begun: Map<Id, SpanStart> = new Map()
  private readonly late: Set<Promise<void>> = new Set()

  constructor(parts: LiveTraceParts) {
    this.parts = parts
  }

  /** Asks a model inside of the span of its call. */
  ask(
    place: TracedNode,
    { model, request }: { readonly model: string; readonly request: ModelRequest },
    stream: () => AsyncIterable<Part>,
  ): AsyncIterable<Part> {
    const { telemetry } = this.parts
    if (!telemetry.isOn()) return stream()
    const { tree, node } = place
    this.beginRun(tree, place.turn)
    const start = node.startedAt ?? node.createdAt
    const begun = modelStart(tree, node, { attempt: node.attempt, model, start })
    this.calls.set(node.id, { model, request, begun, usage: NO_USAGE, heard: undefined })
    const inside = telemetry.begin(begun)
    return firstInside(inside(stream), inside, () => telemetry.firstPart(begun.spanId))
  }

  /** Takes the end of an answer, as its model told it. */
  heard(nodeId: Id, end: HeardEnd): void {
    const call = this.calls.get(nodeId)
    if (call !== undefined) call.heard = end
  }

  /** Runs the code of a node inside of its span: of the call, or of the run whose code answers. */
  inside<T>({ tree, node, turn }: TracedNode, code: () => T): T {
    const { telemetry } = this.parts
    if (!telemetry.isOn()) return code()
    const run = this.beginRun(tree, turn)
    return isCall(node) ? this.beginTool(tree, node)(code) : run(code)
  }

  /** The `traceparent` of a call of a tool that runs here. */
  traceparentOf(node: Node): string | null {
    return this.parts.telemetry.traceparentOf(spanIdOf(isCall(node) ? node.id : node.turnId))
  }

  /** Ends the spans of what a commit has ended. */
  committed(commit: Commit): void {
    const { store, telemetry, report } = this.parts
    if (commit.rootId === null || !ENDING.has(commit.kind) || !telemetry.isOn()) return
    try {
      const rows = treeLoaded(store, commit.rootId, (tree) => this.read(tree, commit))
      const told = after(rows, (tree) => this.tell(tree, commit))
      if (told instanceof Promise) this.keep(told)
    } catch (error) {
      report(error)
    }
  }

  /** Resolves when all spans are told. */
  async settled(): Promise<void> {
    await Promise.all(this.late)
  }

  /** Reads all rows that the spans are made of: one of them may have to be loaded first. */
  private read(tree: TreeReader, { at, events, nodes, turns }: Commit): void {
    const { telemetry } = this.parts
    for (const { body, nodeId } of events) if (body.type === 'retry' && nodeId !== null) tree.node(nodeId)
    for (const node of nodes) if (node.endedAt === at) toolStart(tree, node, telemetry)
    for (const turn of turns) if (turn.endedAt === at) runSpan(tree, turn, { style: telemetry })
  }

  private tell(tree: TreeReader, commit: Commit): void {
    for (const event of commit.events) this.hear(tree, event)
    for (const node of commit.nodes) if (node.endedAt === commit.at) this.endNode(tree, node)
    for (const turn of commit.turns) if (turn.endedAt === commit.at) this.endRun(tree, turn)
  }

  private hear(tree: TreeReader, { body, nodeId, at }: EventRow): void {
    const call = nodeId === null ? undefined : this.calls.get(nodeId)
    if (nodeId === null || call === undefined) return
    if (body.type === 'usage') call.usage = addUsage(call.usage, body.usage)
    if (body.type !== 'retry') return
    const node = tree.node(nodeId)
    if (node !== undefined) this.endCall(tree, node, { call, end: at, attempt: body.attempt - 1, error: 'model' })
  }

  private endNode(tree: TreeReader, node: Node): void {
    const turn = tree.turn(node.turnId)
    if (turn === undefined || !isOwnWork(node, turn)) return
    const call = this.calls.get(node.id)
    const end = node.endedAt ?? 0
    if (isSpeaking(node) && call !== undefined)
      return this.endCall(tree, node, { call, end, attempt: node.attempt, error: null })
    if (!isCall(node)) return
    const hasAsked = node.metadata['approval'] !== undefined || node.metadata['question'] !== undefined
    if (!hasAsked) return this.endTool(tree, node, [])
    this.keep(this.waitsOf(turn, node.id).then((waits) => onceLoaded(() => this.endTool(tree, node, waits))))
  }

  private endCall(
    tree: TreeReader,
    node: Node,
    {
      call,
      attempt,
      end,
      error,
    }: { readonly call: OpenCall; readonly end: number; readonly attempt: number; readonly error: string | null },
  ): void {
    const { telemetry } = this.parts
    const { begun, model, usage, request: asked, heard } = call
    this.calls.delete(node.id)
    const tried = { attempt, model, usage, start: begun.start, end, error }
    telemetry.end(modelSpan(tree, node, { tried, style: telemetry, start: begun, asked, heard }))
  }

  private endTool(tree: TreeReader, node: Node, waits: readonly SpanWait[]): void {
    const { telemetry } = this.parts
    const span = toolSpan(tree, node, { waits, style: telemetry, start: this.begun.get(node.id) })
    this.begun.delete(node.id)
    if (span !== undefined) telemetry.end(span)
  }

  private endRun(tree: TreeReader, turn: Turn): void {
    const { telemetry } = this.parts
    const span = runSpan(tree, turn, { style: telemetry, start: this.begun.get(turn.id) })
    this.begun.delete(turn.id)
    if (span !== undefined) telemetry.end(span)
  }

  /** Begins the span of a run, of the call that started it, and of those above: what is below them needs their context. */
  private beginRun(tree: TreeReader, turn: Turn): Inside {
    const known = this.begun.get(turn.id)
    if (known !== undefined) return this.parts.telemetry.begin(known)
    const link = tree.link(turn.id)
    const task = link === undefined ? undefined : tree.node(link.taskId)
    const host = task === undefined ? undefined : tree.turn(task.turnId)
    if (task !== undefined && host !== undefined) {
      this.beginRun(tree, host)
      if (task.endedAt === null) this.beginTool(tree, task)
    }
    return this.begin(turn.id, runStart(tree, turn, this.parts.telemetry))
  }

  private beginTool(tree: TreeReader, node: Node): Inside {
    return this.begin(node.id, this.begun.get(node.id) ?? toolStart(tree, node, this.parts.telemetry))
  }

  private begin(id: Id, start: SpanStart): Inside {
    this.begun.set(id, start)
    const [oldest] = this.begun.size > MOST_BEGUN ? this.begun.keys() : []
    if (oldest !== undefined) this.begun.delete(oldest)
    return this.parts.telemetry.begin(start)
  }

  /** Who asks a person is answered in any process: rows know how long it took. */
  private async waitsOf(turn: Turn, nodeId: Id): Promise<SpanWait[]> {
    const { spans } = await timelineOf(this.parts.store, turn)
    const span = spans.find((one) => one.nodeId === nodeId)
    return span === undefined ? [] : waitsForPeople(span)
  }

  private keep(told: Promise<void>): void {
    const kept = told.catch(this.parts.report).finally(() => this.late.delete(kept))
    this.late.add(kept)
  }
}

/** A model sends its request when its first part is asked for: that happens inside of the span, the rest needs no context. */
function firstInside(stream: AsyncIterable<Part>, inside: Inside, heard: () => void): AsyncIterable<Part> {
  if (typeof stream?.[Symbol.asyncIterator] !== 'function') return stream
  return {
    [Symbol.asyncIterator]() {
      const parts = stream[Symbol.asyncIterator]()
      let isFirst = true
      const next = (): Promise<IteratorResult<Part>> => {
        if (!isFirst) return parts.next()
        isFirst = false
        const first = inside(() => parts.next())
        heardWith(first, heard)
        return first
      }
      const leave = parts.return?.bind(parts)
      return leave === undefined ? { next } : { next, return: leave }
    },
  }
}

function heardWith(first: Promise<unknown>, heard: () => void): void {
  first.then(heard, () => undefined)
}
