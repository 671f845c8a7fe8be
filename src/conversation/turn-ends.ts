import { onAbort } from '../base/abort.ts'
import { isLegateError, StoreError } from '../base/error.ts'
import { IdMap } from '../base/id-map.ts'
import type { Commit } from '../graph/commit.ts'
import { type Outcome, withWords } from '../graph/outcome.ts'
import { outcomeOf } from '../graph/outcome-of.ts'
import type { Id, Node, Turn } from '../graph/rows.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { KeepAlive } from './keep-alive.ts'

/** Who in this process waits for a turn to end. Only a notice: the end itself is in the turn's row. */
export class TurnEnds {
  private readonly store: Store
  private readonly waiters: IdMap<Waiter[]> = new IdMap()
  private readonly keepAlive: KeepAlive

  constructor(store: Store, keepAlive: KeepAlive) {
    this.store = store
    this.keepAlive = keepAlive
  }

  /** The outcome of a turn, now or when it ends. The process stays alive until then. */
  wait(turnId: Id): Promise<Outcome> {
    const turn = this.store.turn(turnId)
    if (turn?.outcome) return Promise.resolve(outcomeOf(this.store, turn.outcome))
    const altered = this.findAltered(turn)
    if (altered !== undefined) return Promise.reject(altered)
    return new Promise((resolve, reject) => {
      this.add(turnId, { resolve, reject, rootId: turn?.rootId ?? null })
      if (turn === undefined) this.tellDeleted(turnId)
    })
  }

  /** The same, or null as soon as the signal aborts: nothing is kept for who does not wait any more. */
  waitUnless(turnId: Id, signal: AbortSignal | undefined): Promise<Outcome | null> {
    if (signal?.aborted) return Promise.resolve(null)
    const turn = this.store.turn(turnId)
    if (turn?.outcome) return Promise.resolve(outcomeOf(this.store, turn.outcome))
    const altered = this.findAltered(turn)
    if (altered !== undefined) return Promise.reject(altered)
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        rootId: turn?.rootId ?? null,
        resolve: (outcome) => {
          leave()
          resolve(outcome)
        },
        reject: (error) => {
          leave()
          reject(error)
        },
      }
      this.add(turnId, waiter)
      const leave = onAbort(signal, () => {
        this.remove(turnId, waiter)
        resolve(null)
      })
      if (turn === undefined) this.tellDeleted(turnId)
    })
  }

  /** In a tree that was changed from outside no turn ends any more. */
  private findAltered(turn: Turn | undefined): StoreError | undefined {
    if (turn === undefined) return undefined
    return this.store.tampered?.().find(({ details }) => details['rootId'] === turn.rootId)
  }

  private add(turnId: Id, waiter: Waiter): void {
    const others = this.waiters.get(turnId)
    if (others !== undefined) {
      others.push(waiter)
      return
    }
    this.waiters.set(turnId, [waiter])
    this.keepAlive.hold()
  }

  private remove(turnId: Id, waiter: Waiter): void {
    const waiting = this.waiters.get(turnId) ?? []
    const at = waiting.indexOf(waiter)
    if (at < 0) return
    waiting.splice(at, 1)
    if (waiting.length > 0) return
    this.waiters.delete(turnId)
    this.keepAlive.release()
  }

  committed(commit: Commit): void {
    if (this.waiters.size === 0) return
    for (const turn of commit.turns) if (turn.state === 'ended') this.tell(turn, commit.nodes)
  }

  /** Another process has written. */
  changed(): void {
    for (const [turnId] of [...this.waiters.entries()]) {
      try {
        const turn = this.store.turn(turnId)
        if (turn?.state === 'ended') this.tell(turn)
        else if (turn === undefined) this.tellDeleted(turnId)
      } catch (error) {
        if (!isLegateError(error, 'tampered')) throw error
        this.fail(turnId, error)
      }
    }
  }

  /** It may also be that it is still to be recorded. */
  private tellDeleted(turnId: Id): void {
    const error = notFound(this.store, 'run', turnId)
    if (error.details['deleted'] !== undefined && this.waiters.has(turnId)) this.fail(turnId, error)
  }

  /** The runtime is closed: what still waits will not hear of the end here. */
  close(): void {
    this.failAll((runId) => {
      const message = `The runtime was closed before the run ${runId} ended. Open its store again and attach to it.`
      return new StoreError('store_closed', message, { details: { runId } })
    })
  }

  /** No end can be recorded any more. */
  failAll(errorOf: (runId: Id) => Error): void {
    for (const [turnId] of [...this.waiters.entries()]) this.fail(turnId, errorOf(turnId))
  }

  /** The same of one tree. */
  failTree(rootId: Id, error: Error): void {
    for (const [turnId, waiting] of [...this.waiters.entries()]) {
      if (waiting.some((waiter) => waiter.rootId === rootId)) this.fail(turnId, error)
    }
  }

  private fail(turnId: Id, error: Error): void {
    const waiting = this.waiters.get(turnId) ?? []
    this.waiters.delete(turnId)
    this.keepAlive.release()
    for (const { reject } of waiting) reject(error)
  }

  private tell(turn: Turn, nodes: readonly Node[] = []): void {
    const waiting = this.waiters.get(turn.id)
    if (waiting === undefined || turn.outcome === null) return
    this.waiters.delete(turn.id)
    this.keepAlive.release()
    const { answerNodeId } = turn.outcome
    const said = nodes.find(({ id }) => id === answerNodeId)
    const isWhole = said !== undefined && turn.outcome.delegations.length === 0
    const outcome = isWhole ? withWords(turn.outcome, said.output) : outcomeOf(this.store, turn.outcome)
    for (const { resolve } of waiting) resolve(outcome)
  }
}

interface Waiter {
  /** The tree it is of; null while that is not recorded. */
  readonly rootId: Id | null
  resolve(outcome: Outcome): void
  reject(error: Error): void
}
