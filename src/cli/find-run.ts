import type { Id, Store, Turn } from '../index.ts'
import { CliError, EXIT } from './command.ts'
import { age } from './terminal/amounts.ts'
import { oneLine } from './terminal/clean.ts'

const MOST_FOUND = 20

/** What people read and type: the last 8 characters of an id. */
export function shortId(id: Id): string {
  return id.slice(-8)
}

/** The run that is meant by the ending of an id: of itself, of its conversation (then the last run there), of a node. */
export function findRun(store: Store, ending: string): Turn {
  const found = store.findIds(withDashes(ending), MOST_FOUND)
  const named = found.filter(({ type }) => type !== 'node')
  const runs = new Map<Id, Turn>()
  for (const { id, type } of named.length > 0 ? named : found) {
    const turn = turnOf(store, id, type)
    if (turn !== undefined) runs.set(turn.id, turn)
  }
  return only([...runs.values()], ending, (turn) => lineOf(store, turn))
}

/** The one of several; else a message that lists them. */
export function only<T>(found: readonly T[], ending: string, lineFor: (one: T) => string): T {
  const [first, ...others] = found
  const shown = oneLine(ending)
  if (first === undefined) {
    throw new CliError(`No id in this store ends in "${shown}". legate ps --all lists the runs.`, EXIT.usage)
  }
  if (others.length === 0) return first
  const lines = found.map((one) => `\n  ${lineFor(one)}`).join('')
  throw new CliError(`More than one id ends in "${shown}":${lines}\nType more of it.`, EXIT.usage)
}

/** Ids are stored in lower case, with dashes; people leave them out. */
export function withDashes(ending: string): string {
  const bare = ending.trim().toLowerCase().replaceAll('-', '')
  const groups = [bare.slice(-12)]
  for (let end = bare.length - 12; end > 0; end -= 4) groups.unshift(bare.slice(Math.max(0, end - 4), end))
  if (groups.length <= 4) return groups.join('-')
  // The first group of an id has eight characters.
  return [groups.slice(0, -4).join(''), ...groups.slice(-4)].join('-')
}

function turnOf(store: Store, id: Id, type: 'conversation' | 'turn' | 'node'): Turn | undefined {
  if (type === 'turn') return store.turn(id)
  if (type === 'conversation') return store.turnsOf(id, { limit: 1 }).at(-1)
  return store.turn(store.node(id)?.turnId ?? '')
}

function lineOf(store: Store, turn: Turn): string {
  const { agent } = store.conversation(turn.conversationId) ?? { agent: { name: '?' } }
  const state = turn.outcome?.status ?? turn.state
  return `${turn.id}  ${state}  ${oneLine(agent.name)}  ${age(Date.now() - turn.createdAt)} ago`
}
