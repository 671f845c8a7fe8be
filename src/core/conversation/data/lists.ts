// Lists for people: the runs and conversations of a store, newest first, a page at a time.
//
// Owns:      `RunInfo` and `ConversationInfo`, and how they are read from a page of root conversations.
// Called by: `runtime.runs` and `runtime.conversations`. Loaded when one of them is called.
// Must stay true:
//   - The work of a page is that of its items, however much the store holds: `store.roots` does the choosing.
//   - A cursor is the id of the last conversation of a page. New conversations do not move what comes after it.
//   - Trees that were changed from outside are left out; an audit names them.

import type { Json } from '../../base/json.ts'
import { int, type OptionRules, oneOf, readOptions, text } from '../../base/options.ts'
import type { Usage } from '../../graph/content.ts'
import { ROOT_STATES, type RootState, type WaitingOn } from '../../graph/kinds.ts'
import type { Status } from '../../graph/outcome.ts'
import type { RootsQuery, TreeReader } from '../../graph/reader.ts'
import type { Conversation, Id, Turn, TurnState } from '../../graph/rows.ts'
import { lookEach } from '../../store/look.ts'
import type { Store } from '../../store/store.ts'
import { waitingOn } from '../tree.ts'
import { usageOf } from '../usage.ts'

/** Which conversations at the root to list, newest first. */
export interface ListQuery {
  /** Only those of this owner. */
  readonly owner?: string
  /** Only those of the agent with this name. */
  readonly agent?: string
  /** Only those made before this conversation: the last one of the page before. */
  readonly before?: Id
  /** The most items to give, 1 to 1000. Default 50. */
  readonly limit?: number
}

/** Which runs to list: the latest one of each conversation at the root. */
export interface RunsQuery extends ListQuery {
  /** Only runs in this state. */
  readonly state?: RootState
}

/** A conversation at the root, as lists show it. */
export interface ConversationInfo {
  readonly id: Id
  readonly agent: string
  readonly owner: string | null
  readonly title: string | null
  /** How many runs it has had. */
  readonly turns: number
  readonly isRunning: boolean
  readonly archivedAt: number | null
  readonly createdAt: number
  /** When its latest run began or ended. */
  readonly updatedAt: number
}

/** The latest run of a conversation at the root, as lists show it. */
export interface RunInfo {
  readonly runId: Id
  readonly conversationId: Id
  /** The id of its tree: the cursor for the next page. */
  readonly rootId: Id
  readonly agent: string
  readonly owner: string | null
  readonly title: string | null
  /** The beginning of what it was asked, in one line: its message, or the first text of its input. Empty where it has none. */
  readonly asked: string
  readonly state: TurnState
  /** How it ended; null while it is open. */
  readonly status: Status | null
  readonly startedAt: number | null
  readonly endedAt: number | null
  /** The usage of the run and everything below it. */
  readonly usage: Usage
  /** The waits in it and in all it delegated: at most 20 entries; empty while a part of it runs. */
  readonly waitingOn: readonly WaitingOn[]
}

const LIST: OptionRules<ListQuery> = { owner: text, agent: text, before: text, limit: int(1, 1_000) }
const RUNS: OptionRules<RunsQuery> = { ...LIST, state: oneOf(...ROOT_STATES) }

/** The latest run of each conversation at the root, the newest conversation first. */
export async function listRuns(store: Store, query: RunsQuery): Promise<RunInfo[]> {
  return listRoots(store, readOptions('runs()', query, RUNS), toRun)
}

/** The conversations at the root, newest first. */
export async function listConversations(store: Store, query: ListQuery): Promise<ConversationInfo[]> {
  return listRoots(store, readOptions('conversations()', query, LIST), toConversation)
}

/** Reads on until the page is full: a tree that gives no item does not end it. */
async function listRoots<Item>(
  store: Store,
  query: RunsQuery,
  read: (tree: TreeReader, row: Conversation) => Item | undefined,
): Promise<Item[]> {
  const { limit = 50, before, ...which } = query
  const items: Item[] = []
  let page: RootsQuery = { ...which, limit, ...(before === undefined ? {} : { before }) }
  for (;;) {
    const rows = await store.roots(page)
    for (const item of await lookEach(store, rows, read)) if (item !== undefined) items.push(item)
    const last = rows.at(-1)
    if (last === undefined || rows.length < page.limit || items.length >= limit) return items
    page = { ...page, before: last.id, limit: limit - items.length }
  }
}

function toConversation(tree: TreeReader, row: Conversation): ConversationInfo {
  const latest = latestRun(tree, row)
  return {
    id: row.id,
    agent: row.agent.name,
    owner: row.owner,
    title: row.title,
    turns: row.turnCount,
    isRunning: row.activeTurnId !== null,
    archivedAt: row.lane?.archivedAt ?? null,
    createdAt: row.createdAt,
    updatedAt: latest?.endedAt ?? latest?.startedAt ?? latest?.createdAt ?? row.createdAt,
  }
}

/** Undefined for a conversation that has had no run. */
function toRun(tree: TreeReader, row: Conversation): RunInfo | undefined {
  const turn = latestRun(tree, row)
  if (turn === undefined) return undefined
  return {
    runId: turn.id,
    conversationId: row.id,
    rootId: row.rootId,
    agent: row.agent.name,
    owner: row.owner,
    title: row.title,
    asked: beginningOf(turn.input),
    state: turn.state,
    status: turn.outcome?.status ?? null,
    startedAt: turn.startedAt,
    endedAt: turn.endedAt,
    usage: usageOf(tree, turn.id)?.usage ?? turn.account.usage,
    waitingOn: turn.state === 'ended' ? [] : waitsIn(tree, turn).slice(0, MOST_WAITS),
  }
}

const MOST_WAITS = 20
const MOST_ASKED = 120

/** Short, however long the input is. */
function beginningOf(input: Json): string {
  const first = typeof input === 'object' && input !== null ? Object.values(input).find(isText) : input
  return isText(first)
    ? first
        .slice(0, 4 * MOST_ASKED)
        .trim()
        .replace(/\s+/g, ' ')
        .slice(0, MOST_ASKED)
    : ''
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function latestRun(tree: TreeReader, { id }: Conversation): Turn | undefined {
  return tree.turnsOf(id, { limit: 1 })[0]
}

/** The waits at the leaves of a run: that it waits for its delegations says nothing to a person. */
function waitsIn(tree: TreeReader, turn: Turn): WaitingOn[] {
  const own = waitingOn(tree, turn).filter(({ on }) => on !== 'children' && on !== 'nodes')
  const below = tree.openLinks(turn.id).flatMap(({ id }) => {
    const child = tree.turn(id)
    return child === undefined ? [] : waitsIn(tree, child)
  })
  return [...own, ...below]
}
