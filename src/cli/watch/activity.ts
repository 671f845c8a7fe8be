import { type Link, look, type Node, type TreeReader, type Turn } from '../../doors/rows.ts'
import type { Id, Json } from '../../index.ts'
import { legate } from '../command/next-command.ts'
import type { Desk, DeskRows } from '../desk/desk.ts'
import { duration } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { askingNode, describeCall, questionOnOneLine } from './request-text.ts'
import type { HeardText } from './run-tree.ts'
import { neededCode } from './words.ts'

const LISTED = 60

/** The current activity of a run, or what it waits for, read from its rows. */
export interface Activity {
  readonly text: string
  /** The length of the label of streamed text: when the line is cut, the label and the end of the text stay. */
  readonly label?: number
  readonly mood: 'works' | 'waits' | 'person' | 'stuck'
}

/** Describes a run of a known tree; null if it has ended or is unknown. */
export type ActivityOf = (turnId: Id, hears?: HeardText | null) => Activity | null

/**
 * Returns a function that describes these runs and all others of their trees. It checks once for all of them which
 * processes are alive.
 */
export async function activityReader(desk: Desk, runIds: readonly Id[]): Promise<ActivityOf> {
  const { store } = desk
  const rootIds = new Set<Id>()
  for (const id of runIds) rootIds.add((await store.rootOf(id)) ?? id)
  const runs = new Map<Id, OpenRun>()
  for (const rootId of rootIds) for (const run of await openRunsOf(store, rootId)) runs.set(run.turn.id, run)
  const takers = await LiveProcesses.load(desk, rootIds)
  return (turnId, hears = null) => {
    const run = runs.get(turnId)
    return run === undefined ? null : activityOf({ ...run, takers, hears })
  }
}

/** An open run, as far as its activity shows. */
interface OpenRun {
  readonly turn: Turn
  /** Its open nodes. */
  readonly nodes: readonly Node[]
  /** The agents that it waits for. */
  readonly waitsFor: readonly string[]
  /** The agent whose code it needs. */
  readonly code: string
}

async function openRunsOf(store: DeskRows, rootId: Id): Promise<readonly OpenRun[]> {
  const open = await store.openTurns(Number.MAX_SAFE_INTEGER, rootId)
  return look(store, rootId, (tree) =>
    open.flatMap(({ id }) => {
      const turn = tree.turn(id)
      if (turn === undefined || turn.state === 'ended') return []
      const waitsFor = tree.openLinks(id).map(({ agentName }) => oneLine(agentName))
      const code = neededCode(tree.conversation(turn.conversationId))
      return [{ turn, nodes: tree.openNodes(id), waitsFor, code }]
    }),
  )
}

function activityOf(context: ActivityContext): Activity {
  const { state, cancel } = context.turn
  if (cancel !== null) return { text: 'stopping', mood: 'waits' }
  if (state === 'queued') return { text: 'queued', mood: 'waits' }
  return doingOf(context)
}

interface ActivityContext extends OpenRun {
  readonly takers: LiveProcesses
  readonly hears: HeardText | null
}

function doingOf(context: ActivityContext): Activity {
  const { nodes, takers, code } = context
  const asked = nodes.filter(({ state }) => state === 'awaiting_approval')
  if (asked.length > 0)
    return { text: `needs a person: ${listed(asked.map((node) => describeCall(node)))}`, mood: 'person' }
  const askers = new Set(nodes.map(askingNode))
  const isAlive = ({ engineId }: Node) => engineId !== null && takers.alive.has(engineId)
  const isAsking = (node: Node) => askers.has(node.id) && (node.effect !== 'effectful' || isAlive(node))
  const running = nodes.filter((node) => node.state === 'running' && !isAsking(node))
  const working = running.filter(isAlive)
  if (working.length > 0) return { ...workOf(working, context), mood: 'works' }
  if (running.length > 0) return { text: `its process is gone: continue with ${resumeCommand(code)}`, mood: 'stuck' }
  return waitOf(context)
}

/** An agent of a file needs no code. */
function resumeCommand(code: string): string {
  return legate(code === '' ? 'resume' : 'resume --module FILE')
}

function workOf(working: readonly Node[], { hears }: ActivityContext): Pick<Activity, 'text' | 'label'> {
  if (hears?.kind === 'progress') return { text: oneLine(hears.text) }
  const tasks = working.filter(({ kind }) => kind === 'task')
  if (tasks.length > 0) return { text: listed(tasks.map((node) => describeCall(node))) }
  const own = working.filter(({ kind }) => kind !== 'agent_message')
  if (own.length > 0) return { text: listed(own.map(({ kind }) => oneLine(kind))) }
  if (hears === null) return { text: 'thinking' }
  const label = LABELS[hears.kind]
  return { text: `${label}${oneLine(hears.text)}`, ...(hears.kind === 'call' ? {} : { label: label.length }) }
}

const LABELS = { reasoning: 'thinking: ', call: 'calls ', text: 'says: ' } as const

function waitOf({ turn, nodes, waitsFor, code, takers }: ActivityContext): Activity {
  const { now } = takers
  const question = nodes.find(({ state, wait }) => state === 'waiting' && wait?.on === 'question')
  if (question !== undefined) return { text: `asks: ${questionOnOneLine(question)}`, mood: 'person' }
  const later = nodes.find(({ state, wakeAt }) => state === 'pending' && wakeAt !== null && wakeAt > now)
  if (later?.wakeAt) return { text: `retrying in ${duration(later.wakeAt - now)}`, mood: 'waits' }
  if (waitsFor.length > 0) return { text: `waiting for ${listed(waitsFor)}`, mood: 'waits' }
  const ready = nodes.some(({ state, blockers }) => state === 'pending' && blockers === 0)
  if (ready && !takers.mayTake(turn, code))
    return { text: `no process works on it: continue with ${resumeCommand(code)}`, mood: 'stuck' }
  return { text: ready ? 'waiting for a worker' : 'waiting', mood: 'waits' }
}

/** Lists a few entries and counts the rest. */
function listed(all: readonly string[]): string {
  const times = new Map<string, number>()
  for (const name of all) times.set(name, (times.get(name) ?? 0) + 1)
  const names = [...times].map(([name, number]) => (number === 1 ? name : `${number} × ${name}`))
  let length = 0
  const shown = names.filter((name, at) => {
    length += name.length + (at === 0 ? 0 : 2)
    return at === 0 || length <= LISTED
  })
  const hidden = names.length - shown.length
  return hidden === 0 ? shown.join(', ') : `${shown.join(', ')} and ${hidden} more`
}

/** A live process takes runs it has code for within a second, so after this time it will not. */
const PATIENCE_MS = 5_000
const LOOKED_AT = 200

/** The live processes of a store, and which runs they may take. Their rows do not say which agents they know. */
class LiveProcesses {
  /** Process ids by engine. */
  readonly alive: ReadonlyMap<Id, number>
  /** The time of the last event of each tree. */
  private readonly lastEvents: ReadonlyMap<Id, number>
  private readonly agentsAtWork: ReadonlySet<string>

  /** The time of the look at them. */
  readonly now: number

  private constructor(
    now: number,
    {
      alive,
      lastEvents,
      agentsAtWork,
    }: {
      readonly alive: ReadonlyMap<Id, number>
      readonly lastEvents: ReadonlyMap<Id, number>
      readonly agentsAtWork: ReadonlySet<string>
    },
  ) {
    this.now = now
    this.alive = alive
    this.lastEvents = lastEvents
    this.agentsAtWork = agentsAtWork
  }

  /** Reads what the runs of these trees need: who works on others counts only if nothing happens in one of them. */
  static async load(desk: Desk, rootIds: Iterable<Id>): Promise<LiveProcesses> {
    const { store } = desk
    const alive = new Map<Id, number>()
    for (const { id, pid, isAlive } of await desk.processes()) if (isAlive) alive.set(id, pid)
    const lastEvents = new Map<Id, number>()
    for (const rootId of rootIds) {
      const last = await look(store, rootId, (tree) => tree.lastSeq(rootId))
      const page = await store.events(rootId, last - 1, 1)
      lastEvents.set(rootId, page.at(-1)?.at ?? 0)
    }
    const now = Date.now()
    const isQuiet = [...lastEvents.values()].some((at) => !isFresh(at, now))
    const agentsAtWork = new Set(isQuiet ? await findBusyAgents(store, alive.keys()) : [])
    return new LiveProcesses(now, { alive, lastEvents, agentsAtWork })
  }

  /**
   * Tells whether a live process may continue this run, which needs the code of that agent. A run that needs no code
   * belongs to none.
   */
  mayTake({ rootId, createdAt }: Turn, agent: string): boolean {
    if (this.alive.size === 0) return false
    const lastAt = Math.max(createdAt, this.lastEvents.get(rootId) ?? 0)
    return isFresh(lastAt, this.now) || (agent !== '' && this.agentsAtWork.has(agent))
  }
}

function isFresh(lastAt: number, now: number): boolean {
  return now - lastAt < PATIENCE_MS
}

/** Lists the agents whose nodes these engines run. */
async function findBusyAgents(store: DeskRows, engineIds: Iterable<Id>): Promise<string[]> {
  const agents: string[] = []
  for (const engineId of engineIds) {
    for (const { rootId, conversationId } of await store.claimedBy(engineId, LOOKED_AT)) {
      agents.push(neededCode(await look(store, rootId, (tree) => tree.conversation(conversationId))))
    }
  }
  return agents
}

/** The state of an open run together with its children. */
export interface OpenState {
  /** unattended: it could continue, but no process works on it. parked: it waits for a person. */
  readonly state: 'queued' | 'running' | 'stopping' | 'parked' | 'unattended'
  /** Calls that wait for a person's permission. */
  readonly asked: readonly Node[]
  /** Calls that asked a question and wait for the answer. */
  readonly questions: readonly Node[]
  /** Agents whose code is needed to continue; an empty name if none is. */
  readonly needs: readonly string[]
  /**
   * Processes that must stay alive because they run one of its nodes. Code that may run again and only waits for a
   * person or a child does not count: a restart loses nothing.
   */
  readonly pids: readonly number[]
  /** Whether something waits for a time to come, and needs a process then. */
  readonly wakes: boolean
}

/** Reads the state of a run from the open part of its tree only. */
export async function openStateOf(desk: Desk, turn: Turn): Promise<OpenState> {
  const takers = await LiveProcesses.load(desk, [turn.rootId])
  const reader = await look(desk.store, turn.rootId, (tree) => new OpenStateReader(tree, takers).at(turn))
  const { asked, questions, needs, pids, wakes } = reader
  const found = { asked, questions, needs: [...needs], pids: [...pids], wakes }
  if (turn.cancel !== null) return { ...found, state: 'stopping' }
  if (reader.isBusy || wakes) return { ...found, state: 'running' }
  if (needs.size > 0) {
    const isExpected = [...needs].some((agent) => takers.mayTake(turn, agent))
    return { ...found, state: isExpected ? 'running' : 'unattended' }
  }
  if (asked.length + questions.length > 0) return { ...found, state: 'parked' }
  return { ...found, state: turn.state === 'queued' ? 'queued' : 'running' }
}

class OpenStateReader {
  readonly asked: Node[] = []
  readonly questions: Node[] = []
  readonly needs: Set<string> = new Set()
  readonly pids: Set<number> = new Set()
  wakes = false
  /** Whether a process does more than wait for a person or for children. */
  isBusy = false
  private readonly takers: LiveProcesses
  private readonly tree: TreeReader

  constructor(tree: TreeReader, takers: LiveProcesses) {
    this.tree = tree
    this.takers = takers
  }

  at(turn: Turn): this {
    const nodes = this.tree.openNodes(turn.id)
    const links = this.tree.openLinks(turn.id)
    const awaiting = new Set([...nodes.map(askingNode), ...links.map(callerOf)])
    for (const node of nodes) this.node(node, awaiting.has(node.id))
    for (const { id } of links) {
      const child = this.tree.turn(id)
      if (child !== undefined && child.state !== 'ended') this.at(child)
    }
    return this
  }

  private node(node: Node, isAwaiting: boolean): void {
    // The request it waits for already says everything about it.
    if (isAwaiting && node.effect !== 'effectful') return
    if (node.state === 'awaiting_approval') this.asked.push(node)
    if (node.state === 'waiting' && node.wait?.on === 'question') this.questions.push(node)
    if (node.state === 'running') this.running(node, isAwaiting)
    if (node.state !== 'pending' || node.blockers > 0) return
    if (this.takers.alive.size > 0 && node.wakeAt !== null && node.wakeAt > Date.now()) this.wakes = true
    else this.needs.add(this.agentOf(node))
  }

  private running(node: Node, isAwaiting: boolean): void {
    const pid = this.takers.alive.get(node.engineId ?? '')
    if (pid === undefined) {
      this.needs.add(this.agentOf(node))
      return
    }
    this.pids.add(pid)
    this.isBusy ||= !isAwaiting
  }

  private agentOf({ conversationId }: Node): string {
    return neededCode(this.tree.conversation(conversationId))
  }
}

/** Finds the node whose code waits for this child. */
function callerOf({ mode, taskId }: Link): Json | undefined {
  return mode === 'called' ? taskId : undefined
}
