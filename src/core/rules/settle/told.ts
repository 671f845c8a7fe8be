// Told: what a commit changed and no event of it says, for readers who follow a tree by its events.
//
// Owns:      `told` of events: which nodes of a run wait, run or ended, that a run was asked to stop, and facts of lanes.
// Called by: the ledger, once after each plan. `reduceTree` of the client is its only reader.
// Must stay true:
//   - It never changes a row. Rules do not know of it.
//   - It costs as much as the commit changes, however many nodes a run has, and says nothing twice.
//   - A node ended when its `message` (of an agent), `tool-result` or `node-state` event says so; a call runs when its
//     `tool-call` is told; `Told` lists what usually follows from an event. Everything else of an open node is told here.
//   - The commits of a plain delegation tell nothing: all of it follows from their events.

import { isNextId } from '../../base/id.ts'
import type { Commit } from '../../graph/commit.ts'
import type { Draft } from '../../graph/draft.ts'
import type { EventRow } from '../../graph/event.ts'
import { nameOf, type Told, type ToldLane, type ToldNode, type WaitingOn, waitOf } from '../../graph/kinds.ts'
import type { Conversation, Id, LaneFacts, Node, Turn } from '../../graph/rows.ts'

/** The rows and events of a commit that is not stored yet. */
type Made = Pick<Commit, 'conversations' | 'turns' | 'nodes' | 'edges' | 'events'>

/** Adds to the events of a draft's commit what they do not say of its rows. */
export function tellChanges(draft: Draft, made: Made): void {
  const lanes = lanesOf(draft, made)
  const nodes = made.nodes.length === 0 ? undefined : nodesOf(draft, made)
  for (const turn of made.turns) {
    if (turn.cancel !== null && draft.stored.turn(turn.id)?.cancel == null) put(draft, made, [turn, STOPPED])
  }
  if (nodes !== undefined) for (const [id, told] of nodes) put(draft, made, [draft.turn(id), { nodes: told }])
  if (lanes !== undefined) putLanes(draft, made, lanes)
}

const STOPPED = { cancelRequested: true } as const
const UNUSUAL = { unusual: true } as const

/** Puts it into the last event of the run, or into one of its own. */
function put(draft: Draft, { events }: Made, [turn, told]: readonly [Turn, Told]): void {
  let at = events.length - 1
  while (at >= 0 && events[at]?.runId !== turn.id) at--
  if (at < 0) draft.event(turn, null, { type: 'run-change' })
  addTold(events, at < 0 ? events.length - 1 : at, told)
}

/** The list is the draft's own, as long as nothing is stored. */
function addTold(events: readonly EventRow[], at: number, told: Told): void {
  const event = events[at]
  if (event !== undefined)
    (event as { told?: Told }).told = event.told === undefined ? told : { ...event.told, ...told }
}

function putLanes(draft: Draft, { turns, events }: Made, lanes: readonly ToldLane[]): void {
  const turn = turns[0]
  if (events.length === 0 && turn !== undefined) draft.event(turn, null, { type: 'run-change' })
  addTold(events, events.length - 1, { lanes })
}

/** The state of a node by the events of a draft: that it runs, that it ended (with a result), or just what its row says. */
type Word = 'called' | 'ended' | 'result' | 'row'

interface Said extends Pick<Made, 'nodes' | 'edges' | 'events'> {
  readonly draft: Draft
  /** By the place of the node in the draft. */
  readonly words: (Word | undefined)[]
}

/** Reads the events as readers do, and marks those from which not follows what usually does. */
function saidBy(draft: Draft, { nodes, edges, events }: Made): Said {
  const said: Said = { draft, nodes, edges, events, words: new Array(nodes.length) }
  for (let at = 0; at < events.length; at++) if (!isUsual(said, at)) addTold(events, at, UNUSUAL)
  return said
}

function isUsual(said: Said, at: number): boolean {
  const event = said.events[at] as EventRow
  const { nodeId, body } = event
  if (nodeId === null) return true
  switch (body.type) {
    case 'tool-call':
      return say(said, nodeId, 'called')
    case 'tool-result':
      return say(said, nodeId, 'result')
    case 'node-state':
      return say(said, nodeId, 'ended')
    case 'delegation-start':
      return waitsForChild(said, event)
    case 'message':
      if (body.role === 'user') return !isBegun(said, at) || isAnswered(said, event)
      if (body.role === 'agent') say(said, nodeId, 'ended')
      return body.calls.length === 0 || isRead(said, at, body.calls.length)
    default:
      return true
  }
}

/** Always true. */
function say({ draft, words }: Said, id: Id, word: Word): true {
  const place = draft.placeOfNode(id)
  if (place >= 0) words[place] = word
  return true
}

/** True where the call waits for the child that was started, and for nothing else. */
function waitsForChild(said: Said, { nodeId, body }: EventRow): boolean {
  const task = said.draft.findNode(nodeId ?? '')
  if (task?.endedAt !== null) return true
  if (body.type !== 'delegation-start' || task.state !== 'waiting' || task.wait === null) return false
  const { on, refs, until } = task.wait
  if (on !== 'children' || until !== null || refs.length !== 1 || refs[0] !== body.childRunId) return false
  return say(said, task.id, 'row')
}

/** True where readers know at this event that its run has begun and not ended. */
function isBegun({ draft, events }: Said, at: number): boolean {
  const runId = events[at]?.runId ?? ''
  for (let before = at - 1; before >= 0; before--) {
    const { runId: id, body } = events[before] as EventRow
    if (id !== runId) continue
    if (body.type === 'run-start') return true
    if (body.type === 'run-queued' || body.type === 'run-end') return false
  }
  return draft.stored.turn(runId)?.state === 'running'
}

/** True where the agent's message after that of the user is new, and runs. */
function isAnswered({ draft, nodes, words }: Said, { nodeId, runId }: EventRow): boolean {
  const place = draft.placeOfNode(nodeId ?? '') + 1
  const next = nodes[place]
  if (next?.state !== 'running' || !isNextMessage(next, runId, nodeId ?? '')) return false
  words[place] = 'row'
  return true
}

/** True for a new message of the agent whose id comes after the other one. */
function isNextMessage({ id, kind, turnId, version }: Node, runId: Id, before: Id): boolean {
  return version === 1 && kind === 'agent_message' && turnId === runId && isNextId(before, id)
}

/** True where all calls of the answer at this place are told right after it, and the next message of the agent waits for just them. */
function isRead({ draft, nodes, edges, events, words }: Said, at: number, count: number): boolean {
  const { runId } = events[at] as EventRow
  for (let call = at + 1; call <= at + count; call++) {
    const event = events[call]
    if (event?.body.type !== 'tool-call' || event.runId !== runId) return false
  }
  const last = events[at + count]?.nodeId ?? ''
  const place = draft.placeOfNode(last) + 1
  const next = nodes[place]
  if (next === undefined || !isBlocked(next) || !isNextMessage(next, runId, last)) return false
  let call = at
  for (const { from, to, type } of edges) {
    if (to === next.id && type !== 'branch' && events[++call]?.nodeId !== from) return false
  }
  if (call !== at + count) return false
  words[place] = 'row'
  return true
}

function nodesOf(draft: Draft, made: Made): Map<Id, ToldNode[]> | undefined {
  let found: Map<Id, ToldNode[]> | undefined
  const said = saidBy(draft, made)
  for (let place = 0; place < made.nodes.length; place++) {
    const word = said.words[place]
    if (word === 'row') continue
    const node = made.nodes[place] as Node
    const told = node.endedAt === null ? openOf(said, node, word) : endOf(draft, node, word)
    if (told === undefined) continue
    found ??= new Map()
    const list = found.get(node.turnId)
    if (list === undefined) found.set(node.turnId, [told])
    else list.push(told)
  }
  return found
}

/** A node that nobody has heard of may end in silence. */
function endOf(draft: Draft, { id, state, version }: Node, word: Word | undefined): ToldNode | undefined {
  if (word === 'ended' || word === 'result') return undefined
  const wasOpen = version === 1 ? word === 'called' : draft.stored.node(id)?.endedAt === null
  return wasOpen ? { id, on: state as ToldNode['on'] } : undefined
}

function openOf(said: Said, node: Node, word: Word | undefined): ToldNode | undefined {
  const before = node.version === 1 ? undefined : said.draft.stored.node(node.id)
  const told = node.state === 'running' ? runs(said, before, node) : waits(said, before, node)
  const isNamed = before !== undefined || word === 'called'
  return told === undefined || isNamed ? told : { ...told, what: nameOf(node) }
}

/** A call that is told runs. */
function runs(said: Said, before: Node | undefined, node: Node): ToldNode | undefined {
  const { id } = node
  if (before === undefined) return wordOf(said, id) === 'called' ? undefined : { id, on: 'running' }
  return before.state === 'running' || (isBlocked(before) && isFreed(said, node)) ? undefined : { id, on: 'running' }
}

function wordOf({ draft, words }: Said, id: Id): Word | undefined {
  const place = draft.placeOfNode(id)
  return place < 0 ? undefined : words[place]
}

/** True where the commit changed nothing of the run but a call that has its result now, and no other node is open. */
function isFreed({ draft, nodes, words }: Said, { id, turnId }: Node): boolean {
  let results = 0
  for (let place = 0; place < nodes.length; place++) {
    const node = nodes[place] as Node
    if (node.turnId !== turnId || node.id === id) continue
    if (words[place] !== 'result' || ++results > 1) return false
  }
  return results === 1 && draft.openCount(turnId) === 1
}

function waits(said: Said, before: Node | undefined, node: Node): ToldNode | undefined {
  const { draft } = said
  if (isStillBlocked(said, before, node)) return undefined
  const wait = waitOf({ edgesTo: (to) => draft.edgesTo(to), node: (from) => draft.findNode(from) }, node)
  const isSaid = before !== undefined && before.state !== 'running' && isSame(wait, waitOf(draft.stored, before))
  return isSaid ? undefined : compact(said, wait)
}

/** True for a node that waits for others as before: readers know which of them have ended. */
function isStillBlocked({ edges }: Said, before: Node | undefined, node: Node): boolean {
  if (before === undefined || !isBlocked(before) || !isBlocked(node)) return false
  for (const edge of edges) if (edge.to === node.id) return false
  return true
}

function isBlocked({ state, wait, blockers }: Node): boolean {
  return state === 'pending' && wait === null && blockers > 0
}

function compact(said: Said, { nodeId: id, on, refs, until }: WaitingOn): ToldNode {
  const isUsual = refs.length === 0 ? on !== 'nodes' : on === 'nodes' && isAllCalls(said, refs)
  const told = isUsual ? { id, on } : { id, on, refs }
  return until === null ? told : { ...told, until }
}

/** True where the nodes are the open calls of an answer that their run gives in this commit. */
function isAllCalls(said: Said, refs: readonly Id[]): boolean {
  const { draft, events } = said
  const [first = ''] = refs
  const word = wordOf(said, first)
  if (word !== 'called' && word !== 'row') return false
  const turnId = draft.node(first).turnId
  let at = events.findLastIndex(({ runId, body }) => {
    return runId === turnId && body.type === 'message' && body.role === 'agent'
  })
  if (at < 0) return false
  let count = 0
  for (at++; at < events.length; at++) {
    const event = events[at]
    if (event?.runId !== turnId || event.body.type !== 'tool-call' || event.nodeId === null) continue
    if (draft.node(event.nodeId).endedAt === null && refs[count++] !== event.nodeId) return false
  }
  return count === refs.length
}

function isSame(a: WaitingOn, b: WaitingOn): boolean {
  return a.on === b.on && a.until === b.until && (a.refs === b.refs || a.refs.join() === b.refs.join())
}

function lanesOf(draft: Draft, made: Made): ToldLane[] | undefined {
  let found: ToldLane[] | undefined
  for (const row of made.conversations) {
    if (row.title === null && row.lane === null && (row.version > 1 || !hasPast(made, row))) continue
    const told = laneOf(draft, made, row)
    if (told === undefined) continue
    found ??= []
    found.push(told)
  }
  return found
}

/** The facts of a lane that differ from those that were stored; undefined when none does. */
function laneOf({ stored }: Draft, made: Made, row: Conversation): ToldLane | undefined {
  const before = row.version === 1 ? undefined : stored.conversation(row.id)
  const [old, now] = [before?.lane ?? PLAIN, row.lane ?? PLAIN]
  const told = {
    id: row.id,
    ...(row.title === null || row.title === before?.title ? {} : { title: row.title }),
    ...(now.archivedAt === null || now.archivedAt === old.archivedAt ? {} : { archivedAt: now.archivedAt }),
    ...(now.skips === old.skips || now.skips.length + old.skips.length === 0 ? {} : { skips: now.skips }),
    ...(before === undefined ? newLane(made, row) : {}),
  }
  return Object.keys(told).length > 1 ? told : undefined
}

const PLAIN: Pick<LaneFacts, 'archivedAt' | 'skips'> = { archivedAt: null, skips: [] }

function newLane(made: Made, row: Conversation): Pick<ToldLane, 'from' | 'past'> {
  const from = row.lane?.from ?? null
  const past = pastOf(made, row)
  return {
    ...(from === null ? {} : { from: { laneId: from.laneId, nodeId: from.nodeId, isListed: isListed(made, row) } }),
    ...(past.length === 0 ? {} : { past }),
  }
}

/** A fork that a person made is in the list of its origin; that of a session is not. */
function isListed({ conversations }: Made, { id, lane }: Conversation): boolean {
  return conversations.some((one) => one.id === lane?.from?.laneId && one.lane?.newest === id)
}

/** True where the commit may bring turns of a new conversation that ended elsewhere. */
function hasPast({ turns }: Made, { id }: Conversation): boolean {
  for (const turn of turns) if (turn.version === 1 && turn.state === 'ended' && turn.conversationId === id) return true
  return false
}

/** Turns that were put in as they ended elsewhere, without events. */
function pastOf({ turns, events }: Made, { id: conversationId }: Conversation): NonNullable<ToldLane['past']> {
  return turns
    .filter((turn) => turn.conversationId === conversationId && turn.state === 'ended')
    .filter(({ id }) => !events.some(({ runId }) => runId === id))
    .map(({ id: runId, startedAt, endedAt, outcome }) => ({ runId, startedAt, endedAt, outcome }))
}
