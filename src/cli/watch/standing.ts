import type { Node, Runtime, Turn } from '../../index.ts'
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
  /** Processes that run a node of it now. */
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
  if (pids.size > 0 || wakes) return { ...found, state: 'running' }
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
  readonly takers: Takers
  private readonly runtime: Runtime

  constructor(runtime: Runtime) {
    this.runtime = runtime
    this.takers = new Takers(runtime)
  }

  at(turn: Turn): void {
    const { store } = this.runtime
    for (const node of store.openNodes(turn.id)) this.node(node)
    for (const { id } of store.openLinks(turn.id)) {
      const child = store.turn(id)
      if (child !== undefined && child.state !== 'ended') this.at(child)
    }
  }

  private node(node: Node): void {
    if (node.state === 'awaiting_approval') this.asked.push(node)
    if (node.state === 'waiting' && node.wait?.on === 'question') this.questions.push(node)
    if (node.state === 'running') this.running(node)
    if (node.state !== 'pending' || node.blockers > 0) return
    if (this.takers.alive.size > 0 && node.wakeAt !== null && node.wakeAt > Date.now()) this.wakes = true
    else this.needs.add(this.agentOf(node))
  }

  private running(node: Node): void {
    const pid = this.takers.alive.get(node.engineId ?? '')
    if (pid === undefined) this.needs.add(this.agentOf(node))
    else this.pids.add(pid)
  }

  private agentOf({ conversationId }: Node): string {
    return codeOf(this.runtime.store.conversation(conversationId))
  }
}
