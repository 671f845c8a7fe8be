// The ledger: the one way to change rows.
//
// Owns:      the loop of plan, commit and retry, and the call of `endTurns` after each plan.
// Called by: everything that changes a graph, with a kind of commit and a rule: `ledger.commit({ kind, rootId, plan })`.
// Must stay true:
//   - A plan may run several times, each time on fresh rows, so it does nothing but write its draft.
//   - A race for a row is retried here; any other error goes to the caller, and nothing is stored.
//   - When the disk is full, the result of a node waits for space: no model is called twice for it.
//   - The listener hears of a commit after it is stored, and of each one once.

import { type Clock, type Scheduler, systemScheduler } from '../base/clock.ts'
import { ConflictError, isLegateError, StoreError } from '../base/error.ts'
import { freshId } from '../base/id.ts'
import type { KeptAlive } from '../base/keep-shape.ts'
import { attempt } from '../base/maybe.ts'
import { LIMITED } from '../grant/ceiling.ts'
import type { Claims, Commit, CommitKind } from '../graph/commit.ts'
import { Draft } from '../graph/draft.ts'
import type { Kinds } from '../graph/kinds.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Id } from '../graph/rows.ts'
import { MissingRows, nearTree } from './look.ts'
import type { Store } from './store.ts'

export interface Step<T> {
  readonly kind: CommitKind
  /** The tree it belongs to. */
  readonly rootId: Id
  /**
   * A rule of the graph. It runs again on fresh rows when another writer was faster, so it may do nothing but write the draft.
   */
  readonly plan: (draft: Draft) => T
}

/** Observes commits, and runs the nodes they make runnable. */
export interface Listener {
  /** Offers workers for the nodes that a commit makes runnable; null when this process runs nothing. */
  claims(now: number): Claims | null
  committed(commit: Commit, draft: Draft): void
  /** The disk is full: true where the result of a node may wait for space. */
  mayWait(error: unknown): boolean
}

export interface LedgerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly scheduler?: Scheduler | undefined
  readonly kinds: Kinds
  readonly listener: Listener
}

/** The one way to change rows: a rule makes a commit from the stored rows, and the store applies it or refuses. */
export class Ledger {
  readonly store: Store
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly kinds: Kinds
  readonly listener: Listener
  /** Ends the turns that a plan has finished. The runtime sets it when it loads the rules, before anything touches a turn. */
  endTurns: (draft: Draft) => void = rulesMissing
  /** Adds to the events of a commit what else it changed. Set together with `endTurns`. */
  tellChanges: (draft: Draft, commit: Commit) => void = tellNothing
  /** Adds what a commit that spends spends under limits of others. Set together with `endTurns`. */
  charge: (draft: Draft, commit: Commit) => Commit = asItIs
  /** The ids of its commits begin with this, and end in their number: a fresh id for each would cost more. */
  private readonly commitIds: Id
  private commitCount = 0
  /** The last step of each tree that is under way, of a store far away. */
  private readonly lines = new Map<Id, Promise<void>>()
  /** Steps of this turn of the event loop that are stored together. */
  private readonly waiting: WaitingStep<unknown>[] = []
  /** The last attempt that was stored. */
  protected last: KeptAlive

  constructor(options: LedgerOptions) {
    this.store = options.store
    this.clock = options.clock
    this.scheduler = options.scheduler ?? systemScheduler
    this.kinds = options.kinds
    this.listener = options.listener
    this.commitIds = freshId(this.clock.now(), this.scheduler.random)
  }

  nextCommitId(): Id {
    return `${this.commitIds}-${++this.commitCount}`
  }

  /** Gives the rule's result once the step is stored: at once where the store answers at once. */
  commit<T>(step: Step<T>): T | Promise<T> {
    if (this.store.known !== undefined) return this.commitInLine(step)
    if (this.store.together !== undefined && this.hasCompany(step)) return this.commitTogether(step)
    const tree = this.store.tree(step.rootId)
    return tree instanceof Promise ? tree.then((loaded) => this.commitOn(loaded, step)) : this.commitOn(tree, step)
  }

  /** A plan is made on what the one before it has left: of one tree, a store far away is sent one step at a time. */
  private commitInLine<T>(step: Step<T>): Promise<T> {
    const { rootId } = step
    const before = this.lines.get(rootId)
    const mine = before === undefined ? this.commitFar(step) : before.then(() => this.commitFar(step))
    const settled = mine.then(ignore, ignore).finally(() => {
      if (this.lines.get(rootId) === settled) this.lines.delete(rootId)
    })
    this.lines.set(rootId, settled)
    return mine
  }

  /** Plans on the rows that are here. What comes of it counts only if it was stored: else these rows may be old. */
  private async commitFar<T>(step: Step<T>): Promise<T> {
    const known = this.store.known?.(step.rootId)
    if (known === undefined) return this.again(step, undefined)
    let attempt: Attempt<T>
    try {
      attempt = await this.tryLoaded(known, step)
    } catch (error) {
      return this.again(step, StoreError.isInstance(error) ? error : undefined)
    }
    return attempt.commit === null ? this.again(step, undefined) : this.finish(attempt)
  }

  /** Plans again on the same rows where some had to be loaded. */
  private async tryLoaded<T>(tree: TreeReader, step: Step<T>): Promise<Attempt<T>> {
    for (;;) {
      const attempt = new Attempt(tree, step, this)
      try {
        await attempt.make()
        return attempt
      } catch (error) {
        attempt.giveBack()
        if (!(error instanceof MissingRows)) throw error
        await error.load()
      }
    }
  }

  private commitOn<T>(tree: TreeReader, step: Step<T>): T | Promise<T> {
    const attempt = new Attempt(tree, step, this)
    try {
      const stored = attempt.make()
      if (stored instanceof Promise) return this.whenStored(attempt, stored)
    } catch (error) {
      attempt.giveBack()
      return this.again(step, error)
    }
    return this.finish(attempt)
  }

  /**
   * While several nodes run, what they store in a turn of the event loop shares one transaction. A step alone would only wait, and
   * so would a person.
   */
  private hasCompany({ kind }: Step<unknown>): boolean {
    if (!OF_NODES.has(kind)) return false
    return this.waiting.length > 0 || (this.listener.claims(this.clock.now())?.running ?? 0) > 1
  }

  private commitTogether<T>(step: Step<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.waiting.length === 0) this.scheduler.defer(() => this.storeWaiting())
      this.waiting.push(new WaitingStep({ ledger: this, step, resolve, reject }) as WaitingStep<unknown>)
    })
  }

  private storeWaiting(): void {
    const steps = this.waiting.splice(0, MOST_TOGETHER)
    if (this.waiting.length > 0) this.scheduler.defer(() => this.storeWaiting())
    const settle = (error?: unknown) => {
      for (const one of steps) one.settle(error)
    }
    const stored = attempt(() =>
      this.store.together?.(() => {
        for (const one of steps) one.write()
      }),
    )
    if (stored instanceof Promise) stored.then(() => settle(), settle)
    else settle()
  }

  async whenStored<T>(attempt: Attempt<T>, stored: Promise<void>): Promise<T> {
    try {
      await stored
    } catch (error) {
      attempt.giveBack()
      return this.again(attempt.step, error)
    }
    return this.finish(attempt)
  }

  /** Runs the rule on the rows as they are now: another writer was faster, or it is the first time. */
  async again<T>(step: Step<T>, first: unknown): Promise<T> {
    let error = first
    for (let tries = 2; this.mayTryAgain(step, error, tries); tries++) {
      if (isFull(error)) await this.scheduler.pause(ROOM_MS)
      else if (tries > 3) await this.pauseBriefly(tries)
      const tree = await nearTree(this.store, step.rootId)
      let attempt: Attempt<T>
      try {
        attempt = await this.tryLoaded(tree, step)
      } catch (failure) {
        error = failure
        continue
      }
      return this.finish(attempt)
    }
    throw error
  }

  /** Waits a random time, so that two writers do not meet again and again. */
  private pauseBriefly(tries: number): Promise<void> {
    return this.scheduler.pause((this.scheduler.random() / 2 ** 32) * Math.min(50, tries * 2))
  }

  /** Keeps the result of a node until there is space: no model is called again for it. */
  private mayTryAgain({ kind }: Step<unknown>, error: unknown, tries: number): boolean {
    if (isFull(error)) return OF_NODES.has(kind) && this.listener.mayWait(error)
    return error === undefined || (isStale(error) && tries <= MAX_ATTEMPTS)
  }

  finish<T>(attempt: Attempt<T>): T {
    if (attempt.commit === null) return attempt.result as T
    this.last = attempt
    for (const effect of attempt.draft.effects) effect()
    this.listener.committed(attempt.commit, attempt.draft)
    return attempt.result as T
  }
}

/** One try at a step. */
class Attempt<T> {
  readonly step: Step<T>
  readonly draft: Draft
  commit: Commit | null = null
  result: T | undefined
  private readonly claims: Claims | null
  private readonly ledger: Ledger

  constructor(tree: TreeReader, step: Step<T>, ledger: Ledger) {
    const { clock, kinds, scheduler } = ledger
    const { rootId } = step
    const now = clock.now()
    this.step = step
    this.claims = ledger.listener.claims(now)
    this.ledger = ledger
    this.draft = new Draft(tree, now, { rootId, claims: this.claims, kinds, random: scheduler.random })
  }

  make(): void | Promise<void> {
    const { step, draft } = this
    this.result = step.plan(draft)
    if (draft.hasTouchedTurns) this.ledger.endTurns(draft)
    if (draft.isEmpty) return undefined
    const kind = step.kind === 'result' && draft.turnEnded ? 'end' : step.kind
    const commit = draft.toCommit(kind, step.rootId, this.ledger.nextCommitId(), this.ledger.store.wakes !== undefined)
    this.commit = commit.spent.length === 0 && !LIMITED.bytes ? commit : this.ledger.charge(draft, commit)
    this.ledger.tellChanges(draft, commit)
    return this.ledger.store.commit(this.commit)
  }

  giveBack(): void {
    this.claims?.giveBack(this.draft.started.length)
  }
}

interface WaitingStepOptions<T> {
  readonly ledger: Ledger
  readonly step: Step<T>
  readonly resolve: (result: T | Promise<T>) => void
  readonly reject: (error: unknown) => void
}

/** A step that is stored together with others. Its plan is made when the transaction is open: no other writer comes between. */
class WaitingStep<T> {
  private readonly options: WaitingStepOptions<T>
  private attempt: Attempt<T> | undefined
  private stored: Promise<void> | undefined
  private error: unknown

  constructor(options: WaitingStepOptions<T>) {
    this.options = options
  }

  write(): void {
    const { ledger, step } = this.options
    const tree = ledger.store.tree(step.rootId)
    if (tree instanceof Promise) return
    this.attempt = new Attempt(tree, step, ledger)
    try {
      this.stored = this.attempt.make() ?? undefined
    } catch (error) {
      this.error = error
    }
  }

  /** `error`: why the transaction was not stored. */
  settle(error: unknown): void {
    const { ledger, step, resolve, reject } = this.options
    const { attempt, stored } = this
    try {
      if (attempt === undefined) resolve(ledger.again(step, error))
      else if (error !== undefined || this.error !== undefined) {
        attempt.giveBack()
        // Rows that were not stored may be behind what it found.
        const isKnown = error === undefined || attempt.commit !== null
        resolve(ledger.again(step, isKnown ? (error ?? this.error) : undefined))
      } else resolve(stored instanceof Promise ? ledger.whenStored(attempt, stored) : ledger.finish(attempt))
    } catch (thrown) {
      reject(thrown)
    }
  }
}

/** They take some 20 ms. More would save little, and keep the lock from other processes for too long. */
const MOST_TOGETHER = 128
const MAX_ATTEMPTS = 200
const ROOM_MS = 500

/** Steps that store the result of a running node, and may wait for space and for one another. Other steps fail at once. */
const OF_NODES: ReadonlySet<CommitKind> = new Set<CommitKind>([
  'reserve',
  'expand',
  'spawn',
  'result',
  'retry',
  'ask',
  'deliver',
])

function isFull(error: unknown): boolean {
  return isLegateError(error, 'store_full')
}

/** True for a race over a row's version. A conflict that a rule itself reports is an answer. */
function isStale(error: unknown): boolean {
  return ConflictError.isInstance(error) && error.details['stale'] === true
}

function ignore(): void {}

/** Before the rules are loaded nothing is planned that readers must hear of. */
function tellNothing(): void {}

function asItIs(_: Draft, commit: Commit): Commit {
  return commit
}

function rulesMissing(): never {
  throw new StoreError('store', 'A plan touched a turn before the rules were loaded.')
}
