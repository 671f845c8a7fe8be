import { InputError, NotFoundError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import { int, list, type OptionRules, readOptions } from '../../base/options.ts'
import { jsonBytes } from '../../base/page/json-bytes.ts'
import { PageRoom } from '../../base/page/room.ts'
import { shortNode } from '../../conversation/data/by-reference.ts'
import { EventView } from '../../conversation/fields/view.ts'
import { pages } from '../../conversation/pages.ts'
import { type RunTree, runTreeOf } from '../../conversation/tree.ts'
import { DURABLE_EVENTS, type DurableEvent, type DurableEventType, toEvent } from '../../graph/event.ts'
import type { Spending } from '../../graph/limits.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id, Node } from '../../graph/rows.ts'
import { look, lookWith, onceLoaded } from '../../store/look.ts'
import type { Store } from '../../store/store.ts'

/** A run in short: its state, what it delegated, and how far the record of its tree goes. */
export interface RunLook extends RunTree {
  readonly rootId: Id
  /** The owner of its conversation. */
  readonly owner: string | null
  /** The input that it was given. */
  readonly input: unknown
  /** The attributes that its caller gave it; null for none. */
  readonly attributes: { readonly [name: string]: Json } | null
  /** The `seq` of the last event of its tree. */
  readonly lastSeq: number
  /** The part of its limits that it has spent; null where it has none. */
  readonly spend: Spending | null
}

/** Which recorded events of a run to give. */
export interface RunEventQuery {
  /** Only events after this one, by `seq`. Default 0. */
  readonly after?: number
  /** The most events of the page. Default 200. */
  readonly limit?: number
  /** Only events of these types. Default: all types. */
  readonly types?: readonly string[]
}

/** Recorded events of a run and of what it delegated. */
export interface RunEventPage {
  readonly events: readonly DurableEvent[]
  /** The `after` of the next page; null where the record has no more now. */
  readonly next: number | null
}

const QUERY: OptionRules<RunEventQuery> = { after: int(0), limit: int(1, 1_000), types: list }

/** Looks at a run; undefined where its tree does not have it. */
export async function lookAtRun(store: Store, rootId: Id, runId: Id): Promise<RunLook | undefined> {
  return look(store, rootId, (tree) => {
    const turn = tree.turn(runId)
    const run = runTreeOf(tree, runId)
    if (turn === undefined || run === undefined) return undefined
    const owner = tree.conversation(rootId)?.owner ?? null
    const { input, attributes, spend } = turn
    return { ...run, rootId, owner, input, attributes, lastSeq: tree.lastSeq(rootId), spend }
  })
}

/** Reads one page of the record of a run. It reads no more of the tree's log than the page needs. */
export async function runEventPage(
  store: Store,
  { rootId, runId }: { readonly rootId: Id; readonly runId: Id },
  query: RunEventQuery,
): Promise<RunEventPage> {
  const { after = 0, limit = 200, types } = readOptions('eventPage(runId, query)', query, QUERY)
  const wanted = types === undefined ? undefined : new Set(types.map(knownType))
  const { view, begin } = await look(store, rootId, (tree) => ({
    view: new EventView(tree, runId),
    begin: tree.turn(runId)?.afterSeq ?? 0,
  }))
  const from = Math.max(after, begin)
  const events: DurableEvent[] = []
  const room = new PageRoom()
  for await (const rows of pages(store, rootId, { after: from })) {
    await onceLoaded(() => view.prepare(rows))
    for (const row of rows) {
      const event = view.show(toEvent(row)) as DurableEvent | undefined
      if (event === undefined || wanted?.has(event.type) === false) continue
      if (events.length === limit || !room.take(jsonBytes(event, room.left)))
        return { events, next: events.at(-1)?.seq ?? null }
      events.push(event)
    }
  }
  return { events, next: null }
}

function knownType(type: string): DurableEventType {
  const known = DURABLE_EVENTS.find((one) => one === type)
  if (known !== undefined) return known
  throw new InputError(
    'invalid_input',
    `There is no event "${type}" in the record. There are: ${DURABLE_EVENTS.join(', ')}.`,
  )
}

/** The nodes of a run, a page of them by their place. */
export async function nodesOfRun(
  store: Store,
  { rootId, runId }: { readonly rootId: Id; readonly runId: Id },
  page: { readonly from: number; readonly limit: number },
): Promise<NodePage> {
  return nodePage(await look(store, rootId, (tree) => tree.nodesOf(runId)), page)
}

/** A part of a list of nodes that ends at 8 MB. A node that would fill a page has the beginnings of its texts. */
export interface NodePage {
  readonly nodes: readonly Node[]
  /** The `from` of the next page; null where there is none. */
  readonly next: number | null
}

export function nodePage(
  all: readonly Node[],
  { from, limit }: { readonly from: number; readonly limit: number },
): NodePage {
  const room = new PageRoom()
  const nodes: Node[] = []
  for (const node of all.slice(from, from + limit)) {
    const short = shortNode(node)
    if (!room.take(jsonBytes(short, room.left))) break
    nodes.push(short)
  }
  const next = from + nodes.length
  return { nodes, next: next < all.length ? next : null }
}

/** Reads a node in its tree. */
export async function inNode<T>(store: Store, nodeId: Id, read: (tree: TreeReader, node: Node) => T): Promise<T> {
  return lookWith(store, nodeId, (tree) => {
    const node = tree.node(nodeId)
    if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId} in this store.`)
    return read(tree, node)
  })
}
