import { isDeepStrictEqual } from 'node:util'
import { conversationTree as shownTree } from '../../src/core/conversation/tree.ts'
import type { Commit } from '../../src/core/graph/commit.ts'
import { toEvent } from '../../src/core/graph/event.ts'
import type { Id } from '../../src/core/graph/rows.ts'
import { Ledger } from '../../src/core/store/ledger.ts'
import type { LocalStore } from '../../src/core/store/store.ts'
import { emptyTree, reduceTree, type TreeState, treeOf } from '../../src/server/client/index.ts'
import { storeBehind } from './remote.ts'

/** Follows every tree by its events, and compares it with its rows after each commit of this process. */
export interface Followed {
  /** Commits after which the tree was compared. */
  commits: number
  /** Differences between the tree of the events and that of the rows. */
  readonly wrong: string[]
}

interface Attempt {
  readonly commit: Commit | null
}

type Finishing = { finish(this: Ledger, attempt: Attempt): unknown }

const prototype = Ledger.prototype as unknown as Finishing
const finish = prototype.finish

/** Begins to follow; the function that comes back ends it. */
export function followAll(followed: Followed): () => void {
  const states = new WeakMap<object, Map<Id, TreeState>>()
  prototype.finish = function finishFollowed(this: Ledger, attempt: Attempt): unknown {
    const { commit } = attempt
    const store = storeBehind(this.store) ?? (this.store as LocalStore)
    const known = states.get(store) ?? new Map<Id, TreeState>()
    states.set(store, known)
    if (commit !== null && commit.rootId !== null) compare(store, known, { commit, rootId: commit.rootId, followed })
    return finish.call(this, attempt)
  }
  return () => {
    prototype.finish = finish
  }
}

interface Compared {
  readonly commit: Commit
  readonly rootId: Id
  readonly followed: Followed
}

function compare(store: LocalStore, known: Map<Id, TreeState>, { commit, rootId, followed }: Compared): void {
  let state = known.get(rootId) ?? emptyTree()
  try {
    const rows = store.events(rootId, state.seq, 1_000_000)
    state = rows.map(toEvent).reduce<TreeState>(reduceTree, state)
    known.set(rootId, state)
    followed.commits++
    for (const found of differences(store, state, { ...commit, rootId })) {
      followed.wrong.push(`${commit.kind} ${rows.map(({ body }) => body.type).join()}\n${found}`)
    }
  } catch (error) {
    if (!String(error).includes('closed')) throw error
  }
}

type TreeCommit = Commit & { readonly rootId: Id }

/** The conversations of a commit whose trees differ, and the whole tree. */
function differences(store: LocalStore, state: TreeState, { rootId, conversations, turns }: TreeCommit): string[] {
  const ids = new Set([rootId, ...conversations.map(({ id }) => id), ...turns.map((turn) => turn.conversationId)])
  return [...ids].flatMap((id) => differenceOf(store, state, id) ?? [])
}

/** How the tree of a conversation by its events differs from that of its rows; undefined when it does not. */
export function differenceOf(store: LocalStore, state: TreeState, id: Id): string | undefined {
  const row = store.conversation(id)
  if (row === undefined) return undefined
  const [told, rows] = [treeOf(state, id), shownTree(store, row, 50)]
  if (isDeepStrictEqual(told, rows)) return undefined
  const from = [told, rows].map((tree) => JSON.stringify(tree, undefined, 1).split('\n'))
  const at = (from[1] ?? []).findIndex((line, index) => line !== from[0]?.[index])
  const part = (lines: readonly string[] = []) => lines.slice(Math.max(0, at - 6), at + 12).join('\n')
  return `told\n${part(from[0])}\nrows\n${part(from[1])}`
}
