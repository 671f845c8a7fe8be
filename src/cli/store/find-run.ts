// Finds what a person means by the ending of an id: a run, a node, a conversation, or one that was deleted.
//
// Owns:      how few characters are enough, and the errors for endings that fit nothing or too much.
// Called by: every command that takes an ID.
// Must stay true:
//   - A command that changes something never guesses: an ending that fits two things is refused, with both of them.

import { type Conversation, lookWith, type Node, type Tombstone, type TreeReader, type Turn } from '../../doors/rows.ts'
import type { Id } from '../../index.ts'
import { CliError, EXIT } from '../command/command.ts'
import { legate } from '../command/next-command.ts'
import type { DeskRows } from '../desk/desk.ts'
import { age, moment } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'

const MOST_FOUND = 100
/** With fewer characters a typing mistake would easily match something. */
const LEAST_TYPED = 4

/** Shortens an id to its last 8 characters, the form people read and type. */
export function shownId(id: Id): string {
  return oneLine(id.slice(-8))
}

/** Finds a run by the ending of its id, or the last run of a conversation by the ending of the conversation's. */
export async function findRun(store: DeskRows, ending: string): Promise<Turn> {
  return runOf(store, ending, await named(store, ending))
}

/** Finds a run also by the id of one of its nodes, for commands that only read. */
export async function findRunOrNode(store: DeskRows, ending: string): Promise<Turn> {
  const runs = await named(store, ending)
  return runOf(store, ending, runs.length > 0 ? runs : await findRunIds(store, ending))
}

/** Finds the nodes whose id ends this way. */
export async function findNodes(store: DeskRows, ending: string): Promise<Node[]> {
  const found: Node[] = []
  for (const { id, type } of await findRunIds(store, ending)) {
    const node = type === 'node' ? await lookWith(store, id, (tree) => tree.node(id)) : undefined
    if (node !== undefined) found.push(node)
  }
  return found
}

type FoundIds = Awaited<ReturnType<DeskRows['findIds']>>

/** Finds everything whose id ends this way. Throws a CliError if too few characters were typed. */
export async function findRunIds(store: DeskRows, ending: string): Promise<FoundIds> {
  const wanted = withDashes(ending)
  if (wanted.length >= LEAST_TYPED) return store.findIds(wanted, MOST_FOUND)
  throw new CliError(
    `"${oneLine(ending)}" is too short for an id. Type at least its last ${LEAST_TYPED} characters.`,
    EXIT.usage,
  )
}

async function named(store: DeskRows, ending: string): Promise<FoundIds> {
  return (await findRunIds(store, ending)).filter(({ type }) => type !== 'node')
}

async function runOf(store: DeskRows, ending: string, found: FoundIds): Promise<Turn> {
  const runs = new Map<Id, FoundRun>()
  for (const { id, type } of found) {
    const run = await lookWith(store, id, (tree) => foundRun(tree, id, type))
    if (run !== undefined) runs.set(run.turn.id, run)
  }
  if (runs.size === 0 && found.length === 0) await refuseDeleted(store, ending)
  const lane = runs.size === 0 ? found.find(({ type }) => type === 'conversation') : undefined
  if (lane !== undefined) {
    const id = shownId(lane.id)
    throw new CliError(`${id} has no run yet. Send a message: ${legate(`chat --continue ${id}`)}`, EXIT.usage)
  }
  return onlyMatch([...runs.values()], ending, ({ line }) => line).turn
}

function foundRun(tree: TreeReader, id: Id, type: FoundIds[number]['type']): FoundRun | undefined {
  const turn = turnOf(tree, id, type)
  return turn === undefined ? undefined : { line: lineOf(tree, turn), turn }
}

interface FoundRun {
  readonly line: string
  readonly turn: Turn
}

/** Finds a conversation or lane by the ending of its id or of the id of one of its runs. */
export async function findConversation(store: DeskRows, ending: string): Promise<Conversation> {
  const found = new Map<Id, Conversation>()
  for (const { id, type } of await named(store, ending)) {
    const row = await lookWith(store, id, (tree) =>
      tree.conversation(type === 'turn' ? (tree.turn(id)?.conversationId ?? '') : id),
    )
    if (row !== undefined) found.set(row.id, row)
  }
  if (found.size === 0) await refuseDeleted(store, ending)
  return onlyMatch([...found.values()], ending, ({ id, agent }) => `${id}  ${oneLine(agent.name)}`)
}

/** Reports a deleted run as deleted, with the time and the reason, instead of as missing. */
export async function refuseDeleted(store: DeskRows, ending: string): Promise<void> {
  const id = await findDeleted(store, ending)
  if (id === undefined) return
  const stone = await store.archive?.tombstone(id)
  if (stone === undefined) return
  const { agent, at, reason, hash } = stone
  const what = `${oneLine(agent)} ${shownId(id)} was deleted on ${moment(at)} (${removalText(reason)})`
  throw new CliError(`${what}. The last commit of its tree has the hash ${hash}.`)
}

/** Says in words why a tree was deleted. */
export function removalText(reason: string): string {
  if (reason === 'maximum') return 'more runs than were to be kept'
  return reason === 'ttl' ? 'older than was to be kept' : oneLine(reason)
}

/** Finds a deleted run or conversation by the ending of its id; the newest of several. */
export async function findDeleted(store: DeskRows, ending: string): Promise<Id | undefined> {
  const wanted = withDashes(ending)
  if (wanted.length < LEAST_TYPED) return undefined
  const ids = ((await store.archive?.tombstones()) ?? []).flatMap(({ conversations }) => namesIn(conversations))
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
    throw new CliError(`No id here ends in "${shown}". ${legate('ps --all')} lists the runs.`, EXIT.usage)
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

function turnOf(tree: TreeReader, id: Id, type: 'conversation' | 'turn' | 'node'): Turn | undefined {
  if (type === 'turn') return tree.turn(id)
  if (type === 'conversation') return tree.turnsOf(id, { limit: 1 }).at(-1)
  return tree.turn(tree.node(id)?.turnId ?? '')
}

function lineOf(tree: TreeReader, turn: Turn): string {
  const { agent } = tree.conversation(turn.conversationId) ?? { agent: { name: '?' } }
  const state = turn.outcome?.status ?? 'open'
  return `${turn.id}  ${state}  ${oneLine(agent.name)}  ${age(Date.now() - turn.createdAt)} ago`
}
