// The truth: rows in memory, the commits of each tree in order, and the laws that each commit must keep.

import { ConflictError } from '../../src/core/base/error.ts'
import { type Commit, emptyCommit } from '../../src/core/graph/commit.ts'
import type { Id, Node } from '../../src/core/graph/rows.ts'
import { conversationText, linkText, nodeText, turnText } from '../../src/core/store/codec/tree-text.ts'
import { memoryStore } from '../../src/core/store/memory/index.ts'
import type { LocalStore } from '../../src/core/store/store.ts'
import {
  type Head,
  Refused,
  type StoredRow,
  type TreePart,
  type WantedRows,
} from '../../src/stores/postgres/replica/transport.ts'
import { type Happening, PATIENCE_MS, type World } from './world.ts'

/** Commits that write a node in the name of the process that runs it. */
const OF_HOLDERS = new Set(['expand', 'spawn', 'result', 'end', 'retry', 'ask', 'reserve', 'deliver'])

/** What a commit shows to have happened. */
const OF_KINDS: Partial<Record<Commit['kind'], Happening>> = {
  say: 'run',
  answer: 'approval',
  cancel: 'cancel',
  expire: 'deadline',
  retry: 'retry',
}

/** A process that sends commits. */
export interface Sender {
  readonly name: string
  /** How far its leases are ahead of the time, because of its clock. */
  readonly leaseSkew: number
}

interface KnownEngine {
  readonly process: Sender
  /** When its lease really ends. */
  readonly leaseEnd: number
  /** When it last renewed its lease too late. */
  readonly lateAt: number
}

interface TreeLog {
  readonly commits: Commit[]
  /** The number of the last event after each commit. */
  readonly seqs: number[]
  /** The latest commit that somebody knows of. */
  acknowledged: number
}

export class SimServer {
  readonly store: LocalStore = memoryStore({ keep: Number.POSITIVE_INFINITY })
  readonly trees: Map<Id, TreeLog> = new Map()
  private readonly world: World
  private readonly known: Map<Id, Head | undefined> = new Map()
  private readonly engines: Map<Id, KnownEngine> = new Map()
  private readonly senders: Map<Sender, number> = new Map()
  commits = 0
  recoveries = 0

  constructor(world: World) {
    this.world = world
  }

  /** Stores a commit once, however often it comes. Throws Refused where rows contradict it. */
  commit(commit: Commit, seen: number | null, from: Sender): Head | undefined {
    if (this.known.has(commit.id)) {
      this.world.happened.add('doubled')
      return this.known.get(commit.id)
    }
    const n = this.trees.get(commit.rootId ?? '')?.commits.length ?? 0
    if (seen !== null && commit.rootId !== null && seen !== n)
      throw this.refusal(commit, 'it was planned on an older tree')
    this.check(commit, from)
    try {
      this.store.commit({ ...commit, plannedOn: undefined })
    } catch (error) {
      if (ConflictError.isInstance(error)) throw this.refusal(commit, error.message)
      throw error
    }
    this.commits++
    this.senders.set(from, this.commitsOf(from) + 1)
    if (TRACES) trace(this.world, commit, from)
    this.noteLeases(commit, from)
    this.note(commit)
    const head = commit.rootId === null ? undefined : this.log(commit, commit.rootId)
    this.known.set(commit.id, head)
    return head
  }

  private refusal({ kind, nodes }: Commit, message: string): Refused {
    const { happened } = this.world
    happened.add('refused')
    const isTaken = nodes.some(({ id, epoch }) => (this.store.node(id)?.epoch ?? 0) > epoch)
    if (isTaken && OF_HOLDERS.has(kind)) happened.add('late result')
    return new Refused(message)
  }

  private note({ kind, links, nodes }: Commit): void {
    const { happened } = this.world
    const what = OF_KINDS[kind]
    if (what !== undefined) happened.add(what)
    if (links.length > 0) happened.add('delegation')
    if (nodes.some(({ state }) => state === 'uncertain')) happened.add('uncertain')
  }

  /** True where a node runs in this process, by the rows. */
  isAtWork(process: Sender): boolean {
    for (const [id, { process: holder }] of this.engines) {
      if (holder === process && this.store.claimedBy(id, 1).length > 0) return true
    }
    return false
  }

  /** How many of the commits came from this process. */
  commitsOf(process: Sender): number {
    return this.senders.get(process) ?? 0
  }

  private noteLeases({ engines, dropEngines }: Commit, process: Sender): void {
    const { now } = this.world
    for (const { id, leaseUntil } of engines) {
      if (dropEngines.includes(id)) continue
      const before = this.engines.get(id)
      const lateAt = before !== undefined && before.leaseEnd <= now ? now : (before?.lateAt ?? 0)
      this.engines.set(id, { process, leaseEnd: leaseUntil - process.leaseSkew, lateAt })
    }
  }

  private log(commit: Commit, rootId: Id): Head {
    const log = this.trees.get(rootId) ?? { commits: [], seqs: [], acknowledged: 0 }
    this.trees.set(rootId, log)
    const n = log.commits.push(commit)
    log.seqs.push(this.store.lastSeq(rootId))
    return { tree: 1, n, seq: this.store.lastSeq(rootId) }
  }

  /** Somebody has heard that this commit is stored. */
  acknowledge(commit: Commit, head: Head | undefined): void {
    const log = this.trees.get(commit.rootId ?? '')
    if (head === undefined || log === undefined) return
    if (log.commits[head.n - 1]?.id !== commit.id) this.world.fail(`an acknowledged ${commit.kind} is not at its place`)
    log.acknowledged = Math.max(log.acknowledged, head.n)
  }

  headOf(rootId: Id): Head | undefined {
    const log = this.trees.get(rootId)
    return log === undefined ? undefined : { tree: 1, n: log.commits.length, seq: log.seqs.at(-1) ?? 0 }
  }

  load(rootId: Id, most: number): TreePart | undefined {
    const whole = this.newer(rootId, { tree: 1, n: 0, seq: 0 })
    if (whole?.rows === undefined || whole.rows.length <= most) return whole
    return { head: whole.head, rows: undefined, bodies: [] }
  }

  newer(rootId: Id, since: Head): TreePart | undefined {
    const log = this.trees.get(rootId)
    const head = this.headOf(rootId)
    if (log === undefined || head === undefined) return undefined
    const part = new PartMaker()
    for (let { n } = since; n < log.commits.length; n++) part.add(log.commits[n] as Commit)
    return part.make(head)
  }

  find(rootId: Id, { ids, lanes, open }: WantedRows): TreePart | undefined {
    const head = this.headOf(rootId)
    if (head === undefined) return undefined
    const { store } = this
    const turns = new Set<Id>()
    const add = (turnId: Id | undefined): void => {
      if (turnId === undefined || turns.has(turnId) || store.turn(turnId) === undefined) return
      turns.add(turnId)
      add(store.link(turnId)?.hostTurnId)
    }
    for (const id of ids) for (const turnId of [id, store.node(id)?.turnId, store.link(id)?.hostTurnId]) add(turnId)
    for (const { laneId, last, limit } of lanes) for (const { id } of store.turnsOf(laneId, { last, limit })) add(id)
    if (open) for (const { id } of store.openTurns(1_000, rootId)) add(id)
    const part = new PartMaker()
    part.add(this.rowsOf(rootId, ids, turns))
    return { ...part.make(head), bodies: [] }
  }

  bodies(_rootId: Id, hashes: readonly string[]): TreePart['bodies'] {
    return hashes.flatMap((hash) => ({ hash, text: this.store.body(hash) ?? '' }))
  }

  private rowsOf(rootId: Id, ids: readonly Id[], turnIds: ReadonlySet<Id>): Commit {
    const { store } = this
    const turns = [...turnIds].flatMap((id) => store.turn(id) ?? [])
    const homes = new Set([rootId, ...ids, ...turns.map(({ conversationId }) => conversationId)])
    const nodes = turns.flatMap(({ id }) => store.nodesOf(id))
    return {
      ...emptyCommit('mutate', 0, rootId),
      conversations: [...homes].flatMap((id) => store.conversation(id) ?? []),
      turns,
      nodes,
      links: turns.flatMap(({ id }) => store.linksOf(id)),
      edges: nodes.flatMap(({ id }) => [...store.edgesFrom(id), ...store.edgesTo(id)]),
    }
  }

  /** The laws that rows alone do not show: who may write what, and who may take what from whom. */
  private check(commit: Commit, from: Sender): void {
    for (const node of commit.nodes) {
      const before = this.store.node(node.id)
      if (before === undefined) continue
      if (before.endedAt !== null && before.state !== node.state && commit.kind !== 'mutate') {
        if (node.version === before.version + 1) this.world.fail(`a ${before.state} node became ${node.state}`)
      }
      if (before.version !== node.version - 1 || before.state !== 'running' || before.engineId === null) continue
      this.checkHolder(commit, { before, node, from })
    }
  }

  private checkHolder({ kind }: Commit, { before, node, from }: NodeChange): void {
    const holder = this.engines.get(before.engineId ?? '')
    if (holder?.process === from) return
    if (kind === 'recover' && holder !== undefined) this.checkRecovery(before, holder)
    if (node.state === 'running') return
    if (OF_HOLDERS.has(kind) && node.startedAt === before.startedAt && node.endedAt !== null) {
      const wasCancelled = this.store.turn(node.turnId)?.cancel != null
      if (!wasCancelled) this.world.fail(`a process wrote the ${kind} of a node that another one runs`)
    }
  }

  /** Whoever recovers a node may run it at once, so it may be running before and after. */
  private checkRecovery({ engineId }: Node, holder: KnownEngine): void {
    this.recoveries++
    this.world.happened.add('recovery')
    // Whoever found it silent may say so a little after it spoke again.
    const wasSilent = this.world.now < holder.lateAt + 2 * PATIENCE_MS
    if (holder.leaseEnd > this.world.now && !wasSilent && this.store.engine(engineId ?? '') !== undefined) {
      this.world.fail('the claim of a living process was taken before its lease was over')
    }
  }
}

const TRACES = process.env['SIM_TRACE'] === '1'

/** One line for each commit, to read what happened. */
function trace({ now }: World, { kind, nodes, turns, engines }: Commit, { name }: Sender): void {
  const states = nodes.map(
    ({ id, kind: what, state, epoch, wakeAt }) => `${id.slice(-4)} ${what} ${state} ${epoch} ${wakeAt ?? ''}`,
  )
  const ends = turns.map(({ id, state, outcome }) => `${id.slice(-4)} ${state} ${outcome?.status ?? ''}`)
  const leases = engines.map(({ id, leaseUntil }) => `${id.slice(-4)} until ${leaseUntil}`)
  process.stderr.write(`${now} ${name} ${kind}: ${[...states, ...ends, ...leases].join('; ')}\n`)
}

interface NodeChange {
  readonly before: Node
  readonly node: Node
  readonly from: Sender
}

/** Collects the newest version of the rows of several commits, in their stored form. */
class PartMaker {
  private readonly rows = {
    c: new Map<Id, StoredRow>(),
    t: new Map<Id, StoredRow>(),
    n: new Map<Id, StoredRow>(),
    l: new Map<Id, StoredRow>(),
  }
  private readonly edges: StoredRow[] = []
  private readonly bodies: TreePart['bodies'][number][] = []
  private readonly turnOf = new Map<Id, Id>()

  add({ conversations, turns, nodes, links, edges, bodies }: Commit): void {
    for (const row of conversations) this.rows.c.set(row.id, storedOf(row, conversationText))
    for (const row of turns) this.rows.t.set(row.id, storedOf(row, turnText))
    for (const row of nodes) this.rows.n.set(row.id, storedOf(row, nodeText))
    for (const row of links) this.rows.l.set(row.id, storedOf(row, linkText))
    for (const { from, to, type, conversationId } of edges) {
      const text = JSON.stringify([[from, to, type[0]]])
      this.edges.push({ letter: 'e', turnId: this.turnOf.get(from) ?? null, conversationId, text })
    }
    this.bodies.push(...bodies)
  }

  make(head: Head): TreePart {
    const { c, t, n, l } = this.rows
    return {
      head,
      rows: [...c.values(), ...t.values(), ...n.values(), ...l.values(), ...this.edges],
      bodies: this.bodies,
    }
  }
}

/** A row is the same object as long as it is not changed, and several processes load it. */
const stored = new WeakMap<object, StoredRow>()

function storedOf<Row extends object>(row: Row, text: (row: Row) => Omit<StoredRow, 'conversationId'>): StoredRow {
  const known = stored.get(row)
  if (known !== undefined) return known
  const made = { ...text(row), conversationId: null }
  stored.set(row, made)
  return made
}
