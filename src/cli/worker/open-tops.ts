import type { Turn } from '../../doors/rows.ts'
import type { Id, Run, Runtime, Store } from '../../index.ts'
import { EXIT } from '../command/command.ts'
import type { Verdict } from './verdict.ts'
import type { Worker } from './worker.ts'

/**
 * What can go on by itself, of these trees or of all: runs of user conversations, and what they have left behind when
 * they ended, in the background or abandoned. What works for a run that is not over is that run's.
 */
export function openTops(store: Store, trees?: ReadonlySet<Id>): Turn[] {
  const open = store.openTurns(Number.MAX_SAFE_INTEGER)
  return open.filter((turn) => (trees === undefined || trees.has(turn.rootId)) && isTop(store, turn))
}

function isTop(store: Store, { id, conversationId }: Turn): boolean {
  if (store.conversation(conversationId)?.type === 'user') return true
  const host = store.turn(store.link(id)?.hostTurnId ?? '')
  return host === undefined || host.state === 'ended'
}

/** The runs that a worker follows: what is open, and what it leads to, also when that is over before anybody looks. */
export class Tops {
  private readonly runtime: Runtime
  private readonly trees: ReadonlySet<Id> | undefined
  private readonly seen: Set<Id> = new Set()
  /** How many turns the root of each tree had when it was first looked at: the others are news. */
  private readonly counts: Map<Id, number> = new Map()

  constructor(runtime: Runtime, trees?: ReadonlySet<Id>) {
    this.runtime = runtime
    this.trees = trees
    for (const rootId of trees ?? []) this.count(rootId)
    for (const { rootId } of openTops(runtime.store, trees)) this.count(rootId)
  }

  /** Until nothing new can go on. */
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
    const open = openTops(store, this.trees)
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

/** How a child in the background ended is its host's affair. */
export function asChild({ store }: Runtime, { conversationId }: Run, verdict: Verdict): Verdict {
  const isChild = store.conversation(conversationId)?.type === 'sub_agent'
  return isChild ? { ...verdict, exitCode: EXIT.completed } : verdict
}
