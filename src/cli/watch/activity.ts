import type { Id, Json, Link, Node, Runtime, Turn } from '../../index.ts'
import { duration } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { askingNode, describeCall, questionOf } from './request-text.ts'
import type { WatchedRun } from './run-tree.ts'
import { codeOf } from './words.ts'

const LISTED = 60

/** The current activity of a run, or what it waits for, read from its rows. */
export interface Activity {
  readonly text: string
  /** The length of the label of streamed text: when the line is cut, the label and the end of the text stay. */
  readonly label?: number
  readonly mood: 'works' | 'waits' | 'person' | 'stuck'
}

/** Returns a function that describes runs; it checks once for all of them which processes are alive. */
export function activityReader(runtime: Runtime): (turnId: Id, hears?: WatchedRun['hears']) => Activity | null {
  const { store } = runtime
  const takers = new LiveProcesses(runtime)
  const now = Date.now()
  return (turnId, hears = null) => {
    const turn = store.turn(turnId)
    if (turn === undefined || turn.state === 'ended') return null
    if (turn.cancel !== null) return { text: 'stopping', mood: 'waits' }
    if (turn.state === 'queued') return { text: 'queued', mood: 'waits' }
    return doingOf({ runtime, turn, takers, now, hears })
  }
}

interface ActivityContext {
  readonly runtime: Runtime
  readonly turn: Turn
  readonly takers: LiveProcesses
  readonly now: number
  readonly hears: WatchedRun['hears']
}

function doingOf(look: ActivityContext): Activity {
  const nodes = look.runtime.store.openNodes(look.turn.id)
  const asked = nodes.filter(({ state }) => state === 'awaiting_approval')
  if (asked.length > 0)
    return { text: `needs a person: ${listed(asked.map((node) => describeCall(node)))}`, mood: 'person' }
  const askers = new Set(nodes.map(askingNode))
  const isAlive = ({ engineId }: Node) => engineId !== null && look.takers.alive.has(engineId)
  const isAsking = (node: Node) => askers.has(node.id) && (node.effect !== 'effectful' || isAlive(node))
  const running = nodes.filter((node) => node.state === 'running' && !isAsking(node))
  const working = running.filter(isAlive)
  if (working.length > 0) return { ...workOf(working, look), mood: 'works' }
  if (running.length > 0) return { text: 'its process is gone: continue with legate resume', mood: 'stuck' }
  return waitOf(nodes, look)
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

function waitOf(nodes: readonly Node[], { runtime, turn, takers, now }: ActivityContext): Activity {
  const question = nodes.find(({ state, wait }) => state === 'waiting' && wait?.on === 'question')
  if (question !== undefined) return { text: `asks: ${questionOf(question)}`, mood: 'person' }
  const later = nodes.find(({ state, wakeAt }) => state === 'pending' && wakeAt !== null && wakeAt > now)
  if (later?.wakeAt) return { text: `retrying in ${duration(later.wakeAt - now)}`, mood: 'waits' }
  const agents = runtime.store.openLinks(turn.id).map(({ agentName }) => oneLine(agentName))
  if (agents.length > 0) return { text: `waiting for ${listed(agents)}`, mood: 'waits' }
  const ready = nodes.some(({ state, blockers }) => state === 'pending' && blockers === 0)
  const agent = codeOf(runtime.store.conversation(turn.conversationId))
  if (ready && !takers.mayTake(turn, agent))
    return { text: 'no process works on it: continue with legate resume', mood: 'stuck' }
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
  private readonly runtime: Runtime
  private busyWith: ReadonlySet<string> | undefined

  constructor(runtime: Runtime) {
    this.runtime = runtime
    this.alive = new Map(runtime.processes().flatMap(({ id, pid, isAlive }) => (isAlive ? [[id, pid]] : [])))
  }

  /**
   * Tells whether a live process may continue this run, which needs the code of that agent. A run that needs no code
   * belongs to none.
   */
  mayTake({ rootId, createdAt }: Turn, agent: string): boolean {
    if (this.alive.size === 0) return false
    const isFresh = Date.now() - Math.max(createdAt, this.lastEventAt(rootId)) < PATIENCE_MS
    return isFresh || (agent !== '' && this.agentsAtWork().has(agent))
  }

  private lastEventAt(rootId: Id): number {
    const { store } = this.runtime
    return store.events(rootId, store.lastSeq(rootId) - 1, 1).at(-1)?.at ?? 0
  }

  private agentsAtWork(): ReadonlySet<string> {
    const { store } = this.runtime
    this.busyWith ??= new Set(
      [...this.alive.keys()]
        .flatMap((id) => store.claimedBy(id, LOOKED_AT))
        .flatMap(({ conversationId }) => codeOf(store.conversation(conversationId))),
    )
    return this.busyWith
  }
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
export function openStateOf(runtime: Runtime, turn: Turn): OpenState {
  const look = new OpenStateReader(runtime)
  look.at(turn)
  const { asked, questions, needs, pids, wakes } = look
  const found = { asked, questions, needs: [...needs], pids: [...pids], wakes }
  if (turn.cancel !== null) return { ...found, state: 'stopping' }
  if (look.isBusy || wakes) return { ...found, state: 'running' }
  if (needs.size > 0) {
    const isExpected = [...needs].some((agent) => look.takers.mayTake(turn, agent))
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
  readonly takers: LiveProcesses
  private readonly runtime: Runtime

  constructor(runtime: Runtime) {
    this.runtime = runtime
    this.takers = new LiveProcesses(runtime)
  }

  at(turn: Turn): void {
    const { store } = this.runtime
    const nodes = store.openNodes(turn.id)
    const links = store.openLinks(turn.id)
    const awaiting = new Set([...nodes.map(askingNode), ...links.map(callerOf)])
    for (const node of nodes) this.node(node, awaiting.has(node.id))
    for (const { id } of links) {
      const child = store.turn(id)
      if (child !== undefined && child.state !== 'ended') this.at(child)
    }
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
    return codeOf(this.runtime.store.conversation(conversationId))
  }
}

/** Finds the node whose code waits for this child. */
function callerOf({ mode, taskId }: Link): Json | undefined {
  return mode === 'called' ? taskId : undefined
}
