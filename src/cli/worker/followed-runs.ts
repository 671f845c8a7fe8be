import type { Id, Run, Runtime, Store, Turn } from '../../index.ts'
import { EXIT } from '../command/command.ts'
import type { RunVerdict } from './verdict.ts'
import type { Worker } from './worker.ts'

/**
 * Lists the runs that can continue on their own, in these trees or in all: runs of user conversations, and runs that
 * outlived them in the background or abandoned. A run that works for an open run belongs to that one.
 */
export function openTopRuns(store: Store, trees?: ReadonlySet<Id>): Turn[] {
  const open = store.openTurns(Number.MAX_SAFE_INTEGER)
  return open.filter((turn) => (trees === undefined || trees.has(turn.rootId)) && isTop(store, turn))
}

function isTop(store: Store, { id, conversationId }: Turn): boolean {
  if (store.conversation(conversationId)?.type === 'user') return true
  const host = store.turn(store.link(id)?.hostTurnId ?? '')
  return host === undefined || host.state === 'ended'
}

/** The runs a worker follows: the open ones, and those they lead to, even if these end before anybody looks. */
export class FollowedRuns {
  private readonly runtime: Runtime
  private readonly trees: ReadonlySet<Id> | undefined
  private readonly seen: Set<Id> = new Set()
  /** The number of turns of each tree's root at the first look: later ones are new. */
  private readonly counts: Map<Id, number> = new Map()

  constructor(runtime: Runtime, trees?: ReadonlySet<Id>) {
    this.runtime = runtime
    this.trees = trees
    for (const rootId of trees ?? []) this.count(rootId)
    for (const { rootId } of openTopRuns(runtime.store, trees)) this.count(rootId)
  }

  /** Follows runs until none can continue. */
  async follow(worker: Worker, first: readonly Run[] = []): Promise<void> {
    for (const { id, conversationId } of first) {
      this.seen.add(id)
      this.count(conversationId, 0)
    }
    if (first.length > 0) await worker.follow(first)
    for (let next = this.next(); next.length > 0; next = this.next()) await worker.follow(next)
  }

  private next(): Run[] {
    const { store } = this.runtime
    const open = openTopRuns(store, this.trees)
    for (const { rootId } of open) this.count(rootId)
    const ids = [...this.counts].flatMap(([rootId, count]) => newTurns(store, rootId, count))
    const news = [...new Set([...ids, ...open.map(({ id }) => id)])].filter((id) => !this.seen.has(id))
    for (const id of news) this.seen.add(id)
    return news.map((id) => this.runtime.attach(id))
  }

  private count(rootId: Id, count = this.runtime.store.conversation(rootId)?.turnCount ?? 0): void {
    if (!this.counts.has(rootId)) this.counts.set(rootId, count)
  }
}

function newTurns(store: Store, rootId: Id, count: number): Id[] {
  const limit = (store.conversation(rootId)?.turnCount ?? 0) - count
  return limit < 1 ? [] : store.turnsOf(rootId, { limit }).map(({ id }) => id)
}

/** Ignores how a background child ended: that concerns its host. */
export function ignoreChildEnd({ store }: Runtime, { conversationId }: Run, verdict: RunVerdict): RunVerdict {
  const isChild = store.conversation(conversationId)?.type === 'sub_agent'
  return isChild ? { ...verdict, exitCode: EXIT.completed } : verdict
}
