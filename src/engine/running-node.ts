import { LegateError } from '../base/error.ts'
import type { Claim } from '../graph/claim.ts'
import type { Node } from '../graph/rows.ts'
import type { StopCause, Work } from './engine.ts'

const REASONS: Readonly<Record<StopCause, string>> = {
  cancel: 'The run was asked to stop.',
  timeout: 'It took longer than it may.',
  shutdown: 'The process is closing.',
  lost: 'The claim was lost to another process.',
}

/** Whose worker a node lends out. */
export interface Lender {
  lend(delta: 1 | -1): void
}

/** The process's side of one claim. Everything that must outlive the process is in the node's row. */
export class RunningNode implements Work {
  readonly claim: Claim
  /** When it must be stopped for taking too long; Infinity without a limit of its own. */
  readonly timeoutAt: number
  stopCause: StopCause | null = null
  onStop: (() => void) | null = null
  private controller: AbortController | undefined
  /** How many things its code awaits: it has one worker to lend, however many there are. */
  private awaited = 0
  private readonly lender: Lender

  constructor(node: Node, now: number, lender: Lender) {
    this.claim = { nodeId: node.id, engineId: node.engineId ?? '', epoch: node.epoch }
    this.timeoutAt = node.timeoutMs === null ? Number.POSITIVE_INFINITY : now + node.timeoutMs
    this.lender = lender
  }

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController()
      if (this.stopCause !== null) this.controller.abort(reasonOf(this.stopCause))
    }
    return this.controller.signal
  }

  /** The first cause counts, except that a process that closes writes nothing more, whatever else was asked before. */
  stop(cause: StopCause): void {
    if (this.stopCause !== null) {
      if (cause === 'shutdown') this.stopCause = cause
      return
    }
    this.stopCause = cause
    this.controller?.abort(reasonOf(cause))
    this.onStop?.()
  }

  async lend<T>(wait: Promise<T>): Promise<T> {
    if (this.awaited++ === 0) this.lender.lend(1)
    try {
      return await wait
    } finally {
      if (--this.awaited === 0) this.lender.lend(-1)
    }
  }
}

function reasonOf(cause: StopCause): LegateError {
  return new LegateError('aborted', REASONS[cause], { details: { cause } })
}
