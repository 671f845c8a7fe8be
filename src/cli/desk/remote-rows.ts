// The rows of a server, read as commands read those of a store.
//
// Stays true:
// - What was read is used again for a second at most, and not after this desk has changed something.

import { setTimeout as sleep } from 'node:timers/promises'
import type { FoundIds, Tombstone, TreeData, TreeEvents, TreeReader, Turn } from '../../doors/rows.ts'
import type { Id } from '../../index.ts'
import type { LegateClient, QueryValues } from '../../server/client/index.ts'
import { ClientError } from '../../server/client/index.ts'
import { note } from '../terminal/output.ts'
import type { DeskArchive, DeskRows, DeskTree } from './desk.ts'
import { TreeCopy } from './tree-copy.ts'

const FRESH_MS = 1_000
const MOST_TREES = 200
const MOST_NODES = 20_000
const MOST_EVENTS = 1_000
const WHOLE_ID = 36
const LONGEST_WAIT_MS = 10_000
const MOST_TRIES = 30

const CUT =
  'This tree is too large to be read whole through a server: of old runs, rows are left out. A command with --store on the machine of the server reads all of it.'

/** The last page of a record: the events after `after`. */
interface RecordEnd extends TreeEvents {
  readonly after: number
  readonly at: number
}

interface Kept {
  readonly at: number
  readonly answer: Promise<unknown>
}

/** Reads rows over the API. */
export class RemoteRows implements DeskRows {
  private readonly client: LegateClient
  private readonly kept: Map<string, Kept> = new Map()
  /** Which tree has which id, as far as this desk has seen. */
  private readonly places: Map<Id, Id> = new Map()
  private readonly engines: Set<Id> = new Set()
  private readonly ends: Map<Id, RecordEnd> = new Map()
  /** The last `seq` of each tree that was read. */
  private readonly heads: Map<Id, number> = new Map()
  private isCutNoted = false
  readonly archive: DeskArchive

  constructor(client: LegateClient) {
    this.client = client
    const found = new Map<Id, Tombstone>()
    this.archive = {
      tombstone: (id) => found.get(id),
      tombstones: () => [...found.values()],
    }
    this.remember = (deleted) => {
      if (deleted !== null) found.set(deleted.id, deleted.tombstone)
    }
  }

  private readonly remember: (deleted: FoundIds['deleted']) => void

  /** Forgets what was read: the next look sees what was changed. */
  forget(): void {
    this.kept.clear()
    this.ends.clear()
  }

  /** Reads a path, or gives what it answered a moment ago. */
  get<Answer>(path: string, query: QueryValues = {}): Promise<Answer> {
    const name = `${path} ${JSON.stringify(query)}`
    const known = this.kept.get(name)
    if (known !== undefined && Date.now() - known.at < FRESH_MS) return known.answer as Promise<Answer>
    const answer = this.patiently(() => this.client.request<Answer>(path, { query }))
    this.kept.set(name, { at: Date.now(), answer })
    return answer
  }

  /** Waits as long as the server says where it is asked too often: a list of many runs needs many answers. */
  async patiently<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    for (let tries = MOST_TRIES; ; tries--) {
      try {
        return await ask()
      } catch (error) {
        const wait = error instanceof ClientError && error.code === 'too_many' ? error.retryAfterMs : null
        if (wait === null || wait > LONGEST_WAIT_MS || tries === 0) throw error
        await sleep(wait)
      }
    }
  }

  async tree(rootId: Id): Promise<TreeReader> {
    return new TreeCopy((await this.dataOf(rootId)) ?? nothingOf(rootId), () => this.noteCut())
  }

  /** Says once that rows were asked for which the server has not given. */
  private noteCut(): void {
    if (!this.isCutNoted) note(`legate: ${CUT}`)
    this.isCutNoted = true
  }

  async rootOf(id: Id): Promise<Id | undefined> {
    return this.places.get(id) ?? (await this.dataOf(id))?.rootId
  }

  async findIds(ending: string): Promise<FoundIds['found']> {
    // An id has no other characters, and a server refuses them.
    if (!/^[0-9a-f-]{4,36}$/.test(ending)) return []
    const { found, deleted } = await this.get<FoundIds>('/v1/find', { ending })
    this.remember(deleted)
    return found.length === 0 && ending.length === WHOLE_ID ? this.placeOf(ending) : found
  }

  /** Who does not see all trees finds ids in the newest ones only; a whole id leads to the tree itself. */
  private async placeOf(id: Id): Promise<FoundIds['found']> {
    const data = await this.dataOf(id)
    if (data === undefined) return []
    if (data.conversations.some((row) => row.id === id)) return [{ id, type: 'conversation' }]
    return [{ id, type: data.turns.some((row) => row.id === id) ? 'turn' : 'node' }]
  }

  async newestTrees(query: { readonly limit: number; readonly before?: Id }): Promise<readonly DeskTree[]> {
    const trees: TreeData[] = []
    for (let at: typeof query = query; ; ) {
      const limit = Math.min(query.limit, MOST_TREES) - trees.length
      const page = await this.get<TreesAnswer>('/v1/trees', { ...at, limit })
      trees.push(...page.trees)
      if (page.next === null || page.trees.length >= limit) break
      at = { ...query, before: page.next }
    }
    for (const data of trees) this.learn(data)
    return trees.map((data) => ({
      rootId: data.rootId,
      tree: new TreeCopy(data),
      conversations: async () => data.conversations,
      whole: () => this.tree(data.rootId),
    }))
  }

  async roots(query: { readonly limit: number; readonly before?: Id }) {
    const trees = await this.newestTrees(query)
    return trees.flatMap(({ rootId, tree }) => tree.conversation(rootId) ?? [])
  }

  async openRoots(): Promise<readonly Turn[]> {
    const trees = await this.openTrees()
    for (const data of trees) this.learn(data)
    return trees.flatMap(({ turns, conversations }) => {
      const own = new Set(conversations.filter(({ type }) => type === 'user').map(({ id }) => id))
      return turns.filter(({ state, conversationId }) => state !== 'ended' && own.has(conversationId))
    })
  }

  private async openTrees(): Promise<readonly TreeData[]> {
    const found: TreeData[] = []
    for (let before: QueryValues = {}; ; ) {
      const query = { state: 'open', limit: MOST_TREES, ...before }
      const { trees, next } = await this.get<TreesAnswer>('/v1/trees', query)
      found.push(...trees)
      if (next === null) return found
      before = { before: next }
    }
  }

  async openTurns(limit: number, rootId?: Id): Promise<readonly Turn[]> {
    const data = rootId === undefined ? undefined : await this.dataOf(rootId)
    return (data?.turns ?? []).filter(({ state }) => state !== 'ended').slice(0, limit)
  }

  async conversations({ rootId, after, limit }: { readonly rootId?: Id; readonly after?: Id; readonly limit: number }) {
    const data = rootId === undefined ? undefined : await this.dataOf(rootId)
    const rows = [...(data?.conversations ?? [])].sort((a, b) => (a.id < b.id ? -1 : 1))
    return rows.filter(({ id }) => after === undefined || id > after).slice(0, limit)
  }

  async events(rootId: Id, after: number, limit: number): Promise<TreeEvents['events']> {
    const from = Math.max(0, after)
    const end = this.endOf(rootId)
    if (end !== undefined && from >= end.after) return end.events.filter(({ seq }) => seq > from).slice(0, limit)
    return (await this.eventPage(rootId, from, Math.min(limit, MOST_EVENTS))).events
  }

  private async eventPage(rootId: Id, after: number, limit: number): Promise<TreeEvents> {
    const page = await this.get<TreeEvents>(pathOf(rootId, '/events'), { after, limit })
    if (page.next === null) this.ends.set(rootId, { ...page, after, at: Date.now() })
    return page
  }

  /** The last page of the record of a tree, where it was read a moment ago and no later event is known since. */
  private endOf(rootId: Id): RecordEnd | undefined {
    const end = this.ends.get(rootId)
    if (end === undefined || Date.now() - end.at >= FRESH_MS) return undefined
    const last = end.events.at(-1)?.seq ?? end.after
    return last < (this.heads.get(rootId) ?? 0) ? undefined : end
  }

  async blocks(rootId: Id): Promise<TreeEvents['blocks']> {
    const end = this.endOf(rootId)
    if (end !== undefined) return end.blocks
    const last = (await this.dataOf(rootId))?.lastSeq ?? 0
    for (let after = last; ; ) {
      const { blocks, next } = await this.eventPage(rootId, after, MOST_EVENTS)
      if (next === null) return blocks
      after = next
    }
  }

  /** Who works on what is for the processes of the store to know. */
  claimedBy(): readonly [] {
    return []
  }

  private async dataOf(id: Id): Promise<TreeData | undefined> {
    try {
      const data = await this.wholeTree(pathOf(this.places.get(id) ?? id))
      this.learn(data)
      return data
    } catch (error) {
      if (error instanceof ClientError && error.status === 404) return undefined
      throw error
    }
  }

  /** All pages of a tree; of a tree with too many nodes, what is open. */
  private async wholeTree(path: string): Promise<TreeData> {
    const first = await this.get<TreeData>(path)
    const whole = { ...first, turns: [...first.turns], nodes: [...first.nodes] }
    const [edges, links] = [[...first.edges], [...first.links]]
    for (let after = first.next; after !== null; ) {
      if (whole.nodes.length > MOST_NODES) return this.get<TreeData>(path, { nodes: 'open' })
      const page: TreeData = await this.get<TreeData>(path, { after })
      for (const row of page.turns) whole.turns.push(row)
      for (const row of page.nodes) whole.nodes.push(row)
      for (const row of page.edges) edges.push(row)
      for (const row of page.links) links.push(row)
      after = page.next
    }
    return { ...whole, edges, links, next: null }
  }

  /** Those that have claimed nodes in the trees that were read. */
  seenProcesses() {
    return Array.from(this.engines, (id) => ({ ...UNKNOWN_PROCESS, id }))
  }

  private learn({ rootId, lastSeq, conversations, turns, nodes }: TreeData): void {
    this.heads.set(rootId, lastSeq)
    for (const { engineId } of nodes) if (engineId !== null) this.engines.add(engineId)
    for (const rows of [conversations, turns, nodes]) for (const { id } of rows) this.places.set(id, rootId)
  }
}

const UNKNOWN_PROCESS = {
  pid: 0,
  isAlive: true,
  isDraining: false,
  definitions: null,
  queue: null,
  host: null,
  startedAt: null,
  heardAt: null,
  agents: null,
  versions: null,
  sources: [],
  running: null,
} as const

interface TreesAnswer {
  readonly trees: readonly TreeData[]
  readonly next: Id | null
}

function pathOf(id: Id, rest = ''): string {
  return `/v1/trees/${encodeURIComponent(id)}${rest}`
}

function nothingOf(rootId: Id): TreeData {
  return { rootId, lastSeq: 0, conversations: [], turns: [], nodes: [], edges: [], links: [], isCut: false, next: null }
}
