import type { Link, Node, Turn } from '../../doors/rows.ts'
import type { Id, Json, Runtime } from '../../index.ts'
import { duration } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { askerOf, callOf, questionOf } from './asked.ts'
import type { TreeRun } from './run-tree.ts'
import { codeOf } from './words.ts'

const LISTED = 60

/** What a run is doing or waiting for right now, read from its rows. */
export interface Doing {
  readonly text: string
  /** It is being said: behind so many characters its end is news, not its beginning. */
  readonly label?: number
  readonly mood: 'works' | 'waits' | 'person' | 'stuck'
}

/** Asks who is alive once for any number of runs. */
export function doingIn(runtime: Runtime): (turnId: Id, hears?: TreeRun['hears']) => Doing | null {
  const { store } = runtime
  const takers = new Takers(runtime)
  const now = Date.now()
  return (turnId, hears = null) => {
    const turn = store.turn(turnId)
    if (turn === undefined || turn.state === 'ended') return null
    if (turn.cancel !== null) return { text: 'stopping', mood: 'waits' }
    if (turn.state === 'queued') return { text: 'queued', mood: 'waits' }
    return doingOf({ runtime, turn, takers, now, hears })
  }
}

interface Look {
  readonly runtime: Runtime
  readonly turn: Turn
  readonly takers: Takers
  readonly now: number
  readonly hears: TreeRun['hears']
}

function doingOf(look: Look): Doing {
  const nodes = look.runtime.store.openNodes(look.turn.id)
  const asked = nodes.filter(({ state }) => state === 'awaiting_approval')
  if (asked.length > 0) return { text: `needs a person: ${listed(asked.map((node) => callOf(node)))}`, mood: 'person' }
  const askers = new Set(nodes.map(askerOf))
  const isAlive = ({ engineId }: Node) => engineId !== null && look.takers.alive.has(engineId)
  const isAsking = (node: Node) => askers.has(node.id) && (node.effect !== 'effectful' || isAlive(node))
  const running = nodes.filter((node) => node.state === 'running' && !isAsking(node))
  const working = running.filter(isAlive)
  if (working.length > 0) return { ...workOf(working, look), mood: 'works' }
  if (running.length > 0) return { text: 'its process is gone: legate resume goes on', mood: 'stuck' }
  return waitOf(nodes, look)
}

function workOf(working: readonly Node[], { hears }: Look): Pick<Doing, 'text' | 'label'> {
  if (hears?.kind === 'progress') return { text: oneLine(hears.text) }
  const tasks = working.filter(({ kind }) => kind === 'task')
  if (tasks.length > 0) return { text: listed(tasks.map((node) => callOf(node))) }
  const own = working.filter(({ kind }) => kind !== 'agent_message')
  if (own.length > 0) return { text: listed(own.map(({ kind }) => oneLine(kind))) }
  if (hears === null) return { text: 'thinking' }
  const label = LABELS[hears.kind]
  return { text: `${label}${oneLine(hears.text)}`, ...(hears.kind === 'call' ? {} : { label: label.length }) }
}

const LABELS = { reasoning: 'thinking: ', call: 'calls ', text: 'says: ' } as const

function waitOf(nodes: readonly Node[], { runtime, turn, takers, now }: Look): Doing {
  const question = nodes.find(({ state, wait }) => state === 'waiting' && wait?.on === 'question')
  if (question !== undefined) return { text: `asks: ${questionOf(question)}`, mood: 'person' }
  const later = nodes.find(({ state, wakeAt }) => state === 'pending' && wakeAt !== null && wakeAt > now)
  if (later?.wakeAt) return { text: `retrying in ${duration(later.wakeAt - now)}`, mood: 'waits' }
  const agents = runtime.store.openLinks(turn.id).map(({ agentName }) => oneLine(agentName))
  if (agents.length > 0) return { text: `waiting for ${listed(agents)}`, mood: 'waits' }
  const ready = nodes.some(({ state, blockers }) => state === 'pending' && blockers === 0)
  const agent = codeOf(runtime.store.conversation(turn.conversationId))
  if (ready && !takers.mayTake(turn, agent)) return { text: 'no process works on it: legate resume', mood: 'stuck' }
  return { text: ready ? 'waiting for a worker' : 'waiting', mood: 'waits' }
}

/** As many as one can take in, and how many more. */
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

/** A living process takes up what it has code for within its sweep, which is a second: then this is long. */
const PATIENCE_MS = 5_000
const LOOKED_AT = 200

/** The living processes of a store, and what they may be expected to take up. Nobody says which agents they have. */
class Takers {
  /** Process ids by engine. */
  readonly alive: ReadonlyMap<Id, number>
  private readonly runtime: Runtime
  private busyWith: ReadonlySet<string> | undefined

  constructor(runtime: Runtime) {
    this.runtime = runtime
    this.alive = new Map(runtime.processes().flatMap(({ id, pid, isAlive }) => (isAlive ? [[id, pid]] : [])))
  }

  /** Could one of them go on with this run, which needs the code of that agent? What needs none is nobody's duty. */
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

/** How a run and all it delegated stand together, as long as it is not over. */
export interface Standing {
  /** unattended: it could go on, but no process works on it. parked: only a person can go on with it. */
  readonly state: 'queued' | 'running' | 'stopping' | 'parked' | 'unattended'
  /** Calls that wait for a person to allow them. */
  readonly asked: readonly Node[]
  /** Calls that have asked something and wait for the answer. */
  readonly questions: readonly Node[]
  /** Agents whose code would be needed to go on; an empty name where none is. */
  readonly needs: readonly string[]
  /**
   * Processes that it needs alive: they run a node of it. Code that may run again and only waits, for a person or a child, is
   * not among them: a restart loses nothing of it.
   */
  readonly pids: readonly number[]
  /** Something waits for its time to come, and a process for it. */
  readonly wakes: boolean
}

/** Reads the open part of the tree only. */
export function standingOf(runtime: Runtime, turn: Turn): Standing {
  const look = new StandingLook(runtime)
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

class StandingLook {
  readonly asked: Node[] = []
  readonly questions: Node[] = []
  readonly needs: Set<string> = new Set()
  readonly pids: Set<number> = new Set()
  wakes = false
  /** Does a process do more than wait with what asked a person or delegates? */
  isBusy = false
  readonly takers: Takers
  private readonly runtime: Runtime

  constructor(runtime: Runtime) {
    this.runtime = runtime
    this.takers = new Takers(runtime)
  }

  at(turn: Turn): void {
    const { store } = this.runtime
    const nodes = store.openNodes(turn.id)
    const links = store.openLinks(turn.id)
    const awaiting = new Set([...nodes.map(askerOf), ...links.map(callerOf)])
    for (const node of nodes) this.node(node, awaiting.has(node.id))
    for (const { id } of links) {
      const child = store.turn(id)
      if (child !== undefined && child.state !== 'ended') this.at(child)
    }
  }

  private node(node: Node, isAwaiting: boolean): void {
    // What it waits for says all there is to say of it.
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

/** The node whose code waits for this child. */
function callerOf({ mode, taskId }: Link): Json | undefined {
  return mode === 'called' ? taskId : undefined
}
