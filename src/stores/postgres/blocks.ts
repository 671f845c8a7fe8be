import { parseOwnJson } from '../../core/base/json.ts'
import type { LiveBlock, StoredBlock } from '../../core/graph/commit.ts'
import type { Id, Node } from '../../core/graph/rows.ts'
import type { Database } from './connection/database.ts'
import { idOf, keyOf } from './escape.ts'
import type { Trees } from './replica/trees.ts'

/** Writes only for a node that still runs under this claim; its end waits until then, and takes them away. Trees come in the order of commits. */
const ADD = `INSERT INTO @.blocks (node_id, root_id, data) SELECT r.id, b.t, b.x
  FROM ROWS FROM (json_to_recordset($1) AS (i bytea, t bytea, p int, x text)) WITH ORDINALITY AS b(i, t, p, x, o)
  JOIN @.rows r ON r.id = b.i AND r.letter = 'n' AND r.state = 'r' AND r.epoch = b.p ORDER BY b.t, b.o FOR SHARE OF r`
const DROP = 'DELETE FROM @.blocks WHERE node_id = ANY ($1)'
const READ = 'SELECT b, data FROM @.blocks WHERE root_id = $1 AND b > $2 ORDER BY b'
const STAY = `INSERT INTO @.readers (root_id, until) VALUES ($1, now() + interval '10 s')
  ON CONFLICT (root_id) DO UPDATE SET until = excluded.until`
const READERS = 'SELECT root_id FROM @.readers WHERE root_id = ANY ($1) AND until > now()'

/** How often a reader says that it is still there. */
const STAY_MS = 3_000

/** The stream of a node of this process so far. */
interface OwnStream {
  readonly rootId: Id
  readonly epoch: number
  readonly blocks: LiveBlock[]
  /** How many of them are written. */
  written: number
  /** Blocks that were written may be gone: readers must begin anew. */
  isUnsure: boolean
}

export interface BlocksOptions {
  readonly database: Database
  readonly trees: Trees
  /** True for a process whose engine is in this one. */
  readonly isOwn: (engineId: Id) => boolean
}

/**
 * The streams of running nodes. They are written only for trees that somebody in another process reads: such a reader leaves its
 * row, and whoever runs the node writes all of it, then what comes.
 */
export class Blocks {
  private readonly options: BlocksOptions
  private readonly own = new Map<Id, OwnStream>()
  /** Trees that are read elsewhere. */
  private read: ReadonlySet<Id> = new Set()
  /** When this process said last that it reads a tree. */
  private readonly stayed = new Map<Id, number>()

  constructor(options: BlocksOptions) {
    this.options = options
  }

  /** True for a tree that somebody elsewhere reads. */
  isRead(rootId: Id): boolean {
    return this.read.has(rootId)
  }

  async add(blocks: readonly LiveBlock[]): Promise<void> {
    for (const block of blocks) this.keep(block)
    await this.write(({ rootId }) => this.read.has(rootId))
  }

  drop(nodeIds: readonly Id[]): void {
    for (const id of nodeIds) this.own.delete(id)
  }

  /** The database may have been away: what was written is written again. */
  doubt(): void {
    for (const stream of this.own.values()) if (stream.written > 0) stream.isUnsure = true
  }

  /** Asks who reads, and writes for those who came. */
  async look(): Promise<void> {
    this.forgetEnded()
    const roots = new Set([...this.own.values()].map(({ rootId }) => rootId))
    if (roots.size === 0) {
      this.read = new Set()
      return
    }
    const ids = [...roots]
    const found = new Set((await this.options.database.query(READERS, [ids.map(keyOf)])).map(([id]) => idOf(id)))
    this.read = new Set(ids.filter((id) => found.has(id)))
    await this.write(({ rootId }) => this.read.has(rootId))
  }

  async blocks(rootId: Id, after: number): Promise<readonly StoredBlock[]> {
    const { database, isOwn } = this.options
    const running = this.running(rootId)
    if (running.length > 0 && running.every(({ engineId }) => engineId !== null && isOwn(engineId))) return []
    await this.write((stream) => stream.rootId === rootId)
    if (running.length > 0) await this.stay(rootId)
    const rows = await database.query(READ, [keyOf(rootId), after])
    return rows.map(([n, data]) => ({ ...(parseOwnJson(String(data)) as LiveBlock), n: Number(n) }))
  }

  private async stay(rootId: Id): Promise<void> {
    const now = performance.now()
    if (now - (this.stayed.get(rootId) ?? Number.NEGATIVE_INFINITY) < STAY_MS) return
    for (const [id, at] of this.stayed) if (now - at > STAY_MS) this.stayed.delete(id)
    this.stayed.set(rootId, now)
    if (!this.options.database.options.readOnly) await this.options.database.query(STAY, [keyOf(rootId)])
  }

  private running(rootId: Id): Node[] {
    const rows = this.options.trees.known(rootId)?.rows
    if (rows === undefined) return []
    const found: Node[] = []
    for (const { nodes } of rows.openTurns) for (const { row } of nodes) if (row.state === 'running') found.push(row)
    return found
  }

  private keep(block: LiveBlock): void {
    const { nodeId, rootId, epoch } = block
    const known = this.own.get(nodeId)
    if (known !== undefined && known.epoch > epoch) return
    if (known?.epoch === epoch) known.blocks.push(block)
    else this.own.set(nodeId, { rootId, epoch, blocks: [block], written: 0, isUnsure: false })
  }

  private forgetEnded(): void {
    for (const [id, { rootId, epoch }] of this.own) {
      const node = this.options.trees.known(rootId)?.rows.nodes.get(id)?.row
      if (node !== undefined && (node.state !== 'running' || node.epoch !== epoch)) this.own.delete(id)
    }
  }

  /** Writes what is new, of all these streams with one statement. */
  private async write(isWanted: (stream: OwnStream) => boolean): Promise<void> {
    const wanted = [...this.own].filter(([, stream]) => isWanted(stream))
    const unsure = wanted.filter(([, { isUnsure }]) => isUnsure)
    if (unsure.length > 0) await this.options.database.query(DROP, [unsure.map(([id]) => keyOf(id))])
    for (const [id, stream] of unsure) this.restart(id, stream)
    const parts = wanted.flatMap(([, stream]) => unwritten(stream))
    if (parts.length === 0) return
    try {
      await this.options.database.once(ADD, [JSON.stringify(parts)])
    } catch (error) {
      this.doubt()
      throw this.options.database.failure(error)
    }
  }

  /** Readers that have heard some of it begin anew: a `reset` stands before it. */
  private restart(nodeId: Id, stream: OwnStream): void {
    const { rootId, epoch, blocks } = stream
    const first = blocks[0]?.events[0]
    const node = this.options.trees.known(rootId)?.rows.nodes.get(nodeId)?.row
    stream.isUnsure = false
    stream.written = 0
    if (first === undefined || first.type === 'reset') return
    const { seq, at, conversationId, runId, path, parentId } = first
    const place = { seq, at, conversationId, runId, nodeId, path, parentId }
    blocks.unshift({ nodeId, rootId, epoch, events: [{ ...place, type: 'reset', attempt: node?.attempt ?? 1 }] })
  }
}

function unwritten(stream: OwnStream): { i: string; t: string; p: number; x: string }[] {
  const blocks = stream.blocks.slice(stream.written)
  stream.written = stream.blocks.length
  const t = keyOf(stream.rootId)
  return blocks.map((block) => ({ i: keyOf(block.nodeId), t, p: block.epoch, x: JSON.stringify(block) }))
}
