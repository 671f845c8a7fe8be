import type { AgentCore } from '../agent/definition/agent.ts'
import { ExtensionRuns } from '../agent/hooks/extension-runs.ts'
import type { LiveParts } from '../agent/hooks/node-run.ts'
import { onAbort } from '../base/abort.ts'
import { isLegateError, type LegateError, messageOf } from '../base/error.ts'
import type { KeptAlive } from '../base/keep-shape.ts'
import { readOptions } from '../base/options.ts'
import { BlockWriter } from '../conversation/blocks.ts'
import { KeepAlive, NodeEnds, type Recordings, TurnEnds } from '../conversation/ends.ts'
import { Feeds } from '../conversation/feeds.ts'
import { follow, followTree } from '../conversation/follow.ts'
import type { Run, TreeEventsOptions } from '../conversation/run.ts'
import { type FieldParts, lateIterator, RunHandle, TREE_EVENTS } from '../conversation/run-handle.ts'
import type { LiveTrace } from '../conversation/trace/live-trace.ts'
import type { CallGate } from '../engine/call-gate.ts'
import type { Engine } from '../engine/engine.ts'
import type { RunEvent } from '../graph/event.ts'
import type { Outcome, RunOutcome } from '../graph/outcome.ts'
import type { Id } from '../graph/rows.ts'
import type { Ledger } from '../store/ledger.ts'
import { rootFor } from '../store/look.ts'
import type { Store, StoreChange } from '../store/store.ts'
import type { Tape } from '../tool/tape.ts'
import type { Logger } from '../tool/tool.ts'
import type { KeyedStart } from './keys/start-names.ts'

export interface LiveOptions {
  readonly runtime: object
  readonly ledger: Ledger
  readonly logger: Logger
  /** Asked for when it is needed: the engine is made later. */
  readonly engine: () => Engine
  /** Lets go of what a run held in this process: it has ended in another. */
  readonly leave: (runId: Id) => void
}

/** The open runs of a process: their readers, their waiters, their extensions. */
export class LiveRuns implements LiveParts {
  readonly runtime: object
  readonly keepAlive: KeepAlive = new KeepAlive()
  readonly feeds: Feeds
  readonly ends: TurnEnds
  readonly nodeEnds: NodeEnds
  readonly extensions: ExtensionRuns
  readonly blocks: BlockWriter
  tape: Tape | null = null
  trace: LiveTrace | null = null
  /** Set when the code that runs nodes is loaded. */
  declare gate: CallGate
  lastCall: KeptAlive
  lastChild: KeptAlive
  private readonly options: LiveOptions
  /** Each loss is told once: the store as null, a tree by its root. */
  private readonly lost: Set<unknown> = new Set()
  private fullUntil = 0

  constructor(options: LiveOptions) {
    const { store, clock } = options.ledger
    this.options = options
    this.runtime = options.runtime
    this.feeds = new Feeds(store, clock, () => options.engine().id)
    this.ends = new TurnEnds(store, this.keepAlive, options.leave)
    this.nodeEnds = new NodeEnds(store)
    this.extensions = new ExtensionRuns(options.ledger, options.logger)
    this.blocks = new BlockWriter({ store, feeds: this.feeds, clock, report: this.report })
  }

  /** The store is full, and has taken nothing since. */
  isFull = false

  /** Looks at the rows again: another process may have written, to one tree or to any. */
  async changed(change?: StoreChange): Promise<void> {
    const rootId = change?.rootId
    try {
      if (rootId === undefined) this.gate?.changed()
      await this.feeds.changed(rootId)
      await this.ends.changed(change)
      await this.nodeEnds.changed(rootId)
      await this.extensions.changed(change)
      for (const error of this.options.ledger.store.tampered?.() ?? []) this.report(error)
    } catch (error) {
      // Whoever closed the store knows that it is closed.
      if (!isLegateError(error, 'store_closed')) this.report(error)
    }
  }

  /** Called when another process may have written. A store that cannot tell where gives null. */
  readonly hear = (change: StoreChange | null = null): void => {
    this.changed(change ?? undefined).catch(this.report)
  }

  close(): void {
    this.ends.close()
    this.feeds.close()
  }

  /** Tells what went wrong beside the runs: to the log, and to who waits for a run that cannot end any more. */
  readonly report = (error: unknown): void => {
    if (isLegateError(error, 'store_full')) {
      this.isFull = true
      if (!this.isNewlyFull()) return
    }
    const isGone = isOver(error)
    const loss = isGone || isLegateError(error, 'tampered') ? error : null
    const what = isGone ? null : loss?.details['rootId']
    if (this.lost.has(null) || (loss !== null && this.lost.has(what))) return
    this.options.logger.error(messageOf(error), { error })
    if (loss === null) return
    this.lost.add(what)
    // Whoever reports may be in the middle of a commit.
    Promise.resolve()
      .then(() => this.endRuns(loss))
      .catch(this.report)
  }

  /** A full store is tried again and again until there is room: once a minute is enough. */
  private isNewlyFull(): boolean {
    const now = performance.now()
    if (now < this.fullUntil) return false
    this.fullUntil = now + MINUTE_MS
    return true
  }

  /** Ends the waiting for runs that cannot end any more: every run where the store is of no more use, else those of one tree. */
  private endRuns(error: LegateError): void {
    const { rootId } = error.details
    if (isOver(error)) {
      this.blocks.stop()
      this.options.engine().halt()
      this.ends.failAll(() => error)
      this.feeds.close()
    } else if (typeof rootId === 'string') {
      this.ends.failTree(rootId, error)
      this.feeds.closeTree(rootId)
    }
  }
}

/** True where this process can never use its store again. */
function isOver(error: unknown): error is LegateError {
  return isLegateError(error, 'store_gone') || isLegateError(error, 'store_newer_schema')
}

const MINUTE_MS = 60_000

export interface HandleOptions {
  readonly runId: Id
  readonly conversationId: Id
  /** Its conversation, where that is certain only once the run is recorded. */
  readonly place?: KeyedStart['place'] | undefined
  /** The root of its tree, where that is known before the run is recorded. */
  readonly rootId?: Id | undefined
  readonly started: undefined | Promise<unknown>
  /** Where somebody else waits for it already. */
  readonly outcome?: Promise<Outcome>
  readonly abortSignal?: AbortSignal | undefined
  /** Throws where the holder of the handle may not cancel the run. */
  readonly mayCancel?: (() => void) | undefined
  readonly isOwn: boolean
  /** The output schema of its agent: see `RunHandleOptions`. */
  readonly output: AgentCore['output'] | undefined
}

/** Whoever started it has had enough when this aborts. */
function cancelOnAbort(run: Pick<Run, 'cancel' | 'result'>, signal: AbortSignal): void {
  const remove = onAbort(signal, () => {
    run.cancel(messageOf(signal.reason)).catch(() => undefined)
  })
  run.result.then(remove, remove)
}

export interface RunHandleParts {
  readonly store: Store
  readonly live: LiveRuns
  readonly recordings: Recordings
  readonly fields: FieldParts
  readonly cancel: (runId: Id, reason?: string) => Promise<void>
}

/** Makes the handles of runs, and the readers of trees. */
export class RunHandles {
  private readonly parts: RunHandleParts
  /** The handle that was made last. */
  protected last: KeptAlive

  constructor(parts: RunHandleParts) {
    this.parts = parts
  }

  make<Out, Written>(options: HandleOptions): Run<Out, Written> {
    const { runId, conversationId, place, rootId, started, outcome, abortSignal, isOwn, output, mayCancel } = options
    const { store, live, recordings, fields } = this.parts
    const { feeds, keepAlive, ends } = live
    const wait = () => ends.wait(runId, rootId)
    const waitRecorded = () => (isOwn ? ends.waitRecorded(runId, rootId) : wait())
    const run = new RunHandle<Out, Written>({
      id: runId,
      conversationId,
      place,
      isOwn,
      started,
      result: () =>
        (outcome ?? (started instanceof Promise ? started.then(waitRecorded) : wait())) as Promise<RunOutcome<Out>>,
      follow: (from, sees) => follow({ store, feeds, keepAlive, runId, ...from, sees }),
      cancel: async (reason) => {
        mayCancel?.()
        await this.parts.cancel(runId, reason)
      },
      output,
      fields,
    })
    this.last = run
    if (started !== undefined && isOwn) {
      recordings.add({ runId, conversationId, place, started })
      keepAlive.hold()
      const release = () => keepAlive.release()
      started.then(release, release)
    }
    if (abortSignal != null) cancelOnAbort(run, abortSignal)
    return run
  }

  /** Resolves when the run is in the rows; rejects when it could not be put there. */
  async recorded(run: Run): Promise<Run> {
    await this.parts.recordings.settled(run.id)
    if ((await rootFor(this.parts.store, run.id)) === undefined) await run.result
    return run
  }

  /** The events of the tree that has this conversation. */
  treeEvents(id: Id, options: TreeEventsOptions): AsyncIterable<RunEvent> {
    const { after = 0, live = false } = readOptions('events(conversationId, options)', options, TREE_EVENTS)
    const { store, recordings } = this.parts
    const { feeds, keepAlive } = this.parts.live
    const read = () => followTree({ store, feeds, keepAlive, after, live }, id)
    return { [Symbol.asyncIterator]: () => lateIterator(recordings.settled(id), read) }
  }
}
