import type { Id, Node, Runtime, Turn } from '../../index.ts'
import { duration } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { askerOf, callOf, questionOf } from './asked.ts'
import { codeOf } from './code-of.ts'
import type { TreeRun } from './run-tree.ts'
import { Takers } from './takers.ts'

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
