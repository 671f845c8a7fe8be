import type { Commit } from '../../graph/commit.ts'
import type { Reader } from '../../graph/reader.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../../graph/rows.ts'
import { foreignRow, knownEdge, requireNoTreeRows, staleRow, takenKey, unknownTree, wrongEdge } from '../conflict.ts'

/**
 * Throws ConflictError unless all rows may be put. `stored` must be what is stored until the commit is written. Writing
 * itself refuses a new row whose id is taken; `asks` says whether that is asked too. Returns what it worked with.
 */
export function checkCommit(
  commit: Commit,
  stored: Reader,
  { hasTree, asks }: { hasTree: boolean; asks: boolean },
): unknown {
  if (commit.rootId === null) return requireNoTreeRows(commit)
  if (!hasTree && !commit.conversations.some(({ id }) => id === commit.rootId)) throw unknownTree(commit.rootId, commit)
  const check = new Check(commit.rootId, stored, asks)
  for (const row of commit.conversations) check.conversation(row)
  for (const row of commit.turns) check.turn(row)
  for (const row of commit.nodes) check.node(row)
  for (const row of commit.links) check.link(row)
  for (const edge of commit.edges) check.edge(edge)
  return check
}

/** Rows that were checked count as stored for those that come after them. */
class Check {
  private readonly rootId: Id
  private readonly stored: Reader
  private readonly asks: boolean
  private readonly conversations = new Map<Id, Conversation>()
  private readonly turns = new Map<Id, Turn>()
  private readonly nodes = new Map<Id, Node>()
  private readonly links = new Map<Id, Link>()
  private readonly names = new Set<string>()

  constructor(rootId: Id, stored: Reader, asks: boolean) {
    this.rootId = rootId
    this.stored = stored
    this.asks = asks
  }

  conversation(row: Conversation): void {
    const before = this.conversations.get(row.id) ?? (this.mayBe(row) ? this.stored.conversation(row.id) : undefined)
    expectVersion('conversations', row, before)
    if (row.rootId !== this.rootId || (before ?? row).rootId !== this.rootId) throw foreignRow('conversations', row.id)
    this.conversations.set(row.id, row)
  }

  turn(row: Turn): void {
    const before = this.turns.get(row.id) ?? (this.mayBe(row) ? this.stored.turn(row.id) : undefined)
    expectVersion('turns', row, before)
    const home = this.conversations.get(row.conversationId) ?? this.stored.conversation(row.conversationId)
    const isOurs = row.rootId === this.rootId && home?.rootId === this.rootId
    if (!isOurs || !isSamePlace(row, before ?? row)) throw foreignRow('turns', row.id)
    this.turns.set(row.id, row)
  }

  node(row: Node): void {
    const before = this.nodes.get(row.id) ?? (this.mayBe(row) ? this.stored.node(row.id) : undefined)
    expectVersion('nodes', row, before)
    const turn = this.turns.get(row.turnId) ?? this.stored.turn(row.turnId)
    const isOurs = row.rootId === this.rootId && turn?.rootId === this.rootId
    const isThere = turn?.conversationId === row.conversationId && row.turnId === (before ?? row).turnId
    if (!isOurs || !isThere) throw foreignRow('nodes', row.id)
    if (before === undefined && row.idempotencyKey !== null) this.key(row, row.idempotencyKey)
    this.nodes.set(row.id, row)
  }

  link(row: Link): void {
    const before = this.links.get(row.id) ?? (this.mayBe(row) ? this.stored.link(row.id) : undefined)
    expectVersion('links', row, before)
    const host = this.turns.get(row.hostTurnId) ?? this.stored.turn(row.hostTurnId)
    const isOurs = row.rootId === this.rootId && host?.rootId === this.rootId
    const isThere = host?.conversationId === row.hostConversationId && row.hostTurnId === (before ?? row).hostTurnId
    if (!isOurs || !isThere) throw foreignRow('links', row.id)
    this.links.set(row.id, row)
  }

  edge(edge: Edge): void {
    const [from, to] = [this.nodes.get(edge.from), this.nodes.get(edge.to)]
    const ends = [from ?? this.stored.node(edge.from), to ?? this.stored.node(edge.to)]
    const isInside = ends.every((node) => node?.conversationId === edge.conversationId && node.rootId === edge.rootId)
    if (!isInside || edge.rootId !== this.rootId || edge.from === edge.to) throw wrongEdge(edge)
    const isKnown = from?.version !== 1 && this.stored.edgesFrom(edge.from).some((other) => isSameEdge(other, edge))
    if (isKnown || !this.isFirst(`${edge.type} ${edge.from} ${edge.to}`)) throw knownEdge(edge)
  }

  private key(row: Node, key: string): void {
    const isNewTurn = this.turns.get(row.turnId)?.version === 1
    const isTaken = !isNewTurn && this.stored.nodeByKey(row.turnId, row.kind, key) !== undefined
    if (isTaken || !this.isFirst(`key ${row.turnId} ${row.kind}\n${key}`)) throw takenKey(row)
  }

  /** Must be asked whether it is stored? */
  private mayBe({ version }: { readonly version: number }): boolean {
    return version !== 1 || this.asks
  }

  private isFirst(name: string): boolean {
    if (this.names.has(name)) return false
    this.names.add(name)
    return true
  }
}

function expectVersion(
  table: string,
  row: { readonly id: Id; readonly version: number },
  before: { readonly version: number } | undefined,
): void {
  if (row.version < 1 || row.version - 1 !== (before?.version ?? 0)) throw staleRow(table, row)
}

function isSamePlace(row: Turn, before: Turn): boolean {
  return row.conversationId === before.conversationId && row.laneId === before.laneId && row.ordinal === before.ordinal
}

function isSameEdge(a: Edge, b: Edge): boolean {
  return a.to === b.to && a.type === b.type
}
