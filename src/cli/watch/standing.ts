import type { Json, Link, Node, Runtime, Turn } from '../../index.ts'
import { askerOf } from './asked.ts'
import { codeOf } from './code-of.ts'
import { Takers } from './takers.ts'

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
  const look = new Look(runtime)
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

class Look {
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
