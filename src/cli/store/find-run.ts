import type { Conversation, Id, Store, Tombstone, Turn } from '../../index.ts'
import { CliError, EXIT } from '../command/command.ts'
import { age, moment } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'

const MOST_FOUND = 100
/** With fewer characters a typing mistake would easily match something. */
const LEAST_TYPED = 4

/** Shortens an id to its last 8 characters, the form people read and type. */
export function shortId(id: Id): string {
  return id.slice(-8)
}

/** Finds a run by the ending of its id, or the last run of a conversation by the ending of the conversation's. */
export function findRun(store: Store, ending: string): Turn {
  return runOf(store, ending, named(store, ending))
}

/** Finds a run also by the id of one of its nodes, for commands that only read. */
export function findRunOrNode(store: Store, ending: string): Turn {
  const runs = named(store, ending)
  return runOf(store, ending, runs.length > 0 ? runs : findIds(store, ending))
}

type FoundIds = ReturnType<Store['findIds']>

/** Finds everything whose id ends this way. Throws a CliError if too few characters were typed. */
export function findIds(store: Store, ending: string): FoundIds {
  const wanted = withDashes(ending)
  if (wanted.length >= LEAST_TYPED) return store.findIds(wanted, MOST_FOUND)
  throw new CliError(
    `"${oneLine(ending)}" is too short for an id. Type at least its last ${LEAST_TYPED} characters.`,
    EXIT.usage,
  )
}

function named(store: Store, ending: string): FoundIds {
  return findIds(store, ending).filter(({ type }) => type !== 'node')
}

function runOf(store: Store, ending: string, found: FoundIds): Turn {
  const runs = new Map<Id, Turn>()
  for (const { id, type } of found) {
    const turn = turnOf(store, id, type)
    if (turn !== undefined) runs.set(turn.id, turn)
  }
  if (runs.size === 0 && found.length === 0) refuseDeleted(store, ending)
  const lane = runs.size === 0 ? found.find(({ type }) => type === 'conversation') : undefined
  if (lane !== undefined) {
    const id = shortId(lane.id)
    throw new CliError(`${id} has no run yet. Send a message: legate chat --continue ${id}`, EXIT.usage)
  }
  return onlyMatch([...runs.values()], ending, (turn) => lineOf(store, turn))
}

/** Finds a conversation or lane by the ending of its id or of the id of one of its runs. */
export function findConversation(store: Store, ending: string): Conversation {
  const found = new Map<Id, Conversation>()
  for (const { id, type } of named(store, ending)) {
    const row = store.conversation(type === 'turn' ? (store.turn(id)?.conversationId ?? '') : id)
    if (row !== undefined) found.set(row.id, row)
  }
  if (found.size === 0) refuseDeleted(store, ending)
  return onlyMatch([...found.values()], ending, ({ id, agent }) => `${id}  ${oneLine(agent.name)}`)
}

/** Reports a deleted run as deleted, with the time and the reason, instead of as missing. */
function refuseDeleted(store: Store, ending: string): void {
  const id = findDeleted(store, ending)
  if (id === undefined) return
  const stone = store.archive?.tombstone(id)
  if (stone === undefined) return
  const { agent, at, reason, hash } = stone
  const what = `${oneLine(agent)} ${shortId(id)} was deleted on ${moment(at)} (${oneLine(reason)})`
  throw new CliError(`${what}. The last commit of its tree has the hash ${hash}.`)
}

/** Finds a deleted run or conversation by the ending of its id; the newest of several. */
export function findDeleted(store: Store, ending: string): Id | undefined {
  const wanted = withDashes(ending)
  if (wanted.length < LEAST_TYPED) return undefined
  const ids = (store.archive?.tombstones() ?? []).flatMap(({ conversations }) => namesIn(conversations))
  return ids.findLast((id) => id.endsWith(wanted))
}

function namesIn(conversations: Tombstone['conversations']): Id[] {
  return conversations.flatMap(({ id, runs }) => [id, ...runs])
}

/** Returns the only match, or throws an error that lists all of them. */
export function onlyMatch<T>(found: readonly T[], ending: string, lineFor: (one: T) => string): T {
  const [first, ...others] = found
  const shown = oneLine(ending)
  if (first === undefined) {
    throw new CliError(`No id in this store ends in "${shown}". legate ps --all lists the runs.`, EXIT.usage)
  }
  if (others.length === 0) return first
  const lines = found.map((one) => `\n  ${lineFor(one)}`).join('')
  throw new CliError(`More than one id ends in "${shown}":${lines}\nType more characters.`, EXIT.usage)
}

/** Restores the stored form of an id: lower case, with dashes, which people may omit. */
export function withDashes(ending: string): string {
  const bare = ending.trim().toLowerCase().replaceAll('-', '')
  const groups = [bare.slice(-12)]
  let end = bare.length - 12
  for (; end > 0 && groups.length < 4; end -= 4) groups.unshift(bare.slice(Math.max(0, end - 4), end))
  // The first group of an id has eight characters.
  return end > 0 ? [bare.slice(0, end), ...groups].join('-') : groups.join('-')
}

function turnOf(store: Store, id: Id, type: 'conversation' | 'turn' | 'node'): Turn | undefined {
  if (type === 'turn') return store.turn(id)
  if (type === 'conversation') return store.turnsOf(id, { limit: 1 }).at(-1)
  return store.turn(store.node(id)?.turnId ?? '')
}

function lineOf(store: Store, turn: Turn): string {
  const { agent } = store.conversation(turn.conversationId) ?? { agent: { name: '?' } }
  const state = turn.outcome?.status ?? 'open'
  return `${turn.id}  ${state}  ${oneLine(agent.name)}  ${age(Date.now() - turn.createdAt)} ago`
}
