import type { Clock } from '../base/clock.ts'
import { IdMap } from '../base/collections.ts'
import { isLegateError } from '../base/error.ts'
import { freshId } from '../base/id.ts'
import type { Claims, Draft } from '../graph/draft.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { Ledger } from '../store/ledger.ts'
import type { Engine, Execute, StopCause } from './engine.ts'
import { Lease, quietUntil } from './lease.ts'
import { type Lender, RunningNode } from './running-node.ts'
import type { SweepOptions } from './sweep.ts'

/** So many nodes of one commit are begun at once. */
const LOT = 32

export interface LocalEngineOptions {
  readonly workers: number
  readonly graceMs: number
  readonly sweepMs: number
  readonly leaseMs: number
  readonly firstWordMs: number
  readonly stalledMs: number
  /** Names of the agents this process has code for; it grows. The empty name stands for agents that need none. */
  readonly agents: ReadonlySet<string>
  readonly kinds: ReadonlySet<string>
  /** Called before each node runs. */
  readonly beforeNode: () => void
  /** Called after each sweep: others may have written what nobody told us of. */
  readonly swept: () => void
  readonly report: (error: unknown) => void
}

type Upkeep = typeof import('./sweep.ts')

let loaded: Upkeep | undefined

/** What looks after rows that nobody works on. Loaded with the first sweep: a run that goes well is over before. */
async function upkeep(): Promise<Upkeep> {
  loaded ??= await import('./sweep.ts')
  return loaded
}

/** Runs nodes in this process. Several processes may do so on one store; claims keep them apart. */
export class LocalEngine implements Engine, Lender {
  readonly id: Id
  private readonly ledger: Ledger
  readonly clock: Clock
  readonly firstWordMs: number
  readonly stalledMs: number
  private readonly options: LocalEngineOptions
  private readonly running: IdMap<RunningNode> = new IdMap()
  /** Keeps the shape of running nodes known while none runs: see Ledger. */
  protected last: unknown
  /** What was taken from a node that did not stop: it holds no worker, but its code may still want to write. */
  private readonly forsaken: Set<RunningNode> = new Set()
  private readonly lease: Lease
  private readonly workers: Claims
  private execute: Execute | undefined
  private state: 'idle' | 'started' | 'stopping' | 'stopped' = 'idle'
  private starting: Promise<void> | undefined
  private stopping: Promise<void> | undefined
  /** Workers promised to a draft, and workers whose node only waits for a child. */
  private reserved = 0
  private lent = 0
  /** A node was left pending for want of a worker: look for it when one is free. */
  private starved = false
  private armedAt = Number.POSITIVE_INFINITY
  private disarm: () => void = () => undefined
  private unwatch: () => void = () => undefined
  private sweeping: Promise<void> | undefined
  private sweepAgain = false
  private drained: (() => void) | undefined

  constructor(ledger: Ledger, options: LocalEngineOptions) {
    this.ledger = ledger
    this.clock = ledger.clock
    this.options = options
    this.firstWordMs = options.firstWordMs
    this.stalledMs = options.stalledMs
    this.id = freshId(this.clock.now())
    this.lease = new Lease({
      store: ledger.store,
      clock: ledger.clock,
      engineId: this.id,
      leaseMs: options.leaseMs,
    })
    this.workers = {
      engineId: this.id,
      take: (kind, agentName) => this.take(kind, agentName),
      giveBack: (taken) => {
        this.reserved -= taken
      },
    }
  }

  start(execute: Execute): Promise<void> {
    this.starting ??= this.begin(execute).catch((error: unknown) => {
      this.starting = undefined
      throw error
    })
    return this.starting
  }

  claims(now: number): Claims | null {
    return this.state === 'started' && now < this.lease.until ? this.workers : null
  }

  /** After a commit: run what it claimed, stop what it cancelled, leaves first, remember when to look again. */
  committed(draft: Draft): void {
    for (let at = draft.aborted.length - 1; at >= 0; at--) this.running.get(draft.aborted[at] ?? '')?.stop('cancel')
    this.runLot(draft.started)
    if (draft.dueAt < this.armedAt) this.arm(draft.dueAt)
  }

  async takeUp(): Promise<void> {
    await upkeep()
    this.look()
  }

  stop(): Promise<void> {
    this.stopping ??= this.end().catch(unlessGone)
    return this.stopping
  }

  halt(): void {
    this.state = 'stopped'
    this.disarm()
    this.unwatch()
    for (const work of [...this.running.values(), ...this.forsaken]) work.stop('shutdown')
  }

  private async begin(execute: Execute): Promise<void> {
    this.execute = execute
    await this.lease.renew()
    if (this.state !== 'idle') return
    this.state = 'started'
    this.unwatch = this.ledger.store.watch(() => this.look())
    this.arm(this.clock.now() + this.options.sweepMs)
  }

  private forsake(nodeId: Id): void {
    const work = this.running.get(nodeId)
    if (work !== undefined) this.forsaken.add(work)
    this.release(nodeId)
  }

  private release(nodeId: Id): void {
    this.running.delete(nodeId)
    if (this.running.size === 0) this.drained?.()
    if (this.starved) this.look()
  }

  private take(kind: string, agentName: string): boolean {
    if (!this.options.kinds.has(kind) || !this.options.agents.has(agentName)) return false
    if (this.running.size + this.reserved - this.lent >= this.options.workers) {
      this.starved = true
      return false
    }
    this.reserved++
    return true
  }

  /** Of many nodes a lot at a time: what each begins goes on, and others have their turn, before the next lot. */
  private runLot(nodes: readonly Node[]): void {
    for (const node of nodes.length > LOT ? nodes.slice(0, LOT) : nodes) this.run(node, null)
    if (nodes.length > LOT) setImmediate(() => this.runLater(nodes.slice(LOT)))
  }

  /** Meanwhile they may have been asked to stop, or taken; a process that closes gives their claims back. */
  private runLater(nodes: readonly Node[]): void {
    for (const node of nodes.slice(0, LOT)) {
      const cause = this.state === 'started' ? this.causeInRows(node.id, node.epoch) : 'shutdown'
      if (cause === null || cause === 'cancel') this.run(node, cause)
      else this.reserved--
    }
    if (nodes.length > LOT) setImmediate(() => this.runLater(nodes.slice(LOT)))
  }

  private run(node: Node, stopped: 'cancel' | null): void {
    this.reserved--
    const work = new RunningNode(node, this)
    if (stopped !== null) work.stop(stopped)
    this.running.set(node.id, work)
    this.last = work
    if (work.timeoutAt < this.armedAt) this.arm(work.timeoutAt)
    this.options.beforeNode()
    const ended = this.execute?.(node, work)
    if (!(ended instanceof Promise)) return this.done(node, work)
    ended.then(
      () => this.done(node, work),
      (error: unknown) => this.failed(node, work, error),
    )
  }

  private done(node: Node, work: RunningNode): void {
    this.forsaken.delete(work)
    if (this.running.get(node.id) === work) this.release(node.id)
  }

  /** The node could not write its end (the store was away, or a defect of ours): its claim is given back. */
  private failed(node: Node, work: RunningNode, error: unknown): void {
    if (this.state === 'stopped') return
    this.options.report(error)
    if (isLegateError(error, 'tampered')) return this.done(node, work)
    this.giveBack(node, 'Its end could not be written.').then(
      () => this.done(node, work),
      () => this.clock.at(this.clock.now() + this.options.sweepMs, () => this.failed(node, work, error)),
    )
  }

  private async giveBack(node: Pick<Node, 'id' | 'rootId'>, reason: string): Promise<void> {
    const { giveBack } = await upkeep()
    await giveBack(this.ledger, node, { engineId: this.id, reason, isClosed: this.state === 'stopping' })
  }

  /** A worker is lent while its node only awaits a child, and comes back after that. */
  lend(delta: 1 | -1): void {
    this.lent += delta
    if (delta === 1 && this.starved) this.look()
  }

  /** Sweeps now, or once more after the sweep that is going on. */
  private look(): void {
    if (this.state !== 'started') return
    if (this.sweeping !== undefined) {
      this.sweepAgain = true
      return
    }
    this.sweeping = this.sweepOnce().finally(() => {
      this.sweeping = undefined
      if (!this.sweepAgain) return
      this.sweepAgain = false
      this.look()
    })
  }

  private async sweepOnce(): Promise<void> {
    const options: SweepOptions = {
      engineId: this.id,
      graceMs: this.options.graceMs,
      canRun: () => ({ agents: [...this.options.agents], kinds: [...this.options.kinds] }),
      freeWorkers: () => this.availableWorkers(),
      report: this.options.report,
    }
    this.starved = false
    try {
      const { forceAsked, sweep, tellStalled } = await upkeep()
      // Last before claims: what was waited for may have taken longer than a lease.
      await this.lease.renew()
      this.stopAsked(tellStalled)
      await forceAsked(
        this.ledger,
        this.running.entries().map(([nodeId]) => nodeId),
        options,
      )
      await sweep(this.ledger, options)
      this.options.swept()
    } catch (error) {
      this.options.report(error)
    }
    this.armNext()
  }

  /** Without one, what is runnable stays pending: look again when one is free. */
  private availableWorkers(): number {
    if (this.state !== 'started' || this.clock.now() >= this.lease.until) return 0
    const free = this.options.workers - (this.running.size + this.reserved - this.lent)
    if (free <= 0) this.starved = true
    return free
  }

  /** Nodes that were cancelled from elsewhere, taken over, or take too long. */
  private stopAsked(tell: Upkeep['tellStalled']): void {
    const now = this.clock.now()
    for (const [nodeId, work] of this.running.entries()) {
      const cause = this.stopCauseOf(nodeId, work, now)
      if (cause === null || cause === 'stalled') this.tellQuiet(work, now, tell)
      if (cause !== null) work.stop(cause)
      // It holds no worker any more, whatever its code still does.
      if (cause === 'lost') this.forsake(nodeId)
    }
  }

  private stopCauseOf(nodeId: Id, work: RunningNode, now: number): StopCause | null {
    if (work.timeoutAt <= now) return 'timeout'
    if (work.isStalled(now)) return 'stalled'
    return this.causeInRows(nodeId, work.claim.epoch)
  }

  private causeInRows(nodeId: Id, epoch: number): 'lost' | 'cancel' | null {
    const { store } = this.ledger
    try {
      const node = store.node(nodeId)
      if (node === undefined || node.epoch !== epoch) return 'lost'
      if (node.marks?.stop != null) return 'cancel'
      return store.turn(node.turnId)?.cancel ? 'cancel' : null
    } catch (error) {
      if (!isLegateError(error, 'tampered')) throw error
      this.options.report(error)
      return 'lost'
    }
  }

  /** What has been silent for too long is said to be, once, and that it goes on when it does. */
  private tellQuiet(work: RunningNode, now: number, tell: Upkeep['tellStalled']): void {
    const since = work.quietSince(now)
    if ((since !== null) === work.isToldQuiet) return
    work.isToldQuiet = since !== null
    tell(this.ledger, work.claim, since).catch(this.options.report)
  }

  private armNext(): void {
    if (this.state !== 'started') return
    const now = this.clock.now()
    let at = Math.min(now + this.options.sweepMs, this.nextDue(now))
    for (const work of this.running.values()) {
      if (work.stopCause === null && work.timeoutAt < at) at = work.timeoutAt
    }
    this.arm(at)
  }

  private nextDue(now: number): number {
    try {
      return this.ledger.store.nextDue(now) ?? Number.POSITIVE_INFINITY
    } catch (error) {
      this.options.report(error)
      return Number.POSITIVE_INFINITY
    }
  }

  /** One timer for everything that is due. */
  private arm(at: number): void {
    if (this.state !== 'started' && this.state !== 'idle') return
    this.disarm()
    this.armedAt = at
    const ring = () => {
      this.armedAt = Number.POSITIVE_INFINITY
      this.look()
    }
    const until = (now: number) => (this.running.size > this.lent ? now : quietUntil(this.ledger.store, now))
    this.disarm = this.clock.at(at, ring, { ref: false, idle: { until, renew: () => this.lease.renew() } })
  }

  private async end(): Promise<void> {
    if (this.state === 'stopped') return
    const started = this.starting
    this.state = this.state === 'idle' ? 'stopped' : 'stopping'
    await started?.catch(() => undefined)
    this.disarm()
    this.unwatch()
    await this.sweeping
    await this.drain()
    for (const work of [...this.running.values(), ...this.forsaken]) work.stop('shutdown')
    try {
      await this.giveBackAll()
    } finally {
      this.state = 'stopped'
    }
    await this.lease.end()
  }

  /** Others go on with what we leave. Also with what no code of ours runs any more: aborted nodes do not write their end. */
  private async giveBackAll(): Promise<void> {
    const claimed = this.ledger.store.claimedBy(this.id, Number.MAX_SAFE_INTEGER)
    for (const node of claimed) await this.giveBack(node, 'The process that ran it was closed.').catch(unlessTampered)
  }

  /** Waits until nothing runs but code that awaits what is not going on here, at most for the grace. */
  private drain(): Promise<void> {
    if (this.running.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      let wasWaiting = false
      const end = () => {
        clearTimeout(timer)
        clearInterval(looking)
        resolve()
      }
      const timer = setTimeout(end, this.options.graceMs)
      const looking = setInterval(() => {
        const isWaiting = this.running.size <= this.lent
        if (isWaiting && wasWaiting) end()
        wasWaiting = isWaiting
      }, 100)
      this.drained = end
    })
  }
}

/** Of what is gone nothing can be given back. */
function unlessGone(error: unknown): void {
  if (!isLegateError(error, 'store_gone')) throw error
}

/** Nothing is written to such a tree; it was told when it was found. */
function unlessTampered(error: unknown): void {
  if (!isLegateError(error, 'tampered')) throw error
}
