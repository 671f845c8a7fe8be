import type { Conversation, Link, Node, TreeData, TreeReader, Turn } from '../../doors/rows.ts'
import type { Id } from '../../index.ts'

const OPEN: ReadonlySet<string> = new Set(['pending', 'awaiting_approval', 'running', 'waiting'])

type Edge = TreeData['edges'][number]

/** Reads a tree from a copy of its rows. */
export class TreeCopy implements TreeReader {
  private readonly data: TreeData
  private readonly cut: () => void
  private readonly conversations: ReadonlyMap<Id, Conversation>
  private readonly turns: ReadonlyMap<Id, Turn>
  private readonly nodes: ReadonlyMap<Id, Node>
  private readonly links: ReadonlyMap<Id, Link>
  private readonly lanes: ReadonlyMap<Id, readonly Turn[]>
  private readonly ofTurn: ReadonlyMap<Id, readonly Node[]>
  private readonly ofHost: ReadonlyMap<Id, readonly Link[]>

  /** `cut`: hears when rows are asked for that a part of a tree lacks. */
  constructor(data: TreeData, cut: () => void = () => undefined) {
    this.data = data
    this.cut = data.isCut ? cut : () => undefined
    this.conversations = byId(data.conversations)
    this.turns = byId(data.turns)
    this.nodes = byId(data.nodes)
    this.links = byId(data.links)
    this.lanes = grouped(data.turns, ({ laneId }) => laneId)
    this.ofTurn = grouped(data.nodes, ({ turnId }) => turnId)
    this.ofHost = grouped(data.links, ({ hostTurnId }) => hostTurnId)
  }

  conversation(id: Id): Conversation | undefined {
    return this.there(this.conversations.get(id))
  }

  turn(id: Id): Turn | undefined {
    return this.there(this.turns.get(id))
  }

  node(id: Id): Node | undefined {
    return this.there(this.nodes.get(id))
  }

  link(id: Id): Link | undefined {
    return this.links.get(id)
  }

  /** Long texts are not copied: whoever shows one asks for it. */
  body(): undefined {
    return undefined
  }

  edgesFrom(nodeId: Id): readonly Edge[] {
    return this.data.edges.filter(({ from }) => from === nodeId)
  }

  edgesTo(nodeId: Id): readonly Edge[] {
    return this.data.edges.filter(({ to }) => to === nodeId)
  }

  nodesOf(turnId: Id): readonly Node[] {
    this.cut()
    return this.ofTurn.get(turnId) ?? []
  }

  openNodes(turnId: Id): readonly Node[] {
    return (this.ofTurn.get(turnId) ?? []).filter(({ state }) => OPEN.has(state))
  }

  private there<Row>(row: Row | undefined): Row | undefined {
    if (row === undefined) this.cut()
    return row
  }

  openCount(turnId: Id): number {
    return this.openNodes(turnId).length
  }

  nodeByKey(turnId: Id, kind: string, key: string): Node | undefined {
    return this.nodesOf(turnId).find((node) => node.kind === kind && node.idempotencyKey === key)
  }

  linksOf(hostTurnId: Id): readonly Link[] {
    return this.ofHost.get(hostTurnId) ?? []
  }

  linkAt(hostTurnId: Id, ordinal: number): Link | undefined {
    return this.linksOf(hostTurnId).find((link) => link.ordinal === ordinal)
  }

  openLinks(hostTurnId: Id): readonly Link[] {
    return this.linksOf(hostTurnId).filter(({ outcome }) => outcome === null)
  }

  turnsOf(laneId: Id, { last = Number.MAX_SAFE_INTEGER, limit }: { readonly last?: number; readonly limit: number }) {
    const turns = (this.lanes.get(laneId) ?? []).filter(({ ordinal }) => ordinal <= last)
    if (turns.length < limit && (turns[0]?.ordinal ?? 1) > 0) this.cut()
    return limit < 1 ? [] : turns.slice(-limit)
  }

  queuedTurn(laneId: Id): Turn | undefined {
    return this.lanes.get(laneId)?.find(({ state }) => state === 'queued')
  }

  lastSeq(): number {
    return this.data.lastSeq
  }
}

function byId<Row extends { readonly id: Id }>(rows: readonly Row[]): ReadonlyMap<Id, Row> {
  return new Map(rows.map((row) => [row.id, row]))
}

function grouped<Row extends { readonly ordinal: number }>(
  rows: readonly Row[],
  keyOf: (row: Row) => Id,
): ReadonlyMap<Id, readonly Row[]> {
  const groups = new Map<Id, Row[]>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group === undefined) groups.set(keyOf(row), [row])
    else group.push(row)
  }
  for (const group of groups.values()) group.sort((a, b) => a.ordinal - b.ordinal)
  return groups
}
