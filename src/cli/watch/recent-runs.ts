import { type Conversation, look, type TreeReader, type Turn, wantedText } from '../../doors/rows.ts'
import { type Id, isLegateError } from '../../index.ts'
import { type Call, CliError, EXIT } from '../command/command.ts'
import { withPlaces } from '../command/next-command.ts'
import type { Desk, DeskRows } from '../desk/desk.ts'
import { findRunOrNode, shownId } from '../store/find-run.ts'
import { withDesk } from '../store/open-desk.ts'
import { age } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { note } from '../terminal/output.ts'
import { cut } from '../terminal/width.ts'
import { openStateOf } from './activity.ts'

/** How many ended runs are shown, and how many of the newest conversations are searched for them. */
const SHOWN = 10
const LOOKED_AT = 200
const PAGE = 500

/**
 * Finds the run that a reading command means: the one named, also by a node of it, or else the newest of the store,
 * which a note on stderr then names.
 */
export async function runToShow(desk: Desk, { words: [ending] }: Pick<Call, 'words'>): Promise<Turn> {
  const { store } = desk
  if (ending !== undefined) return unchanged(store, await findRunOrNode(store, ending))
  const [newest] = await newestRuns(store, 1)
  reportTampered(store)
  if (newest === undefined) throw new CliError('There are no runs in this store yet.', EXIT.usage, { namesHelp: false })
  note(`The newest run: ${await runLine(desk, newest)}`)
  return newest
}

/** Lists all open runs, the newest first, then those that ended last: of ten other conversations one each. */
export async function recentRuns(store: DeskRows): Promise<Turn[]> {
  const open = await store.openRoots({ limit: Number.MAX_SAFE_INTEGER })
  const shown = new Set(open.map(({ conversationId }) => conversationId))
  const ended = (await lastTurns(store, SHOWN))
    .filter(({ state }) => state === 'ended')
    .sort((a, b) => (b.endedAt ?? 0) - (a.endedAt ?? 0))
    .filter(({ conversationId }) => !shown.has(conversationId) && shown.add(conversationId))
    .slice(0, SHOWN)
  return [...open].sort(newestFirst).concat(ended)
}

/** Lists every run of the store, the newest first. */
export async function allRuns(store: DeskRows): Promise<Turn[]> {
  const turns: Turn[] = []
  for (let before: Id | undefined; ; ) {
    const page = await newestTrees(store, { limit: PAGE, ...(before === undefined ? {} : { before }) })
    for (const tree of page) turns.push(...(await runsOfTree(tree)))
    before = page.at(-1)?.rootId
    if (before === undefined) return turns.sort(newestFirst)
  }
}

/** Lists the runs started last, the newest first. */
async function newestRuns(store: DeskRows, limit: number): Promise<Turn[]> {
  const last = await lastTurns(store, limit)
  const open = await store.openRoots({ limit: Number.MAX_SAFE_INTEGER })
  const runs = new Map([...last, ...open].map((turn) => [turn.id, turn]))
  return [...runs.values()].sort(newestFirst).slice(0, limit)
}

/** Describes a run on one line: id, state, agent and age. */
async function runLine(desk: Desk, turn: Turn): Promise<string> {
  const { id, rootId, conversationId, outcome, createdAt } = turn
  const row = await undefinedIfTampered(async () =>
    look(desk.store, rootId, (tree) => tree.conversation(conversationId)),
  )
  const { agent } = row ?? { agent: { name: '?' } }
  const state = outcome?.status ?? (await undefinedIfTampered(() => openStateOf(desk, turn)))?.state ?? turn.state
  return `${shownId(id)}  ${state}  ${oneLine(agent.name)}  ${age(Date.now() - createdAt)} ago`
}

/** Names, on stderr, every tree that was changed outside the runtime. Returns the exit code. */
export function reportTampered(store: DeskRows): number {
  const found = store.tampered?.() ?? []
  for (const { message } of found) note(`legate: tampered: ${withPlaces(oneLine(message))}`)
  return found.length === 0 ? EXIT.completed : EXIT.other
}

/** Reads a value; undefined if the rows were changed outside the runtime. `store.tampered` then names their tree. */
export async function undefinedIfTampered<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (isLegateError(error, 'tampered')) return undefined
    throw error
  }
}

/** Hides a conversation whose own row was changed. */
async function unchanged(store: DeskRows, turn: Turn): Promise<Turn> {
  await look(store, turn.rootId, (tree) => [tree.conversation(turn.conversationId), tree.conversation(turn.rootId)])
  return turn
}

/** A tree of a list. Reading it throws if its rows were changed outside the runtime. */
interface ListedTree {
  readonly rootId: Id
  readonly rows: Pick<DeskRows, 'tree' | 'near'>
  readonly conversations: () => Promise<readonly Conversation[]>
  /** Reads it with all of its turns, where the list gave some of them. */
  readonly whole?: () => Promise<TreeReader>
}

async function newestTrees(store: DeskRows, query: { limit: number; before?: Id }): Promise<readonly ListedTree[]> {
  if (store.newestTrees !== undefined) {
    return (await store.newestTrees(query)).map(({ tree, ...one }) => ({ ...one, rows: { tree: () => tree } }))
  }
  return (await store.roots(query)).map(({ id }) => ({
    rootId: id,
    rows: store,
    conversations: () => conversationsOf(store, id),
  }))
}

async function conversationsOf(store: DeskRows, rootId: Id): Promise<readonly Conversation[]> {
  const rows: Conversation[] = []
  for (let after: Id | undefined; ; ) {
    const page = await store.conversations({ rootId, limit: PAGE, ...(after === undefined ? {} : { after }) })
    rows.push(...page)
    after = page.at(-1)?.id
    if (after === undefined) return rows
  }
}

/** Lists all runs of a tree that people started: those of its root and of every lane, also of a subagent's. */
async function runsOfTree(listed: ListedTree): Promise<readonly Turn[]> {
  const turns: Turn[] = []
  await undefinedIfTampered(async () => {
    for (const { id, type, turnCount } of await listed.conversations())
      if (type === 'user') turns.push(...(await turnsIn(listed, id, turnCount)))
  })
  return turns
}

/** The turns of a lane, read some at a time. */
async function turnsIn(
  { rows, rootId, whole }: Pick<ListedTree, 'rows' | 'rootId' | 'whole'>,
  laneId: Id,
  turnCount: number,
): Promise<Turn[]> {
  const turns: Turn[] = []
  for (let first = 0; first < turnCount; first += PAGE) {
    const limit = Math.min(PAGE, turnCount - first)
    turns.push(...(await look(rows, rootId, (tree) => tree.turnsOf(laneId, { last: first + limit - 1, limit }))))
  }
  if (turns.length === turnCount || whole === undefined) return turns
  return turnsIn({ rootId, rows: { tree: whole } }, laneId, turnCount)
}

/** Lists the last turns of each of the newest conversations, and of the lanes forked from it. */
async function lastTurns(store: DeskRows, limit: number): Promise<Turn[]> {
  const turns: Turn[] = []
  for (const listed of await newestTrees(store, { limit: LOOKED_AT })) {
    await undefinedIfTampered(async () => {
      const { rows, rootId, whole } = listed
      const found = await look(rows, rootId, (tree) => lastOfLanes(tree, rootId, limit))
      const lacksOne = found.some((lane) => lane.length === 0) && whole !== undefined
      turns.push(...(lacksOne ? lastOfLanes(await whole(), rootId, limit) : found).flat())
    })
  }
  return turns
}

function lastOfLanes(tree: TreeReader, rootId: Id, limit: number): readonly (readonly Turn[])[] {
  const lanes = lanesFrom(tree, rootId).filter((id) => (tree.conversation(id)?.turnCount ?? 0) > 0)
  return lanes.map((id) => tree.turnsOf(id, { limit }))
}

/** Lists a conversation and all lanes forked from it: each names its newest lane, and each lane the one before it. */
function lanesFrom(tree: TreeReader, id: Id): Id[] {
  const found = [id]
  for (const laneId of found) {
    for (let next = tree.conversation(laneId)?.lane?.newest; next != null; next = tree.conversation(next)?.lane?.before)
      found.push(next)
  }
  return found
}

function newestFirst(a: Turn, b: Turn): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1)
}

const NAMED = 5

const LONGEST = 120

/** Lists runs that a command without an id could mean, the newest first, one a line. Empty if there is no store. */
export async function candidatesFor(command: string, call: Call): Promise<readonly string[]> {
  const list = LISTS[command] ?? ((desk: Desk) => runsIn(desk, () => true))
  try {
    return (await withDesk(call, 'read', list)).map((line) => cut(line, LONGEST))
  } catch {
    return []
  }
}

type List = (desk: Desk) => Promise<readonly string[]>

const LISTS: Readonly<Record<string, List>> = {
  approve: approvals,
  deny: approvals,
  answer: questions,
  cancel: (desk) => runsIn(desk, ({ state }) => state !== 'ended'),
  retry: (desk) => runsIn(desk, ({ outcome }) => outcome !== null && outcome.status !== 'completed'),
}

async function runsIn(desk: Desk, fits: (turn: Turn) => boolean): Promise<readonly string[]> {
  const runs = (await newestRuns(desk.store, LOOKED_AT)).filter(fits)
  return Promise.all(runs.slice(0, NAMED).map((turn) => runLine(desk, turn)))
}

async function approvals(desk: Desk): Promise<readonly string[]> {
  const asked = await desk.approvals({ limit: NAMED })
  return asked.map((one) => `${shownId(one.nodeId)}  ${pathText(one.path)} wants ${wantedText(one)}`)
}

async function questions(desk: Desk): Promise<readonly string[]> {
  const asked = await desk.questions({ limit: NAMED })
  return asked.map(({ nodeId, path, text }) => `${shownId(nodeId)}  ${pathText(path)} asks: ${oneLine(text)}`)
}

function pathText(path: readonly string[]): string {
  return path.map(oneLine).join(' > ')
}
