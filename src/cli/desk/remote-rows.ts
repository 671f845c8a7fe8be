// The rows of a server, read as commands read those of a store.
//
// Stays true:
// - What was read is used again for a second at most, and not after this desk has changed something.

import type { LegateClient, QueryValues } from '../../client/index.ts'
import { ClientError } from '../../client/index.ts'
import type { FoundIds, Tombstone, TreeData, TreeEvents, TreeReader, Turn } from '../../doors/rows.ts'
import type { Id } from '../../index.ts'
import type { DeskArchive, DeskRows, DeskTree } from './desk.ts'
import { TreeCopy } from './tree-copy.ts'

const FRESH_MS = 1_000
const MOST_TREES = 200
const MOST_NODES = 20_000
const MOST_EVENTS = 1_000

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
  }

  /** Reads a path, or gives what it answered a moment ago. */
  get<Answer>(path: string, query: QueryValues = {}): Promise<Answer> {
    const name = `${path} ${JSON.stringify(query)}`
    const known = this.kept.get(name)
    if (known !== undefined && Date.now() - known.at < FRESH_MS) return known.answer as Promise<Answer>
    const answer = this.client.request<Answer>(path, { query })
    this.kept.set(name, { at: Date.now(), answer })
    return answer
  }

  async tree(rootId: Id): Promise<TreeReader> {
    return new TreeCopy((await this.dataOf(rootId)) ?? nothingOf(rootId))
  }

  async rootOf(id: Id): Promise<Id | undefined> {
    return this.places.get(id) ?? (await this.dataOf(id))?.rootId
  }

  async findIds(ending: string): Promise<FoundIds['found']> {
    // An id has no other characters, and a server refuses them.
    if (!/^[0-9a-f-]{4,36}$/.test(ending)) return []
    const { found, deleted } = await this.get<FoundIds>('/v1/find', { ending })
    this.remember(deleted)
    return found
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
    for (let before: QueryValues = {}; found.length < MOST_TREES; ) {
      const query = { state: 'open', limit: MOST_TREES, ...before }
      const { trees, next } = await this.get<TreesAnswer>('/v1/trees', query)
      found.push(...trees)
      if (next === null) return found
      before = { before: next }
    }
    return found
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
    const query = { after: Math.max(0, after), limit: Math.min(limit, MOST_EVENTS) }
    return (await this.get<TreeEvents>(pathOf(rootId, '/events'), query)).events
  }

  async blocks(rootId: Id): Promise<TreeEvents['blocks']> {
    const last = (await this.dataOf(rootId))?.lastSeq ?? 0
    for (let after = last; ; ) {
      const { blocks, next } = await this.get<TreeEvents>(pathOf(rootId, '/events'), { after, limit: MOST_EVENTS })
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

  private learn({ rootId, conversations, turns, nodes }: TreeData): void {
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
