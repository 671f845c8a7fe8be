// The local engine: runs nodes in this process, up to a number of workers.
//
// Owns:      the nodes that run here, their workers, the timer for what is due, and the lease of this process.
// Called by: the runtime through the Engine port. It calls the `Executor` for each node, and `sweep` for everything that rows
//            alone show to be due.
// Must stay true:
//   - It claims nothing without a valid lease; a node whose claim was lost holds no worker and cannot write.
//   - A node that only waits for a child lends its worker, so waiting trees never block each other.
//   - A process that closes gives back the claims of nodes that did not finish, unless the store is gone.

import type { Clock } from '../base/clock.ts'
import { IdMap } from '../base/collections.ts'
import { isLegateError, unless } from '../base/error.ts'
import { freshId } from '../base/id.ts'
import type { KeptAlive } from '../base/keep-shape.ts'
import { after, attempt, type Later } from '../base/maybe.ts'
import type { Claims, Commit, Missing, ProcessReport } from '../graph/commit.ts'
import type { Draft } from '../graph/draft.ts'
import { codeOf } from '../graph/kinds.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { AgentRef, Id, Node } from '../graph/rows.ts'
import type { Ledger } from '../store/ledger.ts'
import { look } from '../store/look.ts'
import type { Agenda, StoreChange } from '../store/store.ts'
import { Crew } from './crew.ts'
import type { Engine, EngineOptions, Executor } from './engine.ts'
import { Lease, quietUntil } from './lease.ts'
import { type Look, Looks } from './looks.ts'
import { type NodeHost, RunningNode, stopCauseIn, stopCauseOf } from './running-node.ts'
import type { OwnerLine, SweepOptions } from './sweep.ts'

/** How many nodes of one commit start at once. */
const LOT = 32
/** How long a wake waits for its moment. Clocks of processes differ a little; those of their queue may differ more. */
const EARLY_MS = 2_000
/** A process that runs nothing has code for nobody. */
const NO_AGENTS: ReadonlySet<string> = new Set()
const NOTHING_TOLD: ProcessReport = {}

type Upkeep = typeof import('./sweep.ts')

let loaded: Upkeep | undefined

/** Loads the sweep with its first use: a run that succeeds is over before. */
async function upkeep(): Promise<Upkeep> {
  loaded ??= await import('./sweep.ts')
  return loaded
}

/** Makes a local engine. */
export function localEngine(ledger: Ledger, options: EngineOptions): Engine {
  return new LocalEngine(ledger, options)
}

/** Runs nodes in this process. Several processes may do so on one store; claims keep them apart. */
class LocalEngine implements Engine, NodeHost {
  readonly id: Id
  private readonly ledger: Ledger
  readonly clock: Clock
  readonly firstWordMs: number
  readonly stalledMs: number
  private readonly options: EngineOptions
  private readonly running: IdMap<RunningNode> = new IdMap()
  /** The running node that started last. */
  protected last: KeptAlive
  /** Nodes that did not stop and lost their claim: they hold no worker, but their code may still try to write. */
  private readonly abandoned: Set<RunningNode> = new Set()
  private readonly lease: Lease
  private readonly workers: Claims
  private execute: Executor | undefined
  private state: 'idle' | 'started' | 'stopping' | 'stopped' = 'idle'
  private starting: Promise<void> | undefined
  private stopping: Promise<void> | undefined
  /** Workers promised to a draft, and workers whose node only waits for a child. */
  private reserved = 0
  private lent = 0
  /** True when a node stayed pending for want of a worker: look for it when one is free. */
  private starved = false
  /** Trees in which something was to stop before this process knew that it runs something there. */
  private readonly stopsHeard = new Set<Id>()
  /** True when rows may say that this process runs a node that it does not run. */
  private isInDoubt = false
  private readonly line: OwnerLine = { last: undefined, isCrowded: false }
  private readonly crew: Crew
  private armedAt = Number.POSITIVE_INFINITY
  private disarm: () => void = () => undefined
  private unwatch: () => void = () => undefined
  private unlisten: () => Promise<void> = async () => undefined
  private readonly looks = new Looks((what) => this.lookFor(what))
  private drained: (() => void) | undefined

  constructor(ledger: Ledger, options: EngineOptions) {
    this.ledger = ledger
    this.clock = ledger.clock
    this.options = options
    this.firstWordMs = options.firstWordMs
    this.stalledMs = options.stalledMs
    this.id = freshId(this.clock.now(), ledger.scheduler.random)
    this.crew = new Crew(this.id, options.workers > 0)
    this.lease = new Lease({
      store: ledger.store,
      clock: ledger.clock,
      engineId: this.id,
      leaseMs: options.leaseMs,
      agents: options.workers === 0 ? NO_AGENTS : options.agents,
      tell: options.tell ?? (() => NOTHING_TOLD),
    })
    const { running } = this
    this.workers = {
      engineId: this.id,
      get running() {
        return running.size
      },
      take: (kind, agent, isItsTurn) => this.take(kind, agent, isItsTurn),
      giveBack: (taken) => {
        this.reserved -= taken
        // The commit may be stored although nobody has heard so.
        this.isInDoubt ||= taken > 0
      },
    }
  }

  start(execute: Executor): Promise<void> {
    this.starting ??= this.begin(execute).catch((error: unknown) => {
      this.starting = undefined
      throw error
    })
    return this.starting
  }

  claims(now: number): Claims | null {
    return this.state === 'started' && now < this.lease.until ? this.workers : null
  }

  /** Acts on a commit: runs the nodes it claimed, stops those it cancelled, leaves first, and remembers when to look again. */
  committed(commit: Commit, draft: Draft): void {
    for (let at = draft.aborted.length - 1; at >= 0; at--) this.running.get(draft.aborted[at] ?? '')?.stop('cancel')
    this.runLot(draft.started)
    const rootId = commit.rootId ?? ''
    if (this.stopsHeard.size > 0 && this.stopsHeard.delete(rootId)) this.stopIn({ rootId, stop: true, ended: [] })
    // The others leave it to this process, which has no worker for it.
    if (draft.missing !== null && commit.rootId !== null && this.crew.isAwaited(rootId)) this.leave([rootId])
    // A worker may have become free while the commit was on its way: whoever looked for work then has not seen this node.
    if (draft.missing === 'worker' && this.availableWorkers() > 0) this.look('runnable')
    if (draft.dueAt < this.armedAt) this.arm(draft.dueAt)
  }

  async takeUp(rootId?: Id): Promise<void> {
    await upkeep()
    if (rootId === undefined) return this.look()
    if (this.state === 'started') await this.lookAt(rootId)
  }

  stop(): Promise<void> {
    this.stopping ??= this.end().catch(unless('store_gone'))
    return this.stopping
  }

  halt(): void {
    this.state = 'stopped'
    this.disarm()
    this.unwatch()
    this.unlisten().catch(this.options.report)
    for (const work of [...this.running.values(), ...this.abandoned]) work.stop('shutdown')
  }

  private async begin(execute: Executor): Promise<void> {
    this.execute = execute
    await this.lease.renew()
    await this.listen()
    if (this.state !== 'idle') return this.unlisten()
    this.state = 'started'
    this.unwatch = this.ledger.store.watch((change) => this.heard(change))
    this.arm(this.clock.now() + this.options.sweepMs)
  }

  /** Takes wakes from the queue of the store, if it has one. */
  private async listen(): Promise<void> {
    const { report, workers } = this.options
    const { wakes } = this.ledger.store
    if (workers === 0 || wakes === undefined) return
    this.unlisten = await wakes.listen({ wake: (rootId, at) => this.wake(rootId, at), report })
  }

  /** A wake that comes a little early waits; one that comes much too early is left to the sweep. */
  private async wake(rootId: Id, at: number | null): Promise<boolean> {
    const isEarly = at !== null && at > this.clock.now() && at <= this.clock.now() + EARLY_MS
    if (isEarly) await new Promise<void>((resolve) => this.clock.at(at, resolve))
    return this.state === 'started' && this.lookAt(rootId)
  }

  /** Does what is due in one tree. False where work is left that others may do. */
  private async lookAt(rootId: Id): Promise<boolean> {
    const { sweepTree } = await upkeep()
    await this.lease.renew()
    const freeWorkers = () => (this.line.isCrowded ? 0 : this.availableWorkers())
    return sweepTree(this.ledger, { ...this.sweepOptions(), freeWorkers }, rootId)
  }

  /**
   * Another process has committed: looks for work where it may have left some, and for stops where a node of this process may be
   * meant. Where a queue brings work, only what is not in the queue is told.
   */
  private heard(change: StoreChange | null): void {
    const { wakes, hears } = this.ledger.store
    if (change === null) return wakes === undefined && hears?.() !== true ? this.look() : undefined
    if (change.stop || change.ended.length > 0) this.stopIn(change)
    if (change.runnable && this.crew.hear(change)) this.look(change.isLeft ? 'runnable' : 'own')
  }

  /**
   * Stops what was asked to stop in one tree, or whose turn others have ended. It does not wait for a sweep that is under way: a
   * person waits for it.
   */
  private stopIn({ rootId, stop, ended }: Pick<StoreChange, 'rootId' | 'stop' | 'ended'>): void {
    const isMeant = ({ claim, turnId }: RunningNode) => claim.rootId === rootId && (stop || ended.includes(turnId))
    const here = [...this.running.values()].filter(isMeant)
    // A process that closes stops everything.
    if (here.length > 0) this.stopAsked(here).catch(unless('store_closed')).catch(this.options.report)
    // The answer to a claim may still be on its way.
    else if (this.reserved > 0) this.stopsHeard.add(rootId)
  }

  private abandon(work: RunningNode): void {
    this.abandoned.add(work)
    this.release(work.claim.nodeId)
  }

  private release(nodeId: Id): void {
    this.running.delete(nodeId)
    if (this.drained !== undefined && this.running.size === 0) this.drained()
    if (this.starved) this.look('runnable')
  }

  private take(kind: string, agent: AgentRef, isItsTurn: boolean): Missing | null {
    const { agents, kinds, mayRun } = this.options
    if (!kinds.has(kind) || !agents.has(codeOf(agent)) || mayRun?.(agent) === false) return 'code'
    const mustWait = this.line.isCrowded && !isItsTurn
    if (mustWait || this.running.size + this.reserved - this.lent >= this.options.workers) return 'worker'
    this.reserved++
    return null
  }

  /** Starts many nodes in lots, so that other work gets its turn between two lots. */
  private runLot(nodes: readonly Node[]): void {
    for (const node of nodes.length > LOT ? nodes.slice(0, LOT) : nodes) this.run(node, null)
    if (nodes.length > LOT) this.defer(nodes.slice(LOT))
  }

  private defer(nodes: readonly Node[]): void {
    this.ledger.scheduler.defer(() => {
      const begun = attempt(() => this.runLater(nodes))
      if (begun instanceof Promise) begun.catch((error: unknown) => this.notBegun(nodes, error))
    })
  }

  /** Their claims are given back by a sweep. */
  private notBegun(nodes: readonly Node[], error: unknown): void {
    this.options.report(error)
    this.reserved -= nodes.length
    this.isInDoubt = true
  }

  /**
   * Starts the next lot of one commit, so of one tree. Some nodes may have been asked to stop, or taken, meanwhile; a process that
   * closes gives their claims back.
   */
  private runLater(nodes: readonly Node[]): Later<void> {
    const lot = nodes.slice(0, LOT)
    const causes = (tree: TreeReader) =>
      lot.map(({ id, epoch }) => (this.state === 'started' ? stopCauseIn(tree, { nodeId: id, epoch }) : 'shutdown'))
    return after(look(this.ledger.store, nodes[0]?.rootId ?? '', causes), (found) => {
      for (const [at, node] of lot.entries()) {
        const cause = found[at]
        if (cause === null || cause === 'cancel') this.run(node, cause)
        else this.reserved--
      }
      if (nodes.length > LOT) this.defer(nodes.slice(LOT))
    })
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
    this.abandoned.delete(work)
    if (this.running.get(node.id) === work) this.release(node.id)
  }

  /** Gives a claim back when the node could not write its end: the store was away, or our code has a defect. */
  private failed(node: Node, work: RunningNode, error: unknown): void {
    if (this.state === 'stopped') return
    this.options.report(error)
    if (isLegateError(error, 'tampered')) return this.done(node, work)
    this.giveBack(node, 'Its end could not be written.').then(
      () => this.done(node, work),
      () => this.clock.at(this.clock.now() + this.options.sweepMs, () => this.failed(node, work, error)),
    )
  }

  private async giveBack(node: Node, reason: string): Promise<void> {
    const { giveBack } = await upkeep()
    await giveBack(this.ledger, node, { engineId: this.id, reason, isClosed: this.state === 'stopping' })
  }

  /** Lends a worker while its node only awaits a child, and takes it back after that. */
  lend(delta: 1 | -1): void {
    this.lent += delta
    if (delta === 1 && this.starved) this.look('runnable')
  }

  private look(what: Look = 'all'): void {
    if (this.state === 'started') this.looks.ask(what)
  }

  private async lookFor(what: Look): Promise<void> {
    if (this.state !== 'started') return
    await (what === 'all' ? this.sweepOnce() : this.claimOnce(what))
  }

  private sweepOptions(): SweepOptions {
    return {
      engineId: this.id,
      graceMs: this.options.graceMs,
      canRun: () => ({ agents: [...this.options.agents], kinds: [...this.options.kinds] }),
      mayRun: this.options.mayRun,
      freeWorkers: () => this.availableWorkers(),
      line: this.line,
      crew: this.crew,
      running: () => [...this.running.values()].map(({ claim }) => claim),
      report: this.options.report,
      keep: () => this.lease.keep(),
    }
  }

  private async sweepOnce(): Promise<void> {
    const options = this.sweepOptions()
    const leftOf = this.crew.begin()
    let agenda: Agenda | undefined
    this.starved = false
    try {
      const { agendaOf, forceStopped, giveBackIdle, sweep } = await upkeep()
      agenda = await agendaOf(this.ledger, options.graceMs)
      await this.lease.renew(agenda?.engines.some(({ id }) => id === this.id))
      this.stopsHeard.clear()
      await this.stopAsked([...this.running.values()])
      await forceStopped(this.ledger, [...this.running.values()], options)
      if (this.isInDoubt && this.reserved === 0) {
        this.isInDoubt = false
        await giveBackIdle(this.ledger, this.id, (nodeId) => this.isKnown(nodeId))
      }
      this.leave(leftOf(await sweep(this.ledger, { ...options, mayTake: this.crew.beginSweep() }, agenda)))
      this.options.swept()
    } catch (error) {
      agenda = undefined
      this.options.report(error)
    }
    await this.armNext(agenda)
  }

  /** Takes what others have left, and leaves the rest of a sweep to the timer. */
  private async claimOnce(what: Look): Promise<void> {
    this.starved = false
    const leftOf = this.crew.begin()
    if (this.availableWorkers() <= 0) return this.leave(leftOf())
    try {
      const { claimRunnable } = await upkeep()
      const mayTake = what === 'own' ? ({ rootId }: Pick<Node, 'rootId'>) => this.crew.isFirst(rootId) : undefined
      this.leave(leftOf(await claimRunnable(this.ledger, { ...this.sweepOptions(), mayTake })))
    } catch (error) {
      this.options.report(error)
    }
  }

  /** Tells others of work that they have left to this process, and that it did not take. */
  private leave(rootIds: readonly Id[]): void {
    for (const rootId of rootIds) this.ledger.store.leave?.(rootId)
  }

  /** Counts free workers. Without one, runnable nodes stay pending until a worker is free. */
  private availableWorkers(): number {
    if (this.state !== 'started' || this.clock.now() >= this.lease.until) return 0
    const free = this.options.workers - (this.running.size + this.reserved - this.lent)
    if (free <= 0) this.starved = true
    return free
  }

  /** Stops those that were cancelled elsewhere, taken over, or take too long. A store far away is asked for all of them at once. */
  private async stopAsked(works: readonly RunningNode[]): Promise<void> {
    const { reportSilence } = await upkeep()
    const now = this.clock.now()
    const causes = await Promise.all(
      works.map((work) => stopCauseOf(work, now, this.ledger.store, this.options.report)),
    )
    for (const [at, work] of works.entries()) {
      const cause = causes[at] ?? null
      if (this.running.get(work.claim.nodeId) !== work) continue
      if (cause === null || cause === 'stalled') reportSilence(this.ledger, work, now).catch(this.options.report)
      if (cause !== null) work.stop(cause)
      // It holds no worker any more, whatever its code still does.
      if (cause === 'lost') this.abandon(work)
    }
  }

  private async armNext(agenda: Agenda | undefined): Promise<void> {
    const now = this.clock.now()
    // Where nothing was to do, nothing has changed.
    const isQuiet = agenda?.isDue === false && !agenda.isRunnable && this.ledger.store.wakes === undefined
    const due = isQuiet ? (agenda.nextDue ?? Number.POSITIVE_INFINITY) : await this.nextDue(now)
    if (this.state !== 'started') return
    // A commit may have armed an earlier moment meanwhile.
    let at = Math.min(now + this.options.sweepMs, due, this.armedAt)
    for (const work of this.running.values()) {
      if (work.stopCause === null && work.timeoutAt < at) at = work.timeoutAt
    }
    this.arm(at)
  }

  /** A queue brings wakes for what is due; without one, every process sets its alarm for it. */
  private async nextDue(now: number): Promise<number> {
    if (this.ledger.store.wakes !== undefined) return Number.POSITIVE_INFINITY
    try {
      return (await this.ledger.store.nextDue(now)) ?? Number.POSITIVE_INFINITY
    } catch (error) {
      this.options.report(error)
      return Number.POSITIVE_INFINITY
    }
  }

  /** Sets the one timer for everything that is due. */
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
    await this.unlisten().catch(this.options.report)
    await this.looks.over()
    await this.drain()
    for (const work of [...this.running.values(), ...this.abandoned]) work.stop('shutdown')
    try {
      if (this.lease.wasHeld) await this.giveBackAll()
    } finally {
      this.state = 'stopped'
    }
    await this.lease.end()
  }

  /**
   * Gives all claims back, so that other processes continue. Aborted nodes that no code runs any more are included: they never
   * write their end.
   */
  private async giveBackAll(): Promise<void> {
    const claimed = await this.ledger.store.claimedBy(this.id, Number.MAX_SAFE_INTEGER)
    // A tree that was changed from outside takes no writes, and its discovery was reported.
    const reason = 'The process that ran it was closed.'
    for (const node of claimed) await this.giveBack(node, reason).catch(unless('tampered'))
  }

  /** While a commit is under way, this process may have claimed more than it knows of. */
  private isKnown(nodeId: Id): boolean {
    this.isInDoubt ||= this.reserved > 0
    return (
      this.isInDoubt || this.running.has(nodeId) || [...this.abandoned].some(({ claim }) => claim.nodeId === nodeId)
    )
  }

  /** Waits, at most for the grace, until all code has ended but code that awaits work elsewhere. */
  private async drain(): Promise<void> {
    if (this.running.size === 0) return
    const { keepDraining, untilDrained } = await upkeep()
    if (this.lease.wasHeld) await keepDraining(this.lease, this.options)
    const drain = untilDrained(this.options.graceMs, () => this.running.size <= this.lent)
    this.drained = drain.end
    if (this.running.size === 0) drain.end()
    await drain.over
  }
}
