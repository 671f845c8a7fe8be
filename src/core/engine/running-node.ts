import type { Clock } from '../base/clock.ts'
import { LegateError } from '../base/error.ts'
import type { Later } from '../base/maybe.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { Claim } from '../rules/turn/claim.ts'
import { lookUnlessTampered } from '../store/look.ts'
import type { Store } from '../store/store.ts'
import type { StopCause, Work } from './engine.ts'

const REASONS: Readonly<Record<StopCause, string>> = {
  cancel: 'The run was asked to stop.',
  timeout: 'It took longer than it may.',
  stalled: 'Nothing came for too long.',
  shutdown: 'The process is closing.',
  lost: 'The claim was lost to another process.',
}

/** The engine that a node borrows its worker and clock from. */
export interface NodeHost {
  readonly clock: Clock
  /** How long a node may be silent before its first word. */
  readonly firstWordMs: number
  /** How long a node may be silent once it has begun to speak. */
  readonly stalledMs: number
  lend(delta: 1 | -1): void
}

/** One claim as its process sees it. Everything that must outlive the process is in the node's row. */
export class RunningNode implements Work {
  readonly claim: Claim
  readonly turnId: Id
  private timeLimit: number
  private silentAt = Number.POSITIVE_INFINITY
  /** How long it may be silent after its activity since the last look; 0 when there was none. */
  private patienceMs = 0
  private wasStirred = false
  /** When a look last found it active; 0 before the first look. */
  private stirredAt = 0
  /** True when its silence was reported. */
  isSilenceReported = false
  stopCause: StopCause | null = null
  onStop: (() => void) | null = null
  private controller: AbortController | undefined
  /** How many things its code awaits: it lends one worker, however many there are. */
  private awaited = 0
  private awaitedSince = 0
  private readonly lender: NodeHost

  constructor(node: Node, lender: NodeHost) {
    this.claim = { nodeId: node.id, rootId: node.rootId, engineId: node.engineId ?? '', epoch: node.epoch }
    this.turnId = node.turnId
    this.timeLimit = node.timeoutMs === null ? Number.POSITIVE_INFINITY : lender.clock.now() + node.timeoutMs
    this.lender = lender
  }

  /** When it must be stopped for taking too long. Time in which it waits for children does not count. */
  get timeoutAt(): number {
    return this.awaited > 0 ? Number.POSITIVE_INFINITY : this.timeLimit
  }

  /** Called now and then: only whether something happened since the last look counts, not when. */
  isStalled(now: number): boolean {
    const cameSince = this.patienceMs > 0
    if (cameSince) this.silentAt = now + this.patienceMs
    if (cameSince || this.wasStirred || this.awaited > 0 || this.stirredAt === 0) this.stirredAt = now
    this.patienceMs = 0
    this.wasStirred = false
    return this.silentAt <= now
  }

  /** Since when it has been silent, if that is too long. Call `isStalled` first. */
  silentSince(now: number): number | null {
    return this.stirredAt + this.lender.stalledMs <= now ? this.stirredAt : null
  }

  noteModelCall(): void {
    this.patienceMs = this.lender.firstWordMs
  }

  noteOutput(): void {
    this.patienceMs = this.lender.stalledMs
  }

  noteActivity(): void {
    this.wasStirred = true
  }

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController()
      if (this.stopCause !== null) this.controller.abort(reasonOf(this.stopCause))
    }
    return this.controller.signal
  }

  /** The first cause counts, except that `shutdown` overrides all: a process that closes writes nothing more. */
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
    if (this.awaited++ === 0) {
      this.awaitedSince = this.lender.clock.now()
      this.lender.lend(1)
    }
    try {
      return await wait
    } finally {
      if (--this.awaited === 0) {
        this.timeLimit += this.lender.clock.now() - this.awaitedSince
        this.lender.lend(-1)
      }
    }
  }
}

/** Why a claimed node has to stop, by the rows of its tree. */
export function stopCauseIn(
  tree: TreeReader,
  { nodeId, epoch }: Pick<Claim, 'nodeId' | 'epoch'>,
): 'lost' | 'cancel' | null {
  const node = tree.node(nodeId)
  if (node === undefined || node.epoch !== epoch) return 'lost'
  if (node.marks?.stop != null) return 'cancel'
  return tree.turn(node.turnId)?.cancel ? 'cancel' : null
}

/** Why a running node has to stop now. */
export function stopCauseOf(
  work: RunningNode,
  now: number,
  store: Store,
  report: (error: unknown) => void,
): Later<StopCause | null> {
  if (work.timeoutAt <= now) return 'timeout'
  if (work.isStalled(now)) return 'stalled'
  return lookUnlessTampered(store, work.claim.rootId, {
    read: (tree) => stopCauseIn(tree, work.claim),
    // Nothing more is written to such a tree.
    altered: (error) => {
      report(error)
      return 'lost' as const
    },
  })
}

function reasonOf(cause: StopCause): LegateError {
  return new LegateError('aborted', REASONS[cause], { details: { cause } })
}
