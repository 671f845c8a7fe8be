import { ExtensionRuns } from '../agent/hooks/extension-runs.ts'
import type { LiveParts } from '../agent/hooks/node-run.ts'
import { isLegateError, type LegateError, messageOf } from '../base/error.ts'
import type { KeptAlive } from '../base/keep-shape.ts'
import { BlockWriter } from '../conversation/blocks.ts'
import { KeepAlive, NodeEnds, TurnEnds } from '../conversation/ends.ts'
import { Feeds } from '../conversation/feeds.ts'
import type { Engine } from '../engine/engine.ts'
import type { Commit } from '../graph/commit.ts'
import type { Ledger } from '../store/ledger.ts'
import type { Tape } from '../tool/tape.ts'
import type { Logger } from '../tool/tool.ts'

export interface LiveOptions {
  readonly runtime: object
  readonly ledger: Ledger
  readonly logger: Logger
  /** Asked for when it is needed: the engine is made later. */
  readonly engine: () => Engine
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
  lastCall: KeptAlive
  private readonly options: LiveOptions
  /** Each loss is told once: the store as null, a tree by its root. */
  private readonly lost: Set<unknown> = new Set()
  private fullUntil = 0

  constructor(options: LiveOptions) {
    const { store, clock } = options.ledger
    this.options = options
    this.runtime = options.runtime
    this.feeds = new Feeds(store, clock)
    this.ends = new TurnEnds(store, this.keepAlive)
    this.nodeEnds = new NodeEnds(store)
    this.extensions = new ExtensionRuns(options.ledger, options.logger)
    this.blocks = new BlockWriter({ store, feeds: this.feeds, clock, report: this.report })
  }

  /** Tells of a commit of this process. */
  committed(commit: Commit): void {
    if (this.feeds.hasReaders) this.feeds.committed(commit)
    if (this.extensions.hasRuns) this.extensions.committed(commit)
    this.ends.committed(commit)
    this.nodeEnds.committed(commit)
  }

  /** Looks at the rows again: another process may have written. */
  async changed(): Promise<void> {
    try {
      await this.feeds.changed()
      await this.ends.changed()
      await this.nodeEnds.changed()
      await this.extensions.changed()
      for (const error of this.options.ledger.store.tampered?.() ?? []) this.report(error)
    } catch (error) {
      this.report(error)
    }
  }

  close(): void {
    this.ends.close()
    this.feeds.close()
  }

  /** Tells what went wrong beside the runs: to the log, and to who waits for a run that cannot end any more. */
  readonly report = (error: unknown): void => {
    if (isLegateError(error, 'store_full') && !this.isNewlyFull()) return
    const isGone = isLegateError(error, 'store_gone')
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

  /** Ends the waiting for runs that cannot end any more: every run where the store is gone, else those of one tree. */
  private endRuns(error: LegateError): void {
    const { rootId } = error.details
    if (error.code === 'store_gone') {
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

const MINUTE_MS = 60_000
