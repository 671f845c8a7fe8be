// The feed of changes: which trees went on, in one list for all of them.
//
// Owns:      the type of a change, which events make one, and how cursors are read.
// Called by: stores write and read it; servers, webhooks and inboxes follow it.
// Must stay true:
//   - A change is stored with its commit, or not at all; a reader that goes from cursor to cursor misses none.
//   - Changes of one tree come in their order. Those of two trees may come in any.
//   - A reader whose cursor is older than what is kept is told so: it must list the trees anew.

import type { Commit } from '../graph/commit.ts'
import type { EventBody } from '../graph/event.ts'
import type { Conversation, Id } from '../graph/rows.ts'

/** A commit after which somebody may want to look at its tree. */
export interface TreeChange {
  readonly rootId: Id
  /** The number of the last event of the commit. */
  readonly seq: number
  /** Owner and agent of the root conversation. */
  readonly owner: string | null
  readonly agent: string
  /** The time of the commit, in milliseconds since 1970. */
  readonly at: number
  /** The types of its events that matter here: see `changeTypes`. */
  readonly types: readonly EventBody['type'][]
}

export interface ChangePage {
  readonly changes: readonly TreeChange[]
  /** Where to go on: `changes(cursor, limit)`. Its form is the store's own affair. */
  readonly cursor: string
  /** True where changes after the given cursor are no longer kept: list the trees anew. */
  readonly isCut: boolean
}

/** Events that make a change: in a run at the root, or however deep they happen. */
const CHANGES: ReadonlyMap<string, 'root' | 'anywhere'> = new Map([
  ['run-queued', 'root'],
  ['run-start', 'root'],
  ['run-end', 'root'],
  ['approval-request', 'anywhere'],
  ['approval-answer', 'anywhere'],
  ['question', 'anywhere'],
  ['answer', 'anywhere'],
  ['stalled', 'anywhere'],
  ['budget', 'anywhere'],
  ['uncertain', 'anywhere'],
  ['call-settled', 'anywhere'],
])

/** The types of events for which a commit is in the feed, each once; none for most commits. */
export function changeTypes({ events }: Commit): TreeChange['types'] {
  let types: TreeChange['types'] | undefined
  for (const { body, parentId } of events) {
    const { type } = body
    const where = CHANGES.get(type)
    if (where === undefined || (where === 'root' && parentId !== null)) continue
    if (types === undefined) types = ALONE.get(type) ?? [type]
    else if (!types.includes(type)) types = [...types, type]
  }
  return types ?? NONE
}

/** Most changes have one type: they share its list, because a store keeps many of them. */
const ALONE: ReadonlyMap<string, TreeChange['types']> = new Map(
  [...CHANGES.keys()].map((type) => [type, [type as EventBody['type']]]),
)

const NONE: TreeChange['types'] = []

/** A change by the root conversation of its tree; `seq` is the tree's sequence after the commit. */
export function changeOf(
  root: Conversation,
  { at }: Commit,
  { seq, types }: Pick<TreeChange, 'seq' | 'types'>,
): TreeChange {
  return { rootId: root.id, seq, owner: root.owner, agent: root.agent.name, at, types }
}

/** The number of the change after which to read, and whether some after it are gone. */
export function readCursor(
  after: string | null,
  /** The first one; one more than `last` where there are none. */
  first: number,
  last: number,
): { after: number; isCut: boolean } {
  if (after === null) return { after: first - 1, isCut: false }
  const number = /^\d{1,15}$/.test(after) ? Number(after) : -1
  const isKept = number >= first - 1 && number <= last
  return isKept ? { after: number, isCut: false } : { after: first - 1, isCut: true }
}
