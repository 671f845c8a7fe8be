// A process on a machine of its own: a clock that may be wrong, a network that may be bad, and the real runtime on them.

import { type Clock, followingClock, type Scheduler } from '../../src/core/base/clock.ts'
import { StoreError } from '../../src/core/base/error.ts'
import type { Engine, EngineFactory, Executor, Work } from '../../src/core/engine/engine.ts'
import { localEngine } from '../../src/core/engine/local.ts'
import type { Commit } from '../../src/core/graph/commit.ts'
import type { TreeReader } from '../../src/core/graph/reader.ts'
import type { Id } from '../../src/core/graph/rows.ts'
import { createRuntime, type Runtime } from '../../src/core/runtime/runtime.ts'
import type { LocalStore, Store, StoreChange } from '../../src/core/store/store.ts'
import { AnswerLost, type Transport, type TreeNotice } from '../../src/stores/postgres/replica/transport.ts'
import { Trees } from '../../src/stores/postgres/replica/trees.ts'
import { SCANS } from '../support/remote.ts'
import { AGENTS } from './agents.ts'
import type { SimServer } from './server.ts'
import { type Happening, type Owner, PATIENCE_MS, type World } from './world.ts'

/** Defects that the simulation must find. They are planted here, in what the test itself puts around the code. */
export const BUGS = ['epoch', 'wake', 'answer', 'replica', 'lease'] as const
export type Bug = (typeof BUGS)[number]

export interface ProcessOptions {
  readonly name: string
  /** How far its clock is ahead. */
  readonly skew: number
  /** How slow its network is, and how much of it is lost or comes twice. */
  readonly delayMs: number
  readonly loss: number
  readonly twice: number
  /** True where it keeps few rows of a tree. */
  readonly fewRows: boolean
  readonly bug: Bug | undefined
}

/** What a simulation is made of, for processes. */
export interface Stage {
  readonly world: World
  readonly server: SimServer
  readonly processes: SimProcess[]
}

const TIMEOUT_MS = 400
export const LEASE_MS = 2_000
export const SWEEP_MS = 1_500
const POLL_MS = 1_000
const NEVER_MS = 86_400_000
/** A sweep is a dozen scans, so one or two of them are late. */
const INSTANT_SCANS = 0.9

export class SimProcess implements Owner {
  readonly name: string
  readonly runtime: Runtime
  isDead = false
  asleepUntil = 0
  /** False once its network is whole again. */
  isBadlyConnected = true
  /** Until then its messages are lost on their way there, on their way back, or both. */
  cut = { there: 0, back: 0 }
  readonly leaseSkew: number
  private readonly options: ProcessOptions
  private readonly stage: Stage
  private readonly trees: Trees
  private readonly watchers: Set<(change: StoreChange | null) => void> = new Set()

  constructor(stage: Stage, options: ProcessOptions) {
    this.stage = stage
    this.options = options
    this.name = options.name
    this.leaseSkew = options.bug === 'lease' ? options.skew : 0
    const clock = this.clock()
    const { world } = stage
    this.trees = new Trees({
      transport: this.transport(),
      requireOpen: () => undefined,
      pause: (ms) => world.sleep(ms, this),
      defer: () => world.sleep(0, this),
      patienceMs: PATIENCE_MS,
      now: () => world.now,
      // In half of the worlds every tree is too large to be loaded whole.
      limits: options.fewRows ? { whole: 4, turns: 1 } : { whole: 5_000, turns: 8 },
    })
    this.runtime = createRuntime({
      store: this.store(),
      clock: options.bug === 'lease' ? clock : followingClock(clock),
      scheduler: this.scheduler(),
      agents: AGENTS,
      logger: SILENT,
      engine: {
        workers: 8,
        graceMs: 500,
        sweepMs: options.bug === 'wake' ? NEVER_MS : SWEEP_MS,
        leaseMs: LEASE_MS,
        ...(options.bug === 'epoch' ? { create: withoutEpochs(stage.server) } : {}),
      },
    })
  }

  get isReachable(): boolean {
    const { now } = this.stage.world
    return !this.isDead && this.asleepUntil <= now && this.cut.there <= now && this.cut.back <= now
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const { world } = this.stage
    if (signal === undefined) return world.sleep(ms, this)
    return new Promise((resolve, reject) => {
      const stop = () => reject(signal.reason)
      if (signal.aborted) return stop()
      signal.addEventListener('abort', stop, { once: true })
      world.at(world.now + ms, this, resolve)
    })
  }

  /** Another process has committed. */
  hear(commit: Commit): void {
    if (commit.rootId === null) return
    const runnable = commit.wakes.some(({ at }) => at === null)
    const stop = commit.turns.some(({ cancel, state }) => cancel !== null && state !== 'ended')
    const ended = commit.turns.filter(({ state }) => state === 'ended').map(({ id }) => id)
    if (!runnable && !stop && ended.length === 0) return
    this.hearLater({ rootId: commit.rootId, runnable, isLeft: false, stop, ended })
  }

  /** Another process leaves work to whoever can do it. */
  hearLeft(rootId: Id): void {
    this.hearLater({ rootId, runnable: true, isLeft: true, stop: false, ended: [] })
  }

  private hearLater(change: StoreChange): void {
    const { world } = this.stage
    if (this.options.bug === 'wake' || this.isLost('back')) return
    world.at(world.now + this.delay(), this, () => {
      for (const changed of this.watchers) changed(change)
    })
  }

  /** Watch may be lost: it also asks each second whether others have written. */
  private poll(seen: number): void {
    const { world, server } = this.stage
    world.at(world.now + POLL_MS, this, () => {
      this.call(() => server.commits - server.commitsOf(this)).then(
        (commits) => {
          if (commits !== seen) for (const changed of this.watchers) changed(null)
          this.poll(commits)
        },
        () => this.poll(seen),
      )
    })
  }

  private clock(): Clock {
    const { world } = this.stage
    const { skew } = this.options
    return {
      now: () => world.now + skew,
      at: (time, run) => world.at(Number.isNaN(time) ? world.now : time - skew, this, run),
    }
  }

  private scheduler(): Scheduler {
    const { world } = this.stage
    return {
      defer: (run) => {
        world.at(world.now, this, run)
      },
      pause: (ms) => world.sleep(ms, this),
      random: () => world.chance.below(2 ** 32),
    }
  }

  private delay(): number {
    const { chance } = this.stage.world
    const { delayMs } = this.options
    // Now and then a message is late, so that others overtake it.
    return chance.is(0.03) ? delayMs + chance.below(800) : Math.ceil(delayMs * chance.next())
  }

  private isLost(way: 'there' | 'back'): boolean {
    const { world } = this.stage
    return this.cut[way] > world.now || (this.isBadlyConnected && world.chance.is(this.options.loss))
  }

  /** Asks the server to do something. Rejects with AnswerLost where no answer comes: it may have been done. */
  private call<T>(work: () => T, isCommit = false): Promise<T> {
    const { world } = this.stage
    const lost = (what: Happening) => {
      if (isCommit) world.happened.add(what)
    }
    return new Promise((resolve, reject) => {
      const giveUp = () => world.at(world.now + TIMEOUT_MS, this, () => reject(new AnswerLost('no answer came')))
      if (this.isLost('there')) {
        lost('lost request')
        giveUp()
        return
      }
      world.at(world.now + this.delay(), null, () => {
        // What the answer sets off is the work of this process.
        world.entered(this)
        const done = attempt(work)
        if (this.isLost('back')) {
          lost('lost answer')
          giveUp()
          return
        }
        const tell = () => ('error' in done ? reject(done.error) : resolve(done.value))
        if (this.asleepUntil <= world.now && world.chance.is(0.7)) tell()
        else world.at(world.now + this.delay(), this, tell)
      })
      if (world.chance.is(this.options.twice))
        world.at(world.now + world.chance.below(1_000), null, () => attempt(work))
    })
  }

  /** Reading may be repeated: it is, for some time. `instant`: how likely the answer takes no time that would matter. */
  private async read<T>(work: () => T, instant = 0.6): Promise<T> {
    if (this.isReachable && this.stage.world.chance.is(instant)) return work()
    for (let tries = 1; ; tries++) {
      try {
        return await this.call(work)
      } catch (error) {
        if (!(error instanceof AnswerLost)) throw error
        if (tries >= 5) throw new StoreError('store_busy', 'The server does not answer.')
      }
    }
  }

  private transport(): Transport {
    const { server, processes } = this.stage
    return {
      send: async (commit, { seen }) => {
        const head = await this.call(() => {
          const stored = server.commit(this.options.bug === 'answer' ? renamed(commit) : commit, seen, this)
          for (const other of processes) if (other !== this && !other.isDead) other.hear(commit)
          return stored
        }, true)
        if (this.options.bug !== 'answer') server.acknowledge(commit, head)
        return head
      },
      head: (id) => this.read(() => server.headOf(id)),
      load: (rootId, most) => this.read(() => server.load(rootId, most)),
      newer: (rootId, since) => this.read(() => server.newer(rootId, since)),
      find: (rootId, wanted) => this.read(() => server.find(rootId, wanted)),
      bodies: (rootId, hashes) => this.read(() => server.bodies(rootId, hashes)),
      listen: (_heard: (notice: TreeNotice) => void) => () => undefined,
    }
  }

  private store(): Store {
    const { server, world } = this.stage
    const scan: Scan = (name, asked) => this.read(() => (server.store[name] as Ask)(...asked), INSTANT_SCANS)
    return Object.assign(new Scans(scan), {
      name: 'simulated',
      shared: true,
      tree: (rootId: Id) => this.checked(rootId, () => this.trees.tree(rootId)),
      near: (rootId: Id) => this.checked(rootId, () => this.trees.near(rootId)),
      known: (rootId: Id, isNew?: boolean) => this.trees.unchecked(rootId, isNew),
      notOpen: (ids: readonly Id[]) =>
        this.read(() => ids.filter((id) => (server.store.turn(id)?.state ?? 'ended') === 'ended'), INSTANT_SCANS),
      commit: (commit: Commit) => this.trees.commit(onThisMachine(commit, this.name)),
      ...(this.options.bug === 'lease' ? {} : { now: () => this.read(() => world.now, INSTANT_SCANS) }),
      registry: server.store.registry,
      watch: (changed: (change: StoreChange | null) => void) => {
        if (this.watchers.size === 0 && this.options.bug !== 'wake') this.poll(0)
        this.watchers.add(changed)
        return () => this.watchers.delete(changed)
      },
      leave: (rootId: Id) => {
        for (const other of this.stage.processes) if (other !== this && !other.isDead) other.hearLeft(rootId)
      },
      close: async () => undefined,
    }) as unknown as Store
  }

  /** Law: a read shows every commit that anybody knew to be stored before it began. */
  private async checked(rootId: Id, read: () => Promise<TreeReader>): Promise<TreeReader> {
    const { server, world } = this.stage
    const known = server.trees.get(rootId)?.acknowledged ?? 0
    const own = this.options.bug === 'replica' ? this.trees.known(rootId)?.near : undefined
    const reader = own ?? (await read())
    const seen = this.trees.known(rootId)?.head?.n ?? 0
    if (seen < known) world.fail(`a read shows ${seen} commits of a tree; ${known} were acknowledged before it`)
    return reader
  }
}

type Ask = (...asked: never[]) => unknown
type Scan = (name: (typeof SCANS)[number], asked: never[]) => Promise<unknown>

/** The scans of a store. They stand in the prototype, since every seed makes several stores. */
class Scans {
  readonly scan: Scan

  constructor(scan: Scan) {
    this.scan = scan
  }
}

for (const name of SCANS) {
  Object.defineProperty(Scans.prototype, name, {
    value(this: Scans, ...asked: never[]) {
      return this.scan(name, asked)
    },
  })
}

const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

type Attempted<T> = { readonly value: T } | { readonly error: unknown }

function attempt<T>(work: () => T): Attempted<T> {
  try {
    return { value: work() }
  } catch (error) {
    return { error }
  }
}

let renames = 0

/** A commit that cannot be recognised when it comes a second time. */
function renamed(commit: Commit): Commit {
  return { ...commit, id: `${commit.id}/${renames++}` }
}

/** All simulated machines are this one: their rows must not say so, or nobody would ever be taken for dead. */
function onThisMachine(commit: Commit, name: string): Commit {
  if (commit.engines.length === 0) return commit
  return { ...commit, engines: commit.engines.map((engine) => ({ ...engine, bootId: name })) }
}

/** Makes an engine whose nodes write under whatever claim the rows hold: nobody checks the epoch. */
function withoutEpochs({ store }: SimServer): EngineFactory {
  return (ledger, options) => {
    const engine = localEngine(ledger, options)
    const loose = (work: Work): Work =>
      new Proxy(work, { get: (target, name) => (name === 'claim' ? stolen(store, work) : bound(target, name)) })
    const start = (execute: Executor) => engine.start((node, work) => execute(node, loose(work)))
    return new Proxy(engine, { get: (target, name) => (name === 'start' ? start : bound(target, name)) })
  }
}

function stolen(store: LocalStore, { claim }: Work): Work['claim'] {
  const { engineId = null, epoch = 0 } = store.node(claim.nodeId) ?? {}
  return engineId === null ? claim : { ...claim, engineId, epoch }
}

function bound(target: Engine | Work, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name)
  return typeof value === 'function' ? value.bind(target) : value
}
