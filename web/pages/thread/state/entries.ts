// The entries of a run: each message with the calls that came of it.

import type { TreeState } from 'legate/client'

/** A message and its calls, by their ids. The same object while both are the same. */
export interface Entry {
  /** Null for calls that no message precedes. */
  readonly messageId: string | null
  readonly callIds: readonly string[]
}

/** The entries of a run, and how far they go. */
export interface Entries {
  readonly all: readonly Entry[]
  /** The newest node among them, and how many nodes there are. */
  readonly lastId: string | null
  readonly count: number
}

export const NO_ENTRIES: Entries = { all: [], lastId: null, count: 0 }

/** The entries of a run in order. It reads the nodes that came since `before`; entries that are the same stay the same objects. */
export function entriesOf(state: TreeState, runId: string, before: Entries): Entries {
  const found = newNodes(state, runId, before.lastId)
  if (found.ids.length === 0 && found.isKnown) return before
  const base = found.isKnown ? before : NO_ENTRIES
  const all = [...base.all]
  for (const id of found.ids) addNode(all, id, state.nodes.get(id)?.what ?? '')
  return { all, lastId: found.ids.at(-1) ?? base.lastId, count: base.count + found.ids.length }
}

/** The nodes after one, oldest first; all of them where the run does not have that one. */
function newNodes(state: TreeState, runId: string, lastId: string | null) {
  const ids: string[] = []
  for (let at = state.runs.get(runId)?.nodes ?? null; at !== null; at = at.rest) {
    if (at.item === lastId) return { ids: ids.reverse(), isKnown: true }
    ids.push(at.item)
  }
  return { ids: ids.reverse(), isKnown: false }
}

function addNode(all: Entry[], id: string, what: string): void {
  const last = all.at(-1)
  if (isMessage(what)) all.push({ messageId: id, callIds: [] })
  else if (last === undefined) all.push({ messageId: null, callIds: [id] })
  else all[all.length - 1] = { ...last, callIds: [...last.callIds, id] }
}

export function isMessage(what: string): boolean {
  return what.endsWith('_message')
}

/** True where the entry is about one of these nodes. */
export function isAbout({ messageId, callIds }: Entry, ids: ReadonlySet<string>): boolean {
  return (messageId !== null && ids.has(messageId)) || callIds.some((id) => ids.has(id))
}
