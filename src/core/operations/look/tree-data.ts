// The rows of a tree as data, for programs that show it as those with the store do.
//
// Called by: the operations `treeData` and `trees`, for the routes of `/v1/trees`.
// Must stay true:
//   - Authority does not leave the process: rows come without ceilings, without attributes for tools, without request hashes.
//   - The answer is bounded: a page ends at 8 MB of rows, and of a tree with too many turns only the newest and the open ones are given.

import { InputError } from '../../base/error.ts'
import { jsonBytes } from '../../base/page/json-bytes.ts'
import { PAGE_BYTES, PageRoom } from '../../base/page/room.ts'
import { isLong, shortened, shortNode } from '../../conversation/data/by-reference.ts'
import { idsUpward, type StoreReader, type TreeReader } from '../../graph/reader.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../../graph/rows.ts'
import { look } from '../../store/look.ts'

/** The rows of a tree at one moment. */
export interface TreeData {
  readonly rootId: Id
  /** The `seq` of its last event. */
  readonly lastSeq: number
  readonly conversations: readonly Conversation[]
  readonly turns: readonly Turn[]
  readonly nodes: readonly Node[]
  readonly edges: readonly Edge[]
  readonly links: readonly Link[]
  /** True where only the open nodes and delegations are given; of a tree with many turns or long texts, only the newest turns and open ones. */
  readonly isCut: boolean
  /** The `after` of the next page, which has further turns and nodes; null where there is none. */
  readonly next: string | null
}

/** Which rows of a tree to give. */
export interface TreeQuery {
  /** All nodes, page by page, or the open ones. Default: all. */
  readonly nodes?: 'all' | 'open'
  /** The `next` of the page before. */
  readonly after?: string
  /** True: the newest turns of the root with all that they delegated, as far as they fit into a page, and what is open. */
  readonly newest?: boolean
}

const MOST_TURNS = 1_000
/** A larger tree is given with so many of the root's newest turns, and the open ones. */
const NEWEST_TURNS = 50
const PAGE = 500

/** Reads a page of a tree: its rows in the order of its conversations, or only what is open and what is newest. */
export async function readTreeData(store: StoreReader, rootId: Id, query: TreeQuery = {}): Promise<TreeData> {
  const { nodes = 'all', after, newest = false } = query
  if (newest) return readNewest(store, rootId, { lanes: [rootId], limit: MOST_TURNS, isWhole: true, bytes: PAGE_BYTES })
  const root = await look(store, rootId, (tree) => tree.conversation(rootId))
  const isLong = (root?.turnCount ?? 0) > MOST_TURNS
  const conversations = isLong ? undefined : await conversationsOf(store, rootId)
  if (conversations === undefined) return readNewest(store, rootId, { ...OPEN, lanes: [rootId], limit: NEWEST_TURNS })
  if (nodes === 'all') return readPage(store, rootId, conversations, after)
  return readNewest(store, rootId, { ...OPEN, lanes: lanesOf(rootId, conversations), limit: MOST_TURNS })
}

/** Reads what is open of a tree, and turns of its conversations as far as little has to be read for them: for lists of trees. */
export async function readTreeInShort(store: StoreReader, rootId: Id): Promise<TreeData> {
  const root = await look(store, rootId, (tree) => tree.conversation(rootId))
  const conversations = (root?.turnCount ?? 0) > MOST_TURNS ? undefined : await conversationsOf(store, rootId)
  const lanes = conversations === undefined ? [rootId] : lanesOf(rootId, conversations)
  return readNewest(store, rootId, { ...OPEN, lanes, limit: MOST_TURNS, bytes: SHORT_BYTES })
}

const SHORT_BYTES = 1_000_000
const OPEN = { isWhole: false, bytes: PAGE_BYTES } as const

function lanesOf(rootId: Id, conversations: readonly Conversation[]): readonly Id[] {
  return [rootId, ...conversations.flatMap(({ id }) => (id === rootId ? [] : [id]))]
}

/** Where a page begins: at a turn, or at a node of one. */
interface TreePlace {
  readonly conversationId: Id
  readonly ordinal: number
  /** Null for the turn itself. */
  readonly node: number | null
}

async function readPage(
  store: StoreReader,
  rootId: Id,
  conversations: readonly Conversation[],
  after: string | undefined,
): Promise<TreeData> {
  const from = after === undefined ? undefined : placeIn(after)
  const page = new TreePage()
  const first = from === undefined ? 0 : conversations.findIndex(({ id }) => id === from.conversationId)
  if (first < 0) throw badCursor()
  for (const { id, turnCount } of conversations.slice(first)) {
    const isFrom = id === from?.conversationId
    for (let ordinal = isFrom ? from.ordinal : 0; ordinal < turnCount && page.next === null; ordinal++) {
      const node = isFrom && ordinal === from.ordinal ? from.node : null
      await look(store, rootId, (tree) => page.read(tree, { conversationId: id, ordinal, node }))
    }
  }
  const { turns, nodes, edges, links, next } = page
  const lastSeq = await look(store, rootId, (tree) => tree.lastSeq(rootId))
  const rows = after === undefined ? conversations.map(withoutCeiling) : []
  return { rootId, lastSeq, conversations: rows, turns, nodes, edges, links, isCut: false, next }
}

/** Rows of a page while they are being read. */
class TreePage {
  readonly turns: Turn[] = []
  readonly nodes: Node[] = []
  readonly edges: Edge[] = []
  readonly links: Link[] = []
  next: string | null = null
  private readonly room = new PageRoom()

  /** Adds a turn with its rows, as far as they fit. Rows are read first: the read may begin again. */
  read(tree: TreeReader, place: TreePlace): void {
    const [turn] = tree.turnsOf(place.conversationId, { last: place.ordinal, limit: 1 })
    if (turn === undefined || turn.ordinal !== place.ordinal) return
    const [all, links] = [tree.nodesOf(turn.id), tree.linksOf(turn.id)]
    const nodes = all.map((node) => ({ node, edges: tree.edgesFrom(node.id) }))
    if (place.node === null) this.addTurn(turnView(turn), links, place)
    for (const { node, edges } of nodes) {
      if (this.next === null && node.ordinal >= (place.node ?? 0)) this.addNode(shortNode(node), edges, place)
    }
  }

  private addTurn(turn: Turn, links: readonly Link[], place: TreePlace): void {
    if (!this.takes([turn, links], place)) return
    this.turns.push(turn)
    this.links.push(...links)
  }

  private addNode(node: Node, edges: readonly Edge[], place: TreePlace): void {
    if (!this.takes([node, edges], { ...place, node: node.ordinal })) return
    this.nodes.push(node)
    this.edges.push(...edges)
  }

  private takes(rows: unknown, { conversationId, ordinal, node }: TreePlace): boolean {
    const fits = this.room.take(jsonBytes(rows, this.room.left))
    if (!fits) this.next = [conversationId, ordinal, node ?? 't'].join('.')
    return fits
  }
}

function placeIn(text: string): TreePlace {
  const [, conversationId, ordinal, node] = /^([0-9a-f-]{36})\.(\d{1,15})\.(t|\d{1,15})$/.exec(text) ?? []
  if (conversationId === undefined) throw badCursor()
  return { conversationId, ordinal: Number(ordinal), node: node === 't' ? null : Number(node) }
}

function badCursor(): InputError {
  return new InputError('invalid_input', 'after is the `next` of the page before.')
}

interface NewestOf {
  /** The conversations whose newest turns are read, as far as they fit. */
  readonly lanes: readonly Id[]
  /** The most turns of each. */
  readonly limit: number
  /** With all nodes of these turns, and with the turns that they delegated. */
  readonly isWhole: boolean
  /** The most bytes of rows to read. */
  readonly bytes: number
}

/** Reads what is open of a tree, and the newest turns. */
async function readNewest(store: StoreReader, rootId: Id, newest: NewestOf): Promise<TreeData> {
  const open = await store.openTurns(MOST_TURNS, rootId)
  return look(store, rootId, (tree) => {
    const whole = newestTurns(tree, newest)
    const turns = new Map(whole)
    const runs = open.flatMap(({ id }) => [...idsUpward((turnId) => tree.link(turnId), id)])
    for (const turn of runs.flatMap((id) => tree.turn(id) ?? [])) turns.set(turn.id, turn)
    const ids = new Set([rootId, ...newest.lanes, ...[...turns.values()].map(({ conversationId }) => conversationId)])
    const room = new PageRoom()
    const isGiven = (id: Id) => newest.isWhole && whole.has(id)
    return {
      rootId,
      lastSeq: tree.lastSeq(rootId),
      conversations: [...ids].flatMap((id) => tree.conversation(id) ?? []).map(withoutCeiling),
      turns: [...turns.values()].map(turnView),
      nodes: [...turns.keys()].flatMap((id) =>
        (isGiven(id) ? tree.nodesOf(id) : tree.openNodes(id)).map((node) => nodeWithin(node, room)),
      ),
      edges: [],
      links: [...turns.keys()].flatMap((id) => [...(isGiven(id) ? tree.linksOf(id) : tree.openLinks(id))]),
      isCut: true,
      next: null,
    }
  })
}

/** The newest turns of these conversations whose rows fit. */
function newestTurns(tree: TreeReader, { lanes, limit, isWhole, bytes }: NewestOf): Map<Id, Turn> {
  const room = new PageRoom(bytes)
  const found = new Map<Id, Turn>()
  const add = (turn: Turn): boolean => {
    const fits = room.take(jsonBytes([turn.input, tree.nodesOf(turn.id)], room.left))
    if (fits) found.set(turn.id, turn)
    if (fits && isWhole) for (const { id } of tree.linksOf(turn.id)) addChild(id)
    return fits
  }
  const addChild = (id: Id) => {
    const child = tree.turn(id)
    if (child !== undefined) add(child)
  }
  for (const id of lanes) {
    let last = (tree.conversation(id)?.turnCount ?? 0) - 1
    for (let count = 0; count < limit && last >= 0; count++) {
      const [turn] = tree.turnsOf(id, { last, limit: 1 })
      if (turn === undefined || !add(turn)) break
      last = turn.ordinal - 1
    }
  }
  return found
}

/** A node of an answer that has one page: with the beginnings of its texts where the page is full. */
function nodeWithin(node: Node, room: PageRoom): Node {
  if (room.take(jsonBytes(node, room.left))) return shortNode(node)
  const { input, output, metadata } = node
  return { ...node, input: shortened(input), output: shortened(output), metadata: shortened(metadata) }
}

function withoutCeiling(row: Conversation): Conversation {
  return { ...row, ceiling: [] }
}

function turnView(row: Turn): Turn {
  const input = isLong(row.input) ? shortened(row.input) : row.input
  return { ...row, input, ceiling: [], attributes: null, requestHash: null }
}

/** The conversations of a tree; undefined where it has too many turns. */
async function conversationsOf(store: StoreReader, rootId: Id): Promise<readonly Conversation[] | undefined> {
  const rows: Conversation[] = []
  for (let after: Id | undefined; ; ) {
    const page = await store.conversations({ rootId, limit: PAGE, ...(after === undefined ? {} : { after }) })
    rows.push(...page)
    after = page.at(-1)?.id
    if (rows.reduce((sum, { turnCount }) => sum + turnCount, 0) > MOST_TURNS) return undefined
    if (page.length < PAGE) return rows
  }
}
