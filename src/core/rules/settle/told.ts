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

import type { Commit } from '../../graph/commit.ts'
import type { Draft } from '../../graph/draft.ts'
import type { EventRow } from '../../graph/event.ts'
import {
  isNextId,
  nameOf,
  type Told,
  type ToldLane,
  type ToldNode,
  type Usual,
  usualAfter,
  type WaitingOn,
  waitOf,
} from '../../graph/kinds.ts'
import type { Conversation, Id, LaneFacts, Node, Turn } from '../../graph/rows.ts'

/** The rows and events of a commit that is not stored yet. */
type Unstored = Pick<Commit, 'conversations' | 'turns' | 'nodes' | 'edges' | 'events'>

/** Adds to the events of a draft's commit what they do not say of its rows. */
export function tellChanges(draft: Draft, commit: Unstored): void {
  const lanes = commit.conversations.length === 0 ? undefined : lanesOf(draft, commit)
  const nodes = commit.nodes.length === 0 ? undefined : nodesOf(draft, commit)
  for (const turn of commit.turns) {
    if (turn.cancel !== null && draft.stored.turn(turn.id)?.cancel == null) put(draft, commit, [turn, STOPPED])
  }
  if (nodes !== undefined) for (const [id, told] of nodes) put(draft, commit, [draft.turn(id), { nodes: told }])
  if (lanes !== undefined) putLanes(draft, commit, lanes)
}

const STOPPED = { cancelRequested: true } as const
const UNUSUAL = { unusual: true } as const

/** Puts it into the last event of the run, or into one of its own. */
function put(draft: Draft, { events }: Unstored, [turn, told]: readonly [Turn, Told]): void {
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

function putLanes(draft: Draft, { turns, events }: Unstored, lanes: readonly ToldLane[]): void {
  const turn = turns[0]
  if (events.length === 0 && turn !== undefined) draft.event(turn, null, { type: 'run-change' })
  addTold(events, events.length - 1, { lanes })
}

/** The state of a node by the events of a commit: that it runs, that it ended (with a result), or just what its row says. */
type HeardState = 'called' | 'ended' | 'result' | 'row'

/** The changes that readers take from the events of a commit. */
interface Heard extends Pick<Unstored, 'nodes' | 'edges' | 'events'> {
  readonly draft: Draft
  /** By the place of the node in the draft. */
  readonly states: (HeardState | undefined)[]
  /** The place of the last answer, and how many of its calls are still to come: they are told right after it. */
  answerAt: number
  callsLeft: number
}

/** Goes through the events as readers do, and marks those after which the usual did not happen. */
function hear(draft: Draft, { nodes, edges, events }: Unstored): Heard {
  const states = new Array(nodes.length)
  const heard: Heard = { draft, nodes, edges, events, states, answerAt: -1, callsLeft: 0 }
  for (let at = 0; at < events.length; at++) take(heard, at)
  if (heard.callsLeft > 0) addTold(events, heard.answerAt, UNUSUAL)
  return heard
}

function take(heard: Heard, at: number): void {
  const { events, answerAt } = heard
  const { nodeId, runId, body } = events[at] as EventRow
  if (heard.callsLeft > 0 && (body.type !== 'tool-call' || runId !== events[answerAt]?.runId)) {
    addTold(events, answerAt, UNUSUAL)
    heard.callsLeft = 0
  }
  if (nodeId === null) return
  const isAnswer = body.type === 'message' && body.role === 'agent'
  const state = isAnswer ? 'ended' : HEARD[body.type]
  if (state !== undefined) note(heard, nodeId, state)
  const usual = usualAfter(body, heard.callsLeft)
  if (usual !== undefined && !hasHappened(heard, usual, at)) {
    addTold(events, usual === 'next-waits' ? answerAt : at, UNUSUAL)
  }
  if (heard.callsLeft > 0) heard.callsLeft--
  if (!isAnswer) return
  heard.answerAt = at
  heard.callsLeft = body.calls.length
}

function note({ draft, states }: Heard, nodeId: Id, state: HeardState): void {
  const place = draft.placeOfNode(nodeId)
  if (place >= 0) states[place] = state
}

const HEARD: { readonly [type: string]: HeardState } = {
  'tool-call': 'called',
  'tool-result': 'result',
  'node-state': 'ended',
}

/** Do the rows say what usually follows from an event? Then the state of the node that it is about needs no other word. */
function hasHappened(heard: Heard, usual: Usual, at: number): boolean {
  switch (usual) {
    case 'next-runs':
      return !isBegun(heard, at) || isNext(heard, at, isRunning)
    case 'next-waits':
      return isNext(heard, at, waitsForCalls)
    case 'call-waits':
      return waitsForChild(heard, heard.events[at] as EventRow)
    case 'last-runs':
      // Where not, the nodes of the run say so themselves.
      return true
  }
}

/** True where readers know at this event that its run has begun and not ended. */
function isBegun({ draft, events }: Heard, at: number): boolean {
  const runId = events[at]?.runId ?? ''
  for (let before = at - 1; before >= 0; before--) {
    const { runId: id, body } = events[before] as EventRow
    if (id !== runId) continue
    if (body.type === 'run-start') return true
    if (body.type === 'run-queued' || body.type === 'run-end') return false
  }
  return draft.stored.turn(runId)?.state === 'running'
}

/** True where the node after that of an event is a new message of the agent, and as it should be. */
function isNext(heard: Heard, at: number, isAsUsual: (next: Node, heard: Heard, at: number) => boolean): boolean {
  const { runId, nodeId } = heard.events[at] as EventRow
  const place = heard.draft.placeOfNode(nodeId ?? '') + 1
  const next = heard.nodes[place]
  if (next === undefined || next.version > 1 || next.kind !== 'agent_message' || next.turnId !== runId) return false
  if (!isAsUsual(next, heard, at) || !isNextId(nodeId ?? '', next.id)) return false
  heard.states[place] = 'row'
  return true
}

function isRunning({ state }: Node): boolean {
  return state === 'running'
}

/** True where a message waits for just the calls of the answer, which are told right after the answer, up to this event. */
function waitsForCalls(next: Node, { events, edges, answerAt }: Heard, at: number): boolean {
  if (!isBlocked(next)) return false
  let call = answerAt
  for (const { from, to, type } of edges) {
    if (to === next.id && type !== 'branch' && events[++call]?.nodeId !== from) return false
  }
  return call === at
}

/** True where the call waits for the child that was started, and for nothing else. */
function waitsForChild(heard: Heard, { nodeId, body }: EventRow): boolean {
  const task = heard.draft.findNode(nodeId ?? '')
  if (task?.endedAt !== null) return true
  if (body.type !== 'delegation-start' || task.state !== 'waiting' || task.wait === null) return false
  const { on, refs, until } = task.wait
  if (on !== 'children' || until !== null || refs.length !== 1 || refs[0] !== body.childRunId) return false
  note(heard, task.id, 'row')
  return true
}

function nodesOf(draft: Draft, commit: Unstored): Map<Id, ToldNode[]> | undefined {
  let found: Map<Id, ToldNode[]> | undefined
  const heard = hear(draft, commit)
  for (let place = 0; place < commit.nodes.length; place++) {
    const state = heard.states[place]
    if (state === 'row') continue
    const node = commit.nodes[place] as Node
    const told = node.endedAt === null ? openOf(heard, node, state) : endOf(draft, node, state)
    if (told === undefined) continue
    found ??= new Map()
    const list = found.get(node.turnId)
    if (list === undefined) found.set(node.turnId, [told])
    else list.push(told)
  }
  return found
}

/** A node that nobody has heard of may end in silence. */
function endOf(draft: Draft, { id, state, version }: Node, heard: HeardState | undefined): ToldNode | undefined {
  if (heard === 'ended' || heard === 'result') return undefined
  const wasOpen = version === 1 ? heard === 'called' : draft.stored.node(id)?.endedAt === null
  return wasOpen ? { id, on: state as ToldNode['on'] } : undefined
}

function openOf(heard: Heard, node: Node, state: HeardState | undefined): ToldNode | undefined {
  const before = node.version === 1 ? undefined : heard.draft.stored.node(node.id)
  const told = node.state === 'running' ? runs(heard, before, node) : waits(heard, before, node)
  const isNamed = before !== undefined || state === 'called'
  return told === undefined || isNamed ? told : { ...told, what: nameOf(node) }
}

/** A call that is told runs. */
function runs(heard: Heard, before: Node | undefined, node: Node): ToldNode | undefined {
  const { id } = node
  if (before === undefined) return stateOf(heard, id) === 'called' ? undefined : { id, on: 'running' }
  return before.state === 'running' || (isBlocked(before) && isFreed(heard, node)) ? undefined : { id, on: 'running' }
}

function stateOf({ draft, states }: Heard, id: Id): HeardState | undefined {
  const place = draft.placeOfNode(id)
  return place < 0 ? undefined : states[place]
}

/** True where the commit changed nothing of the run but a call that has its result now, and no other node is open. */
function isFreed({ draft, nodes, states }: Heard, { id, turnId }: Node): boolean {
  let results = 0
  for (let place = 0; place < nodes.length; place++) {
    const node = nodes[place] as Node
    if (node.turnId !== turnId || node.id === id) continue
    if (states[place] !== 'result' || ++results > 1) return false
  }
  return results === 1 && draft.openCount(turnId) === 1
}

function waits(heard: Heard, before: Node | undefined, node: Node): ToldNode | undefined {
  const { draft } = heard
  if (isStillBlocked(heard, before, node)) return undefined
  const wait = waitOf({ edgesTo: (to) => draft.edgesTo(to), node: (from) => draft.findNode(from) }, node)
  const isHeard = before !== undefined && before.state !== 'running' && isSame(wait, waitOf(draft.stored, before))
  return isHeard ? undefined : compact(heard, wait)
}

/** True for a node that waits for others as before: readers know which of them have ended. */
function isStillBlocked({ edges }: Heard, before: Node | undefined, node: Node): boolean {
  if (before === undefined || !isBlocked(before) || !isBlocked(node)) return false
  for (const edge of edges) if (edge.to === node.id) return false
  return true
}

function isBlocked({ state, wait, blockers }: Node): boolean {
  return state === 'pending' && wait === null && blockers > 0
}

function compact(heard: Heard, { nodeId: id, on, refs, until }: WaitingOn): ToldNode {
  const isUsual = refs.length === 0 ? on !== 'nodes' : on === 'nodes' && isAllCalls(heard, refs)
  const told = isUsual ? { id, on } : { id, on, refs }
  return until === null ? told : { ...told, until }
}

/** True where the nodes are the open calls of an answer that their run gives in this commit. */
function isAllCalls(heard: Heard, refs: readonly Id[]): boolean {
  const { draft, events } = heard
  const [first = ''] = refs
  const state = stateOf(heard, first)
  if (state !== 'called' && state !== 'row') return false
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

function lanesOf(draft: Draft, made: Unstored): ToldLane[] | undefined {
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
function laneOf({ stored }: Draft, made: Unstored, row: Conversation): ToldLane | undefined {
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

function newLane(made: Unstored, row: Conversation): Pick<ToldLane, 'from' | 'past'> {
  const from = row.lane?.from ?? null
  const past = pastOf(made, row)
  return {
    ...(from === null ? {} : { from: { laneId: from.laneId, nodeId: from.nodeId, isListed: isListed(made, row) } }),
    ...(past.length === 0 ? {} : { past }),
  }
}

/** A fork that a person made is in the list of its origin; that of a session is not. */
function isListed({ conversations }: Unstored, { id, lane }: Conversation): boolean {
  return conversations.some((one) => one.id === lane?.from?.laneId && one.lane?.newest === id)
}

/** True where the commit may bring turns of a new conversation that ended elsewhere. */
function hasPast({ turns }: Unstored, { id }: Conversation): boolean {
  for (const turn of turns) if (turn.version === 1 && turn.state === 'ended' && turn.conversationId === id) return true
  return false
}

/** Turns that were put in as they ended elsewhere, without events. */
function pastOf({ turns, events }: Unstored, { id: conversationId }: Conversation): NonNullable<ToldLane['past']> {
  return turns
    .filter((turn) => turn.conversationId === conversationId && turn.state === 'ended')
    .filter(({ id }) => !events.some(({ runId }) => runId === id))
    .map(({ id: runId, startedAt, endedAt, outcome }) => ({ runId, startedAt, endedAt, outcome }))
}
