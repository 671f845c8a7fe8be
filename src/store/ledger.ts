import type { Clock } from '../base/clock.ts'
import { ConflictError } from '../base/error.ts'
import type { Commit, CommitKind } from '../graph/commit.ts'
import { type Claims, Draft } from '../graph/draft.ts'
import type { Kinds } from '../graph/kinds.ts'
import type { Id } from '../graph/rows.ts'
import type { Store } from './store.ts'

export interface Step<T> {
  readonly kind: CommitKind
  /** The tree it belongs to. */
  readonly rootId: Id
  /** A rule of the graph. Run again, on fresh rows, when another writer was faster: it may do nothing but write the draft. */
  readonly plan: (draft: Draft) => T
}

/** Who wants to know what was committed, and who runs the nodes it made runnable. */
export interface Listener {
  /** Workers for the nodes a commit makes runnable; null when this process runs nothing. */
  claims(): ReservedClaims | null
  committed(commit: Commit, draft: Draft): void
}

export interface ReservedClaims extends Claims {
  /** Gives back what was taken by a draft that was not committed. */
  giveBack(taken: number): void
}

/** The one way to change rows: a rule makes a commit of what is stored now, and the store applies it or refuses. */
export class Ledger {
  readonly store: Store
  readonly clock: Clock
  readonly kinds: Kinds
  private readonly listener: Listener

  constructor(options: { store: Store; clock: Clock; kinds: Kinds; listener: Listener }) {
    this.store = options.store
    this.clock = options.clock
    this.kinds = options.kinds
    this.listener = options.listener
  }

  /** Resolves when the step is stored, with what the rule returned. */
  async commit<T>(step: Step<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const claims = this.listener.claims()
      const draft = new Draft(this.store, this.clock.now(), { claims, kinds: this.kinds })
      try {
        const result = step.plan(draft)
        if (draft.isEmpty) return result
        const commit = draft.toCommit(kindOf(step, draft), step.rootId)
        await this.store.commit(commit)
        this.listener.committed(commit, draft)
        return result
      } catch (error) {
        claims?.giveBack(draft.started.length)
        if (!isStale(error) || attempt >= MAX_ATTEMPTS) throw error
        if (attempt > 3) await pause(attempt)
      }
    }
  }
}

const MAX_ATTEMPTS = 200

function kindOf<T>(step: Step<T>, draft: Draft): CommitKind {
  return step.kind === 'result' && draft.turnEnded ? 'end' : step.kind
}

/** Another writer was faster. A conflict that a rule itself reports is an answer, not a race. */
function isStale(error: unknown): boolean {
  return ConflictError.isInstance(error) && error.details['table'] !== undefined
}

function pause(attempt: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(50, attempt * 2)))
}
