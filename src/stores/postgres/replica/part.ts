import type { TreeReader } from '../../../core/graph/reader.ts'
import type { Id, Turn } from '../../../core/graph/rows.ts'
import { MissingRows } from '../../../core/store/look.ts'
import { memoryReader } from '../../../core/store/memory/scan.ts'
import type { Tables, TurnEntry } from '../../../core/store/memory/tables.ts'
import { LaneList } from '../../../core/store/row-cache.ts'
import type { LaneRange, WantedRows } from './transport.ts'

/**
 * The rows of a large tree that are here. A turn that is here is here with all its rows and its conversation; so are all turns that have not
 * ended. Of lanes, some turns in a row are.
 */
export class PartialRows {
  private readonly lanes = new Map<Id, LaneList<TurnEntry>>()
  /** Ids and ranges that were asked for: what is not here of them does not exist. */
  private readonly asked = new Set<string>()

  /** True where everything of this id is here. */
  has(id: Id): boolean {
    return this.asked.has(id)
  }

  /** The turns of a lane; undefined where they are not all here. */
  turnsOf(range: LaneRange): TurnEntry[] | undefined {
    return this.lanes.get(range.laneId)?.upTo(range.last, range.limit)
  }

  /** True where a range was asked for. */
  hasRange(range: LaneRange): boolean {
    return this.asked.has(nameOf(range))
  }

  /** True for a turn that was made after all that are here of its lane: all its rows are newer. */
  isNext({ laneId, ordinal }: Turn): boolean {
    const [newest] = this.turnsOf({ laneId, last: NEWEST, limit: 1 }) ?? []
    return newest === undefined ? this.lanes.get(laneId)?.isWhole === true : newest.row.ordinal < ordinal
  }

  /** Runs that are not here and that were delegated after this one, by its host or by later turns of the host's lane. */
  after(id: Id, { links, turns, lanes }: Tables, limit: number): Id[] {
    const host = turns.get(links.get(id)?.row.hostTurnId ?? '')
    if (limit === 0 || host === undefined) return []
    const lane = lanes.get(host.row.laneId)?.turns ?? []
    const later = lane.slice(lane.indexOf(host)).flatMap((turn) => turn.links.map(({ row }) => row.id))
    return later.filter((one) => one !== id && turns.get(one) === undefined && !this.has(one)).slice(0, limit)
  }

  /** Others have written: what did not exist may exist now. */
  doubt(): void {
    this.asked.clear()
  }

  /** A lane was made in this process. */
  begin(laneId: Id): void {
    if (!this.lanes.has(laneId)) this.lanes.set(laneId, new LaneList(true))
  }

  /** A turn was added to its lane, or is queued again. */
  put(turn: TurnEntry): void {
    this.lanes.get(turn.row.laneId)?.put(turn)
  }

  /** Takes note of what was asked for and is in these tables now. */
  learn({ ids, lanes }: WantedRows, tables: Tables): void {
    for (const id of ids) this.asked.add(id)
    for (const range of lanes) this.learnLane(range, tables)
  }

  private learnLane(range: LaneRange, tables: Tables): void {
    const { laneId, last, limit } = range
    this.asked.add(nameOf(range))
    const all = tables.lanes.get(laneId)?.turns ?? []
    const found = all.filter(({ row }) => row.ordinal <= last).slice(-limit)
    const known = this.lanes.get(laneId) ?? new LaneList<TurnEntry>(found.length === 0)
    this.lanes.set(laneId, known)
    known.learn(found, last)
  }
}

function nameOf({ laneId, last, limit }: LaneRange): string {
  return `${laneId} ${last} ${limit}`
}

/** Greater than every ordinal. */
export const NEWEST: number = Number.MAX_SAFE_INTEGER

/** Rows that are here, for readers that load what is not. */
export interface PartSource {
  readonly tables: () => Tables
  /** Undefined where the whole tree is here. */
  readonly part: () => PartialRows | undefined
  readonly find: (wanted: WantedRows) => Promise<void>
  readonly writes: () => number
  readonly lastSeq: (rootId: Id) => number
}

/** Reads what is here, and throws `MissingRows` for what may be elsewhere. */
export function partReader({ tables, part, find, writes, lastSeq }: PartSource): TreeReader {
  const here = {
    get tables() {
      return tables()
    },
  }
  const all = memoryReader(here)
  /** Undefined where there is no such row. */
  const missing = (id: Id): undefined => {
    const here = part()
    if (here?.has(id) !== false) return
    throw new MissingRows((ahead = 0) => find({ ...NOTHING, ids: [id, ...here.after(id, tables(), ahead)] }))
  }
  const needNode = (id: Id): void => {
    if (tables().nodes.get(id) === undefined) missing(id)
  }
  const needTurn = (id: Id): void => {
    if (tables().turns.get(id) === undefined) missing(id)
  }
  const turnsOf: TreeReader['turnsOf'] = (laneId, { last = NEWEST, limit }) => {
    const here = part()
    const range = { laneId, last, limit }
    if (here === undefined || limit <= 0) return all.turnsOf(laneId, range)
    const found = here.turnsOf(range)
    if (found !== undefined) return found.map(({ row }) => row)
    if (here.hasRange(range) || isLaneHere(tables(), laneId)) return all.turnsOf(laneId, range)
    throw new MissingRows(() => find({ ...NOTHING, lanes: [range] }))
  }
  return {
    writes,
    conversation: (id) => all.conversation(id) ?? missing(id),
    turn: (id) => all.turn(id) ?? missing(id),
    node: (id) => all.node(id) ?? missing(id),
    // Nobody delegated a turn at the root.
    link: (id) => all.link(id) ?? (isAtRoot(tables(), id) ? undefined : missing(id)),
    // A text comes with the nodes that name it.
    body: all.body,
    edgesFrom: (id) => guarded(needNode, id, all.edgesFrom),
    edgesTo: (id) => guarded(needNode, id, all.edgesTo),
    nodesOf: (id) => guarded(needTurn, id, all.nodesOf),
    openNodes: (id) => guarded(needTurn, id, all.openNodes),
    openCount: (id) => guarded(needTurn, id, all.openCount),
    nodeByKey: (id, kind, key) => guarded(needTurn, id, (turnId) => all.nodeByKey(turnId, kind, key)),
    linksOf: (id) => guarded(needTurn, id, all.linksOf),
    linkAt: (id, ordinal) => guarded(needTurn, id, (turnId) => all.linkAt(turnId, ordinal)),
    openLinks: (id) => guarded(needTurn, id, all.openLinks),
    turnsOf,
    queuedTurn: (laneId) => (part() === undefined ? all.queuedTurn(laneId) : queuedIn(laneId, turnsOf)),
    lastSeq,
  }
}

function isAtRoot({ turns }: Tables, id: Id): boolean {
  return turns.get(id)?.conversation.row.parentTurnId === null
}

/** A conversation counts its turns. */
function isLaneHere({ conversations, lanes }: Tables, laneId: Id): boolean {
  const row = conversations.get(laneId)?.row
  return row !== undefined && row.turnCount === (lanes.get(laneId)?.turns.length ?? 0)
}

const NOTHING: WantedRows = { ids: [], lanes: [], open: false }

function guarded<T>(need: (id: Id) => void, id: Id, read: (id: Id) => T): T {
  need(id)
  return read(id)
}

/** Queued turns are the last of their lane. */
function queuedIn(laneId: Id, turnsOf: TreeReader['turnsOf']): Turn | undefined {
  for (let limit = 8; ; limit *= 4) {
    const turns = turnsOf(laneId, { limit })
    if (turns.length < limit || turns[0]?.state !== 'queued') return turns.find(({ state }) => state === 'queued')
  }
}
