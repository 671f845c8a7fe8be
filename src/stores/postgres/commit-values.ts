import type { Commit } from '../../core/graph/commit.ts'
import { codeOf, isOpen, rootState } from '../../core/graph/kinds.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../../core/graph/rows.ts'
import type { WrittenRow } from '../../core/store/archive.ts'
import { packEvents } from '../../core/store/codec/event-text.ts'
import { queueOf, READY } from '../../core/store/codec/rows.ts'
import { shortRow, shortText } from '../../core/store/codec/short-text.ts'
import { conversationText, linkText, marksOf, nodeText, turnText } from '../../core/store/codec/tree-text.ts'
import { changeTypes } from '../../core/store/feed.ts'
import { escaped, escapedOrNull, keyOf, laneKey } from './escape.ts'
import type { SendOptions } from './replica/transport.ts'

/** A row with its columns; the names are those of `commit_1`. What is null is left out. */
export interface WrittenColumns {
  /** id, letter, version */
  i: string
  l: string
  v?: number
  /** span, conversation, ordinal */
  t?: string
  c?: string
  o?: number
  /** Edges of its turn. */
  e?: string
  /** queue, due, mark, wait, state, epoch, kind, key, data */
  q?: string
  d?: number
  m?: number
  w?: string
  s?: string
  p?: number
  k?: string
  y?: string
  x: string
}

/** Facts beside the row that its columns are made from. */
interface RowFacts {
  readonly rootId: Id
  /** The owner of the tree. */
  readonly owner: string | null
  readonly typeOf: (conversationId: Id) => string
}

function conversationColumns(row: Conversation, { text }: WrittenRow, { rootId }: RowFacts): WrittenColumns {
  const { id, version } = row
  const x = shortRow(text, { letter: 'c', id, version, near: [rootId] })
  return { i: keyOf(id), l: 'c', v: version, k: escaped(codeOf(row.agent)), x }
}

function turnColumns(row: Turn, { text }: WrittenRow, { rootId, owner, typeOf }: RowFacts): WrittenColumns {
  const { id, version, laneId } = row
  const x = shortRow(text, { letter: 't', id, version, near: [laneId, rootId] })
  const columns: WrittenColumns = { i: keyOf(id), l: 't', v: version, x }
  columns.t = laneKey(laneId)
  columns.c = keyOf(row.conversationId)
  columns.o = row.ordinal
  if (row.state === 'ended') return columns
  columns.q = row.state === 'running' ? 't' : 'u'
  if (row.state === 'running' && row.deadline !== null) columns.d = row.deadline
  if (row.cancel !== null) columns.m = row.cancel.at
  columns.k = typeOf(row.conversationId)
  if (owner !== null && columns.k === 'user') columns.w = `o${escaped(owner)}`
  return columns
}

function nodeColumns(row: Node, { text }: WrittenRow, { rootId, owner }: RowFacts): WrittenColumns {
  const { id, version, turnId } = row
  const x = shortRow(text, { letter: 'n', id, version, near: [turnId, rootId] })
  const columns: WrittenColumns = { i: keyOf(id), l: 'n', v: version, x }
  columns.t = keyOf(turnId)
  columns.o = row.ordinal
  if (row.idempotencyKey !== null) columns.y = `${escaped(row.kind)}\n${escaped(row.idempotencyKey)}`
  if (!isOpen(row.state)) return columns
  columns.s = row.state[0] as string
  columns.p = row.epoch
  const queue = queueOf(row)
  if (queue === READY) return readyColumns(columns, row, owner)
  if (queue === null) return columns
  columns.q = escaped(queue)
  if (queue !== 'a' && queue !== 'w') return columns
  columns.d = row.wakeAt ?? 0
  if (owner !== null) columns.w = queue + escaped(owner)
  return columns
}

function readyColumns(columns: WrittenColumns, row: Node, owner: string | null): WrittenColumns {
  columns.q = owner === null ? READY : READY + escaped(owner)
  columns.d = row.createdAt
  columns.k = escaped(row.kind)
  if (row.wakeAt !== null) columns.m = row.wakeAt
  return columns
}

function linkColumns(row: Link, { text }: WrittenRow, { rootId }: RowFacts): WrittenColumns {
  const { id, version, hostTurnId, ordinal } = row
  const x = shortRow(text, { letter: 'l', id, version, near: [hostTurnId, rootId] })
  return { i: keyOf(id), l: 'l', v: version, t: keyOf(hostTurnId), o: ordinal, x }
}

/** The values of a call of `commit_1`. */
export type CommitValues = readonly [
  header: string,
  added: string | null,
  changed: string | null,
  events: string,
  short: string,
  marks: string,
  bodies: Uint8Array | null,
]

export interface WriteOptions extends SendOptions {
  /** Answers before the server has written to its disk. */
  readonly isRelaxed: boolean
  /** How many commits of the tree this process knows. */
  readonly known: number
}

export function commitValues(commit: Commit, options: WriteOptions): CommitValues {
  const { rootId } = commit
  if (rootId === null)
    return [JSON.stringify({ ...besides(commit), ...flags(options) }), null, null, '[]', '[]', '', null]
  const turnOf = turnFinder(commit, options)
  const { columns, written } = columnsOf(commit, options, rootId)
  const isNew = commit.conversations.some(({ id, version }) => id === rootId && version === 1)
  const alone = edgeGroups(commit.edges, turnOf, rootId).filter((group) => !isTaken(group, columns))
  const events = packEvents(commit.events)
  const header = {
    root: keyOf(rootId),
    ...(isNew ? { isNew } : {}),
    ...(isNew && options.isPresumed ? { absent: idsOf(commit) } : {}),
    ...flags(options),
    id: escaped(commit.id),
    kind: commit.kind,
    head: `${commit.kind} ${commit.at}`,
    at: commit.at,
    count: commit.events.length,
    ...rootFacts(commit, rootId),
    ...(alone.length === 0 ? {} : { edges: alone }),
    ...(isNew || options.tree === null ? {} : { tree: options.tree }),
    ...(options.seen !== null ? { seen: options.seen } : joinsOld(commit) ? { seen: options.known } : {}),
    ...bodyParts(commit),
    ...besides(commit),
  }
  const added = columns.filter(({ v }) => v === 1)
  const changed = columns.filter(({ v }) => v !== 1)
  return [
    JSON.stringify(header),
    added.length === 0 ? null : JSON.stringify(added),
    changed.length === 0 ? null : JSON.stringify(changed),
    events,
    shortText(events, [rootId]),
    marksOf(written, commit.edges, turnOf),
    commit.bodies.length === 0 ? null : Buffer.concat(commit.bodies.map(({ text }) => Buffer.from(text, 'utf8'))),
  ]
}

function flags({ again, isRelaxed }: WriteOptions): object {
  return { ...(again ? { again } : {}), ...(isRelaxed ? { relaxed: true } : {}) }
}

export interface ColumnsOfCommit {
  readonly columns: readonly WrittenColumns[]
  readonly written: readonly WrittenRow[]
}

export function columnsOf(
  commit: Commit,
  { conversationOf }: Pick<SendOptions, 'conversationOf'>,
  rootId: Id,
): ColumnsOfCommit {
  const facts: RowFacts = {
    rootId,
    owner: conversationOf(rootId)?.owner ?? null,
    typeOf: (id) => conversationOf(id)?.type ?? 'user',
  }
  const columns: WrittenColumns[] = []
  const written: WrittenRow[] = []
  const add = (text: WrittenRow, made: WrittenColumns): void => {
    written.push(text)
    columns.push(made)
  }
  for (const row of commit.conversations) {
    const text = conversationText(row)
    add(text, conversationColumns(row, text, facts))
  }
  for (const row of commit.turns) {
    const text = turnText(row)
    add(text, turnColumns(row, text, facts))
  }
  for (const row of commit.nodes) {
    const text = nodeText(row)
    add(text, nodeColumns(row, text, facts))
  }
  for (const row of commit.links) {
    const text = linkText(row)
    add(text, linkColumns(row, text, facts))
  }
  return { columns, written }
}

/** Owner, agent and state of the tree, as far as the commit tells. */
function rootFacts({ conversations, turns }: Commit, rootId: Id): object {
  const root = conversations.find(({ id }) => id === rootId)
  const newest = newestOf(turns, rootId)
  return {
    ...(root === undefined ? {} : { owner: escapedOrNull(root.owner), agent: escaped(root.agent.name) }),
    ...(newest === undefined ? {} : { state: rootState(newest), ordinal: newest.ordinal }),
  }
}

export function newestOf(turns: readonly Turn[], laneId: Id): Turn | undefined {
  let newest: Turn | undefined
  for (const turn of turns) if (turn.laneId === laneId && (newest?.ordinal ?? -1) < turn.ordinal) newest = turn
  return newest
}

function turnFinder({ nodes }: Commit, { turnOf }: SendOptions): (nodeId: Id) => Id {
  return (nodeId) => nodes.find(({ id }) => id === nodeId)?.turnId ?? turnOf(nodeId)
}

/** Edges of one turn, with its conversation. */
interface EdgeGroup {
  readonly t: string
  readonly c: string
  readonly x: string
}

/** Edges by turn. One between two turns belongs to both. */
export function edgesByTurn(edges: readonly Edge[], turnOf: (nodeId: Id) => Id): Map<Id, Edge[]> {
  const groups = new Map<Id, Edge[]>()
  for (const edge of edges) {
    for (const turnId of new Set([turnOf(edge.from), turnOf(edge.to)])) {
      const known = groups.get(turnId)
      if (known === undefined) groups.set(turnId, [edge])
      else known.push(edge)
    }
  }
  return groups
}

/** Edges by turn, as they are written. */
export function edgeGroups(edges: readonly Edge[], turnOf: (nodeId: Id) => Id, rootId: Id): EdgeGroup[] {
  return [...edgesByTurn(edges, turnOf)].map(([turnId, list]) => ({
    t: keyOf(turnId),
    c: keyOf(list[0]?.conversationId ?? ''),
    x: shortText(JSON.stringify(list.map(({ from, to, type }) => [from, to, type[0]])), [turnId, rootId]),
  }))
}

/** Edges come with a new node of their turn, where there is one: a row of their own would cost more than they do. */
function isTaken({ t, c, x }: EdgeGroup, columns: readonly WrittenColumns[]): boolean {
  const node = columns.find((row) => row.l === 'n' && row.v === 1 && row.t === t)
  if (node === undefined) return false
  node.c = c
  node.e = x
  return true
}

/** The ids by which a tree is known once it is deleted. */
function idsOf({ conversations, turns }: Commit): string[] {
  return [...conversations, ...turns].map(({ id }) => escaped(id))
}

/** True for a commit with an edge between nodes that were there. */
function joinsOld({ edges, nodes }: Commit): boolean {
  const isNew = (id: Id) => nodes.some((node) => node.id === id && node.version === 1)
  return edges.some(({ from, to }) => !isNew(from) && !isNew(to))
}

function bodyParts({ bodies }: Commit): object {
  if (bodies.length === 0) return {}
  let from = 1
  const parts = bodies.map(({ hash, text }) => {
    const part = { h: escaped(hash), f: from, l: Buffer.byteLength(text, 'utf8') }
    from += part.l
    return part
  })
  return { bodies: parts }
}

/** The rows of a commit outside of its tree. */
function besides(commit: Commit): object {
  const { engines, dropEngines, dropBlocks, spent } = commit
  const types = commit.rootId === null ? [] : changeTypes(commit)
  return {
    ...(engines.length === 0
      ? {}
      : { engines: engines.map((row) => ({ i: escaped(row.id), v: row.version, d: JSON.stringify(row) })) }),
    ...(dropEngines.length === 0 ? {} : { dropEngines: dropEngines.map(escaped) }),
    ...(dropBlocks.length === 0 ? {} : { dropBlocks: dropBlocks.map(keyOf) }),
    ...(types.length === 0 ? {} : { types: JSON.stringify(types) }),
    ...(spent.length === 0 ? {} : { spent: spent.map(spentColumns) }),
  }
}

/** The wakes of a commit for its store's queue; undefined where it has none. A wake before its moment would find nothing due. */
export function wakeValues({ rootId, wakes }: Commit): string | undefined {
  if (rootId === null || wakes.length === 0) return undefined
  const root = escaped(rootId)
  const momentOf = (at: number) => Math.min(Math.max(0, Math.ceil(at)), Number.MAX_SAFE_INTEGER)
  return JSON.stringify(wakes.map(({ id, at }) => ({ id: escaped(id), root, at: at === null ? null : momentOf(at) })))
}

function spentColumns({ owner, day, agent, model, runs, modelCalls, usage }: Commit['spent'][number]): object {
  return {
    owner: escaped(owner),
    day,
    agent: escaped(agent),
    model: escaped(model),
    runs,
    model_calls: modelCalls,
    input: usage.inputTokens,
    output: usage.outputTokens,
    cache_read: usage.cacheReadTokens,
    cache_write: usage.cacheWriteTokens,
  }
}
