import { look, lookWith, openTopRuns, type TreeReader } from '../../doors/rows.ts'
import type { Id, Run, Runtime } from '../../index.ts'
import { EXIT } from '../command/command.ts'
import type { RunVerdict } from './verdict.ts'
import type { Worker } from './worker.ts'

/** The runs a worker follows: the open ones, and those they lead to, even if these end before anybody looks. */
export class FollowedRuns {
  private readonly runtime: Runtime
  private readonly trees: ReadonlySet<Id> | undefined
  private readonly seen: Set<Id> = new Set()
  /** The number of turns of each tree's root at the first look: later ones are new. */
  private readonly counts: Map<Id, number> = new Map()

  private constructor(runtime: Runtime, trees: ReadonlySet<Id> | undefined) {
    this.runtime = runtime
    this.trees = trees
  }

  /** Looks at the runs of these trees, or of all. */
  static async find(runtime: Runtime, trees?: ReadonlySet<Id>): Promise<FollowedRuns> {
    const found = new FollowedRuns(runtime, trees)
    for (const rootId of trees ?? []) await found.count(rootId)
    for (const { rootId } of await openTopRuns(runtime.store, trees)) await found.count(rootId)
    return found
  }

  /** Follows runs until none can continue. */
  async follow(worker: Worker, first: readonly Run[] = []): Promise<void> {
    for (const { id, conversationId } of first) {
      this.seen.add(id)
      if (!this.counts.has(conversationId)) this.counts.set(conversationId, 0)
    }
    if (first.length > 0) await worker.follow(first)
    for (let next = await this.next(); next.length > 0; next = await this.next()) await worker.follow(next)
  }

  private async next(): Promise<Run[]> {
    const { store } = this.runtime
    const open = await openTopRuns(store, this.trees)
    for (const { rootId } of open) await this.count(rootId)
    const ids: Id[] = []
    for (const [rootId, count] of this.counts)
      ids.push(...(await look(store, rootId, (tree) => newTurns(tree, rootId, count))))
    const news = [...new Set([...ids, ...open.map(({ id }) => id)])].filter((id) => !this.seen.has(id))
    for (const id of news) this.seen.add(id)
    return Promise.all(news.map((id) => this.runtime.attach(id)))
  }

  private async count(rootId: Id): Promise<void> {
    if (this.counts.has(rootId)) return
    const root = await look(this.runtime.store, rootId, (tree) => tree.conversation(rootId))
    this.counts.set(rootId, root?.turnCount ?? 0)
  }
}

function newTurns(tree: TreeReader, rootId: Id, count: number): Id[] {
  const limit = (tree.conversation(rootId)?.turnCount ?? 0) - count
  return limit < 1 ? [] : tree.turnsOf(rootId, { limit }).map(({ id }) => id)
}

/** Ignores how a background child ended: that concerns its host. */
export async function ignoreChildEnd(
  { store }: Runtime,
  { conversationId }: Pick<Run, 'conversationId'>,
  verdict: RunVerdict,
): Promise<RunVerdict> {
  const row = await lookWith(store, conversationId, (tree) => tree.conversation(conversationId))
  return row?.type === 'sub_agent' ? { ...verdict, exitCode: EXIT.completed } : verdict
}
