// Stopping a tree that is in no store yet: an imported tree brings no run that goes on by itself.
//
// Owns:      the commits that end what is open in it, made by the rules in a store of their own.
// Called by: `audit/archive`, for a tree whose importer did not say that it goes on.
// Must stay true:
//   - Nothing runs: the rules change rows, and no engine has the store.
//   - The same tree is stopped by the same commits, at the time of its last one: whoever imports it again has the same tree.

import type { Clock } from '../base/clock.ts'
import { systemClock } from '../base/clock.ts'
import type { Commit } from '../graph/commit.ts'
import type { Kinds } from '../graph/kinds.ts'
import { endTurns } from '../rules/settle/end-turns.ts'
import { tellChanges } from '../rules/settle/told.ts'
import { planCancel } from '../rules/turn/cancel.ts'
import { planForce } from '../rules/turn/result.ts'
import type { WholeTree } from '../store/archive.ts'
import { grownTree } from '../store/codec/grown-tree.ts'
import { Ledger, type Step } from '../store/ledger.ts'
import { look } from '../store/look.ts'
import { memoryStore } from '../store/memory/index.ts'

const STOPPED = 'The tree was imported, and nobody said that it goes on.'

/** The tree with all of its open runs ended. Undefined where they do not end: no rule has made such rows. */
export async function stopTree(kinds: Kinds, tree: WholeTree): Promise<WholeTree | undefined> {
  const at = tree.records.at(-1)?.at ?? 0
  const clock: Clock = { ...systemClock, now: () => at }
  const commits: Commit[] = []
  const store = memoryStore()
  const committed = (commit: Commit) => {
    commits.push(commit)
  }
  const listener = { claims: () => null, committed, mayWait: () => false }
  const ledger = new Ledger({ store, clock, kinds, listener })
  Object.assign(ledger, { endTurns, tellChanges })
  try {
    await store.archive?.restore(tree)
    // A run that ends may begin the next one of its lane, or one that tells of its end.
    for (let left = tree.rows.length + ROOM; left > 0; left--) {
      const step = await nextStep(ledger, tree.rootId)
      if (step === undefined) return grownTree(tree, commits)
      const before = commits.length
      await ledger.commit(step)
      if (commits.length === before) return undefined
    }
    return undefined
  } catch {
    return undefined
  } finally {
    await store.close()
  }
}

const ROOM = 100

/** Asks an open run to stop that was not asked, else ends a node that ran when the tree was exported. Undefined where all has ended. */
async function nextStep({ store }: Ledger, rootId: string): Promise<Step<unknown> | undefined> {
  const open = await store.openTurns(Number.MAX_SAFE_INTEGER, rootId)
  const turn = open.find(({ cancel }) => cancel === null)
  const request = { cause: 'cancelled', reason: STOPPED } as const
  if (turn !== undefined) return { kind: 'cancel', rootId, plan: (draft) => planCancel(draft, turn.id, request) }
  const nodes = await look(store, rootId, (tree) => open.flatMap(({ id }) => tree.openNodes(id)))
  const [node] = nodes
  if (node === undefined) return undefined
  return { kind: 'force', rootId, plan: (draft) => planForce(draft, node.id) }
}
