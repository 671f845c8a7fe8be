import type { Commit, Spent } from '../../graph/commit.ts'
import { changeOf, changeTypes } from '../feed.ts'
import { addSpent, spentKey } from '../spent.ts'
import type { StoredTree, Tables } from './tables.ts'

/** Changes that are kept. When there are a tenth more, the oldest go. */
const KEPT = 10_000

/** Adds the change of a commit that was just applied, where it makes one. */
function addChange(tables: Tables, tree: StoredTree, commit: Commit): void {
  const types = changeTypes(commit)
  const root = types.length === 0 ? undefined : tables.conversations.get(tree.id)?.row
  if (root === undefined) return
  const { feed } = tables
  feed.changes.push(changeOf(root, commit, { seq: tree.seq, types }))
  if (feed.changes.length > KEPT * 1.1) feed.before += feed.changes.splice(0, feed.changes.length - KEPT).length
}

/** Writes what a commit leaves beside its tree: its change in the feed, and what was spent. */
export function putBeside(tables: Tables, tree: StoredTree, commit: Commit): void {
  addChange(tables, tree, commit)
  for (const spent of commit.spent) putSpent(tables, spent)
}

export function putSpent({ spent: sums }: Tables, spent: Spent): void {
  const key = spentKey(spent)
  const known = sums.get(key)
  sums.set(key, known === undefined ? spent : addSpent(known, spent))
}
