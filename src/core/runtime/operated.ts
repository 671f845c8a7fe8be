// The methods of a runtime that the table of operations declares.
//
// Owns:      how a runtime performs an operation, what it waits for before it closes, and cancelling, which begins at once.
// Called by: `Runtime` extends it; `runtime.as(principal)` performs operations on the same port.
// Must stay true: an operation loads with its first use.

import { after, type Later } from '../base/maybe.ts'
import { readOptions, text } from '../base/options.ts'
import type { Draft } from '../graph/draft.ts'
import type { Id } from '../graph/rows.ts'
import { RUNTIME_METHODS } from '../operations/methods.made.ts'
import { addMethods, type RuntimeOperations } from '../operations/methods.ts'
import type { Operating } from '../operations/port.ts'
import { rootFor } from '../store/look.ts'
import { notFound } from '../store/not-found.ts'

type NodeCode = typeof import('./lazy.ts')

/** The port of operations, with the rules of this runtime. */
export interface RuntimeParts extends Omit<Operating, 'cancel' | 'saying'> {
  readonly rules: () => NodeCode | Promise<NodeCode>
}

abstract class Performing {
  static {
    addMethods(Performing, RUNTIME_METHODS, ({ operating }, { run }, given) => (run as Run)(operating, ...given))
  }

  declare protected operating: Operating
  declare private parts: RuntimeParts
  private readonly words: Set<Promise<void>> = new Set()

  /** Sets the parts that all operations need: a runtime makes them after itself. */
  protected operateWith(parts: RuntimeParts): void {
    this.parts = parts
    this.operating = {
      ...parts,
      cancel: (runId, reason) => this.cancel(runId, reason),
      saying: (done) => this.saying(done),
    }
  }

  /** Asks a run and all it started to stop. Needs rows only: the run may be another process's. */
  async cancel(runId: Id, reason?: string): Promise<void> {
    readOptions('cancel()', { reason }, { reason: text })
    const started = this.parts.recordings.ofRun(runId)?.started
    if (started !== undefined) await started
    await this.saying(this.cancelNow(runId, reason))
  }

  /** All of a tree as JSON Lines, for `import` of any store. Of an open run it is a copy: let only one of the two go on. */
  async *export(rootId: Id): AsyncIterable<string> {
    const { exportTree } = await import('../audit/archive.ts')
    yield* exportTree(this.parts.store, rootId)
  }

  /** Resolves when every word that was given is in the rows, or refused: one that nobody awaits counts too. */
  protected async allSaid(): Promise<void> {
    await Promise.allSettled(this.words)
  }

  /** At once where the store answers at once: nothing of the run begins after the call. */
  private cancelNow(runId: Id, reason: string | undefined): Later<void> {
    return after(rootFor(this.parts.store, runId), (rootId) =>
      rootId === undefined ? this.refuseUnknown(runId) : this.cancelIn(rootId, runId, reason),
    )
  }

  private async refuseUnknown(runId: Id): Promise<never> {
    throw await notFound(this.parts.store, 'run', runId)
  }

  private cancelIn(rootId: Id, runId: Id, reason: string | undefined): Later<void> {
    const request = { cause: 'cancelled', reason: reason ?? null } as const
    const asked = after(this.parts.rules(), ({ planCancel }) => {
      const plan = (draft: Draft) => {
        planCancel(draft, runId, request)
        return draft.findTurn(runId) !== undefined
      }
      return this.parts.ledger.commit({ kind: 'cancel', rootId, plan })
    })
    return after(asked, (isThere) => {
      if (!isThere) return this.refuseUnknown(runId)
      const hasEnded = this.parts.store.known?.(rootId)?.turn(runId)?.state === 'ended'
      return hasEnded ? undefined : this.recoverLost(rootId)
    })
  }

  /** Processes that are gone end nothing of it any more, and there may be no other. */
  private async recoverLost(rootId: Id): Promise<void> {
    try {
      const { recoverStopped } = await import('../engine/sweep.ts')
      await recoverStopped(this.parts.ledger, rootId, this.parts.engine.id)
    } catch {
      // It is asked to stop whatever becomes of this: whoever sweeps next does it too.
    }
  }

  private async saying(done: void | Promise<void>): Promise<void> {
    if (!(done instanceof Promise)) return
    this.words.add(done)
    try {
      await done
    } finally {
      this.words.delete(done)
    }
  }
}

type Run = (on: Operating, ...given: readonly unknown[]) => Promise<unknown>

/** A runtime with the methods of the table. */
export const OperatedRuntime = Performing as abstract new () => Performing & RuntimeOperations
