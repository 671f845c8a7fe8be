// A commit in the making: the stored rows, with the changes of one rule on top.
//
// Owns:      the changes of one plan (rows, edges, events), claims for the engine, and the list of turns to check for an end.
// Called by: the ledger makes one per attempt and turns it into a commit; every function of `rules` reads and writes it. Some
//            readers use a draft without committing it, to ask the rules a question.
// Must stay true:
//   - A draft changes nothing by itself: only the commit of `toCommit` reaches the store, whole or not at all.
//   - It reads one state of the store. A row that another writer changed since then makes the commit fail, never the rule.
//   - States change only along the table of `kinds`; a row's version grows by one per draft, however often it changes.

import { added, NONE } from '../base/collections.ts'
import { LegateError, NotFoundError } from '../base/error.ts'
import { freshId, freshIds } from '../base/id.ts'
import { type Own, patched } from '../base/keep-shape.ts'
import type { Claims, Missing } from './commit.ts'
import { type Commit, type CommitKind, spentIn, type Wake } from './commit.ts'
import type { EventBody, EventRow } from './event.ts'
import { BUILT_IN_KINDS, type Kinds, mayBecome } from './kinds.ts'
import type { TreeReader } from './reader.ts'
import { copyOfConversation, copyOfLink, copyOfNode, copyOfTurn, NEW_NODE } from './rows.made.ts'
import type { Body, Conversation, Edge, EdgeType, Id, Link, Node, NodeState, Turn } from './rows.ts'

export interface DraftOptions {
  /** The tree that it changes: to its rule, rows of other trees do not exist. */
  readonly rootId?: Id
  readonly claims?: Claims | null
  readonly kinds?: Kinds
  /** The source of random words for fresh ids: see `Scheduler`. */
  readonly random?: (() => number) | undefined
}

export type NewNode = Pick<Node, 'id' | 'kind'> & Partial<Node>

/**
 * A commit in the making: stored rows with this draft's changes on top. Rules read and write it; nothing happens until
 * `toCommit` is applied. A row is copied when it is first changed; from then on the draft's own copy changes in place,
 * so a rule that needs an old value takes it before.
 */
export class Draft {
  /** Nodes that this draft claimed for its own engine. */
  started: readonly Node[] = NONE
  /** Running nodes that this draft asks to stop. */
  readonly aborted: Id[] = []
  /** True when this draft ended a turn. */
  turnEnded = false
  /** The earliest moment at which something in this draft becomes due. */
  dueAt: number = Number.POSITIVE_INFINITY
  /** The node that ended last in this draft, if nothing comes after it. */
  lastLeaf: Node | undefined
  /** Turns in which something ended: `endTurns` looks whether they are over, once per plan. */
  private touched: readonly Id[] = NONE
  readonly stored: TreeReader
  /** The reason why this draft leaves a runnable node that no engine has claimed. */
  missing: Missing | null = null
  private readonly rootId: Id | null
  private readonly random: (() => number) | undefined
  private readonly plannedOn: number | undefined
  readonly now: number
  readonly kinds: Kinds
  private readonly claims: Claims | null
  private readonly conversations: TableChanges<Conversation> = new TableChanges()
  private readonly turns: TableChanges<Turn> = new TableChanges()
  private readonly nodes: TableChanges<Node> = new TableChanges()
  private readonly links: TableChanges<Link> = new TableChanges()
  /** The rows that were read last: most rules ask for them again. Nothing else is stored while a draft is made. */
  private readTurn: Turn | undefined
  private readConversation: Conversation | undefined
  /** Work of this process as soon as the commit is stored, before anybody hears of the commit. */
  effects: readonly (() => void)[] = NONE
  private edges: readonly Edge[] = NONE
  private bodies: readonly Body[] = NONE
  private dropBlocks: readonly Id[] = NONE
  private readonly events: EventRow[] = []

  constructor(stored: TreeReader, now: number, options: DraftOptions = {}) {
    const { rootId = null, claims = null, kinds = BUILT_IN_KINDS, random } = options
    this.stored = stored
    this.rootId = rootId
    this.random = random
    this.plannedOn = stored.writes?.()
    this.now = now
    this.claims = claims
    this.kinds = kinds
  }

  conversation(id: Id): Conversation {
    return this.conversations.get(id) ?? this.storedConversation(id) ?? missing('conversation', id)
  }

  turn(id: Id): Turn {
    return this.turns.get(id) ?? this.storedTurn(id) ?? missing('turn', id)
  }

  node(id: Id): Node {
    return this.nodes.get(id) ?? this.ownTree(this.stored.node(id)) ?? missing('node', id)
  }

  findNode(id: Id): Node | undefined {
    return this.nodes.get(id) ?? this.ownTree(this.stored.node(id))
  }

  /** The place of a node among those that this draft adds or changes; -1 for another one. */
  placeOfNode(id: Id): number {
    return this.nodes.find(id)
  }

  /** A fresh id of this moment. */
  freshId(): Id {
    return freshId(this.now, this.random)
  }

  freshIds(count: number): Id[] {
    return freshIds(this.now, count, this.random)
  }

  /** Undefined for a row of another tree. */
  private ownTree<Row extends { readonly rootId: Id }>(row: Row | undefined): Row | undefined {
    return row === undefined || this.rootId === null || row.rootId === this.rootId ? row : undefined
  }

  findTurn(id: Id): Turn | undefined {
    return this.turns.get(id) ?? this.storedTurn(id)
  }

  private storedTurn(id: Id): Turn | undefined {
    if (this.readTurn?.id !== id) this.readTurn = this.ownTree(this.stored.turn(id))
    return this.readTurn
  }

  findConversation(id: Id): Conversation | undefined {
    return this.conversations.get(id) ?? this.storedConversation(id)
  }

  private storedConversation(id: Id): Conversation | undefined {
    if (this.readConversation?.id !== id) this.readConversation = this.ownTree(this.stored.conversation(id))
    return this.readConversation
  }

  findLink(id: Id): Link | undefined {
    return this.links.get(id) ?? this.ownTree(this.stored.link(id))
  }

  link(id: Id): Link {
    return this.findLink(id) ?? missing('link', id)
  }

  openNodes(turnId: Id): Node[] {
    const open: Node[] = []
    for (const node of this.stored.openNodes(turnId)) {
      const current = this.nodes.get(node.id) ?? node
      if (current.endedAt === null) open.push(current)
    }
    for (const node of this.nodes.rows) {
      if (node.version === 1 && node.turnId === turnId && node.endedAt === null) open.push(node)
    }
    return open
  }

  hasOpenNodes(turnId: Id): boolean {
    // Mostly what was changed says so.
    for (const node of this.nodes.rows) if (node.endedAt === null && node.turnId === turnId) return true
    return this.openCount(turnId) > 0
  }

  /** How many nodes of a turn have not ended. */
  openCount(turnId: Id): number {
    let count = this.stored.openCount(turnId)
    for (const node of this.nodes.rows) {
      if (node.turnId !== turnId) continue
      const before = node.version === 1 ? undefined : this.stored.node(node.id)
      const wasOpen = before?.endedAt === null
      const isOpen = node.endedAt === null
      if (isOpen !== wasOpen) count += isOpen ? 1 : -1
    }
    return count
  }

  nodesOf(turnId: Id): Node[] {
    const all = this.stored.nodesOf(turnId).map((node) => this.nodes.get(node.id) ?? node)
    for (const node of this.nodes.rows) if (node.version === 1 && node.turnId === turnId) all.push(node)
    return all
  }

  linksOf(hostTurnId: Id): Link[] {
    const all = this.stored.linksOf(hostTurnId).map((link) => this.links.get(link.id) ?? link)
    for (const link of this.links.rows) if (link.version === 1 && link.hostTurnId === hostTurnId) all.push(link)
    return all
  }

  openLinks(hostTurnId: Id): Link[] {
    const open: Link[] = []
    for (const link of this.stored.openLinks(hostTurnId)) {
      const current = this.links.get(link.id) ?? link
      if (current.outcome === null) open.push(current)
    }
    for (const link of this.links.rows)
      if (link.version === 1 && link.hostTurnId === hostTurnId && link.outcome === null) open.push(link)
    return open
  }

  linkAt(hostTurnId: Id, ordinal: number): Link | undefined {
    const link = this.stored.linkAt(hostTurnId, ordinal)
    if (link !== undefined) return this.links.get(link.id) ?? link
    return this.links.rows.find((own) => own.hostTurnId === hostTurnId && own.ordinal === ordinal)
  }

  /** The first queued turn of a lane that this draft leaves queued. */
  queuedTurn(laneId: Id): Turn | undefined {
    const first = this.stored.queuedTurn(laneId)
    if (first !== undefined && !this.turns.has(first.id)) return first
    return (first === undefined ? undefined : this.laterQueued(laneId)) ?? this.newQueued(laneId)
  }

  edgesFrom(nodeId: Id): readonly Edge[] {
    const stored = this.stored.edgesFrom(nodeId)
    if (this.edges.length === 0) return stored
    const added = this.edges.filter((edge) => edge.from === nodeId)
    return added.length === 0 ? stored : [...stored, ...added]
  }

  private laterQueued(laneId: Id): Turn | undefined {
    const lane = this.stored.turnsOf(laneId, { limit: MOST_QUEUED })
    return lane.map((turn) => this.turns.get(turn.id) ?? turn).find((turn) => turn.state === 'queued')
  }

  private newQueued(laneId: Id): Turn | undefined {
    const { rows } = this.turns
    for (const turn of rows) if (turn.state === 'queued' && turn.version === 1 && turn.laneId === laneId) return turn
    return undefined
  }

  edgesTo(nodeId: Id): readonly Edge[] {
    const stored = this.stored.edgesTo(nodeId)
    const own = this.edges.filter((edge) => edge.to === nodeId)
    return own.length === 0 ? stored : [...stored, ...own]
  }

  turnAt(laneId: Id, ordinal: number): Turn | undefined {
    const [stored] = ordinal < 0 ? [] : this.stored.turnsOf(laneId, { last: ordinal, limit: 1 })
    if (stored?.ordinal === ordinal) return this.turns.get(stored.id) ?? stored
    return this.turns.rows.find((turn) => turn.laneId === laneId && turn.ordinal === ordinal)
  }

  addConversation(conversation: Conversation): void {
    this.conversations.put(conversation)
  }

  addTurn(turn: Turn): void {
    this.turns.put(turn)
  }

  addLink(link: Link): void {
    this.links.put(link)
  }

  addBody(body: Body): void {
    if (this.stored.body(body.hash) === undefined) this.bodies = added(this.bodies, body)
  }

  /** Appends a node to its turn; omitted fields get the values of an ordinary pending node. */
  addNode(turn: Turn, node: NewNode): Node {
    const current = this.turn(turn.id)
    const added = patched(copyOfNode(NEW_NODE, 1), node)
    added.rootId = turn.rootId
    added.conversationId = turn.conversationId
    added.laneId = turn.laneId
    added.turnId = turn.id
    added.ordinal = current.nodeCount
    added.createdAt = this.now
    if (added.versionSet === '') added.versionSet = node.id
    this.nodes.put(added)
    this.ownTurn(current).nodeCount++
    return added
  }

  addEdge(from: Node, to: Node, type: EdgeType): void {
    this.edges = added(this.edges, {
      rootId: from.rootId,
      conversationId: from.conversationId,
      from: from.id,
      to: to.id,
      type,
    })
  }

  changeConversation(row: Conversation, patch: Partial<Conversation>): Conversation {
    return patched(this.ownConversation(row), patch)
  }

  changeTurn(row: Turn, patch: Partial<Turn>): Turn {
    return patched(this.ownTurn(row), patch)
  }

  changeNode(row: Node, patch: Partial<Node>): Node {
    return patched(this.ownNode(row, patch.state), patch)
  }

  changeLink(row: Link, patch: Partial<Link>): Link {
    const own = this.links.get(row.id)
    if (own !== undefined) return patched(own, patch)
    const copy = copyOfLink(row, row.version + 1)
    this.links.put(copy)
    return patched(copy, patch)
  }

  /** The draft's own copy of a row, to write to. Every step makes some of these changes, and patches are slow. */
  ownConversation(row: Conversation): Own<Conversation> {
    const own = this.conversations.get(row.id)
    if (own !== undefined) return own
    const copy = copyOfConversation(row, row.version + 1)
    this.conversations.put(copy)
    return copy
  }

  ownTurn(row: Turn): Own<Turn> {
    const own = this.turns.get(row.id)
    if (own !== undefined) return own
    const copy = copyOfTurn(row, row.version + 1)
    this.turns.put(copy)
    return copy
  }

  /** Throws where the node may not change to the next state. */
  ownNode(row: Node, next?: NodeState): Own<Node> {
    const own = this.nodes.get(row.id)
    const { state } = own ?? row
    if (next !== undefined && next !== state && !mayBecome(state, next)) {
      throw new LegateError('internal', `The node ${row.id} is ${state}: it cannot become ${next}.`)
    }
    if (own !== undefined) return own
    const copy = copyOfNode(row, row.version + 1)
    this.nodes.put(copy)
    return copy
  }

  /**
   * Makes the commit depend on the turn as it is now: the store refuses it when another commit has changed the turn. Use it for
   * a decision on rows that this draft only reads, such as whether all nodes have ended.
   */
  watchTurn(row: Turn): void {
    this.changeTurn(row, {})
  }

  watchConversation(row: Conversation): void {
    this.changeConversation(row, {})
  }

  watchNode(row: Node): void {
    this.changeNode(row, {})
  }

  /** A plan has no effect of its own: it may come to nothing, or be made again. */
  whenStored(effect: () => void): void {
    this.effects = added(this.effects, effect)
  }

  /** Asks the engine to look again at this moment. */
  noteDue(at: number): void {
    if (at < this.dueAt) this.dueAt = at
  }

  /** Marks the turn of an ended node, so that `endTurns` looks whether the turn is over. */
  touch(ended: Node, isLeaf: boolean): void {
    this.lastLeaf = isLeaf ? ended : undefined
    this.touchTurn(ended.turnId)
  }

  touchTurn(turnId: Id): void {
    if (!this.touched.includes(turnId)) this.touched = added(this.touched, turnId)
  }

  get hasTouchedTurns(): boolean {
    return this.touched.length > 0
  }

  /** Takes one marked turn off the list; undefined when there is none. */
  takeTouchedTurn(): Id | undefined {
    const { touched } = this
    return touched === NONE ? undefined : (touched as Id[]).shift()
  }

  /** Drops the node's streamed blocks: readers elsewhere need them only until the node ends. */
  dropBlock(nodeId: Id): void {
    this.dropBlocks = added(this.dropBlocks, nodeId)
  }

  /**
   * Claims a runnable node for this draft's engine if it can run it now; else the node stays pending for a sweep. A sweep claims
   * nodes whose turn it is: they pass those that wait.
   */
  claim(node: Node, isItsTurn = false): Node {
    const { claims } = this
    const missing =
      claims === null ? 'code' : claims.take(node.kind, this.conversation(node.conversationId).agent, isItsTurn)
    if (claims === null || missing !== null) {
      if (this.missing !== 'worker') this.missing = missing
      return node
    }
    const claimed = this.ownNode(node, 'running')
    claimed.state = 'running'
    claimed.engineId = claims.engineId
    claimed.epoch = node.epoch + 1
    claimed.startedAt = this.now
    claimed.wakeAt = null
    this.started = added(this.started, claimed)
    return claimed
  }

  /** Gives back the worker of a node that waits, where this draft took one for it. */
  unclaim({ id }: Node): void {
    if (!this.started.some((node) => node.id === id)) return
    this.started = this.started.filter((node) => node.id !== id)
    this.claims?.giveBack(1)
  }

  event(turn: Turn, nodeId: Id | null, body: EventBody): void {
    const { now: at, events } = this
    const { id: turnId, conversationId } = turn
    // Consecutive events mostly belong to one turn, so its place is reused.
    const last = events.length === 0 ? undefined : events[events.length - 1]
    const isSame = last !== undefined && last.runId === turnId
    const row = isSame ? undefined : this.conversation(conversationId)
    const path = row === undefined ? (last?.path ?? NONE) : row.path
    const parentId = row === undefined ? (last?.parentId ?? null) : this.parentOf(turn, row)
    events.push({ seq: 0, at, conversationId, runId: turnId, nodeId, path, parentId, body })
  }

  /** The run that delegated a turn; null for a lane that a person forked. */
  private parentOf({ id, ordinal }: Turn, { type, parentTurnId }: Conversation): Id | null {
    if (ordinal === 0) return type === 'user' ? null : parentTurnId
    return this.findLink(id)?.hostTurnId ?? null
  }

  get isEmpty(): boolean {
    return (
      this.events.length === 0 &&
      this.nodes.rows.length === 0 &&
      this.turns.rows.length === 0 &&
      this.links.rows.length === 0 &&
      this.conversations.rows.length === 0
    )
  }

  /** `wakes`: whether somebody reads them. */
  toCommit(kind: CommitKind, rootId: Id, id: Id = this.freshId(), wakes = true): Commit {
    return {
      id,
      kind,
      at: this.now,
      rootId,
      conversations: this.conversations.rows,
      turns: this.turns.rows,
      nodes: this.nodes.rows,
      edges: this.edges,
      links: this.links.rows,
      bodies: this.bodies,
      engines: NONE,
      dropEngines: NONE,
      blocks: NONE,
      dropBlocks: this.dropBlocks,
      events: this.events,
      spent: spentIn(this, rootId, { turns: this.turns.rows, events: this.events }),
      // A change by hand is always checked again, so it names no state that it was planned on.
      plannedOn: kind === 'mutate' ? undefined : this.plannedOn,
      wakes: wakes ? this.wakes(id, rootId) : NONE,
    }
  }

  private wakes(id: Id, rootId: Id): readonly Wake[] {
    const isDue = this.dueAt !== Number.POSITIVE_INFINITY
    if (this.missing === null && !isDue) return NONE
    const wakes: Wake[] = this.missing !== null ? [{ id: `${rootId}:${id}`, at: null }] : []
    if (isDue) wakes.push({ id: `${rootId}@${this.dueAt}`, at: this.dueAt })
    return wakes
  }
}

/** How far back in a lane to look for a queued turn when the first one is gone. */
const MOST_QUEUED = 10_000

/** Reports a row that a plan relied on and that is gone: somebody deleted its tree meanwhile. */
function missing(table: string, id: Id): never {
  throw new NotFoundError('not_found', `The ${table} ${id} is not in the store.`, { details: { table, id } })
}

const FEW = 8
/** The rows of one table that a draft adds or changes, in the order they were first put. Most drafts put only a few. */
export class TableChanges<Row extends { readonly id: Id }> {
  rows: readonly Row[] = NONE
  private index: Map<Id, number> | null = null

  get(id: Id): Row | undefined {
    const { rows, index } = this
    if (index !== null) return rows[index.get(id) ?? -1]
    for (const row of rows) if (row.id === id) return row
    return undefined
  }

  has(id: Id): boolean {
    return this.find(id) >= 0
  }

  put(row: Row): void {
    const at = this.find(row.id)
    if (at >= 0) {
      ;(this.rows as Row[])[at] = row
      return
    }
    if (this.rows === NONE) this.rows = [row]
    else (this.rows as Row[]).push(row)
    if (this.index !== null) this.index.set(row.id, this.rows.length - 1)
    else if (this.rows.length > FEW) this.index = new Map(this.rows.map(({ id }, place) => [id, place]))
  }

  /** Its place in `rows`; -1 where it is not there. */
  find(id: Id): number {
    if (this.index !== null) return this.index.get(id) ?? -1
    const { rows } = this
    for (let at = 0; at < rows.length; at++) if (rows[at]?.id === id) return at
    return -1
  }
}
