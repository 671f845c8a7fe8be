// The laws that every engine must keep, whatever wakes it: timers of this process, a queue, or another server.
//
// Called by: whoever implements the Engine port, with the `test` function of any test runner.
//
// Must stay true:
// - A law needs nothing but the port and rows: the same laws judge the local engine and an adapter.
// - "Another process" is a second ledger on the same store that runs nothing and tells the engine nothing.

import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../core/base/clock.ts'
import { freshId } from '../../core/base/id.ts'
import type { Later } from '../../core/base/maybe.ts'
import { code, type OptionRules, readOptions, text } from '../../core/base/options.ts'
import type { Engine, EngineFactory, Executor, Work } from '../../core/engine/engine.ts'
import { localEngine } from '../../core/engine/local.ts'
import { type EngineRow, emptyCommit } from '../../core/graph/commit.ts'
import type { Draft } from '../../core/graph/draft.ts'
import { withKinds } from '../../core/graph/kinds.ts'
import { DEFAULT_LIMITS } from '../../core/graph/limits.ts'
import type { Id, Node, Turn } from '../../core/graph/rows.ts'
import { endTurns } from '../../core/rules/settle/end-turns.ts'
import { tellChanges } from '../../core/rules/settle/told.ts'
import { planCancel } from '../../core/rules/turn/cancel.ts'
import type { Claim } from '../../core/rules/turn/claim.ts'
import { planResult, planRetry } from '../../core/rules/turn/result.ts'
import { planSay } from '../../core/rules/turn/say.ts'
import { Ledger } from '../../core/store/ledger.ts'
import { memoryStore } from '../../core/store/memory/index.ts'
import type { Store } from '../../core/store/store.ts'

export interface EngineConformance {
  /** The name shown before every law. */
  readonly name: string
  /** Makes the engine, as `createRuntime({ engine: { create } })` would. Default: the local one, woken as its store does. */
  readonly create?: EngineFactory
  /** Opens the store that the engine works on. Default: a memory store. */
  readonly open?: () => Later<Store>
  /** The `test` function of any test runner. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
}

const CONFORMANCE: OptionRules<EngineConformance> = { name: text, create: code, open: code, test: code }

/** Registers one test for each law that every engine must keep. */
export function engineConformance(suite: EngineConformance): void {
  const {
    name,
    create = localEngine,
    open = memoryStore,
    test,
  } = readOptions('engineConformance()', suite, CONFORMANCE)
  for (const [sentence, check] of LAWS) {
    test(`${name}: ${sentence}`, async () => {
      const world = new EngineWorld(await open(), create)
      try {
        await check(world)
      } finally {
        await world.close()
      }
    })
  }
}

type EngineLaw = readonly [sentence: string, check: (world: EngineWorld) => Promise<void>]

const SWEEP_MS = 100
const GRACE_MS = 300
const LEASE_MS = 3_000
/** The most that a law allows for something that need not wait. */
const SOON_MS = 2_000

/** A store, the engine under test, and another process beside it. */
class EngineWorld {
  readonly store: Store
  /** The nodes that began, in order. */
  readonly begun: { readonly node: Node; readonly work: Work; readonly at: number }[] = []
  /** The work of a node. Default: it ends at once. */
  execute: (node: Node, work: Work) => Promise<void> = (node, work) => this.end(node, work.claim)
  /** The name of an agent that the engine is told to leave to others. */
  left: string | null = null
  private readonly engine: Engine
  private readonly own: Ledger
  private readonly other: Ledger
  private readonly reported: unknown[] = []

  constructor(store: Store, create: EngineFactory) {
    this.store = store
    this.own = this.ledger({
      claims: (now) => this.engine.claims(now),
      committed: (commit, draft) => this.engine.committed(commit, draft),
    })
    this.other = this.ledger({ claims: () => null, committed: () => undefined })
    this.engine = create(this.own, {
      workers: 2,
      graceMs: GRACE_MS,
      sweepMs: SWEEP_MS,
      leaseMs: LEASE_MS,
      firstWordMs: 60_000,
      stalledMs: 60_000,
      agents: new Set(['', 'worker']),
      kinds: new Set(['agent_message']),
      mayRun: ({ name }) => name !== this.left,
      beforeNode: () => undefined,
      swept: () => undefined,
      report: (error) => this.reported.push(error),
    })
  }

  async start(): Promise<void> {
    const executor: Executor = (node, work) => {
      this.begun.push({ node, work, at: Date.now() })
      return this.execute(node, work)
    }
    await this.engine.start(executor)
  }

  stop(): Promise<void> {
    return this.engine.stop()
  }

  takeUp(rootId?: Id): Promise<void> {
    return this.engine.takeUp(rootId)
  }

  /** Starts a turn with one node that can run, by this process or by another. */
  async say(by: 'this process' | 'another', agent = 'worker'): Promise<Turn> {
    const [conversationId, turnId, ...nodeIds] = [1, 2, 3, 4].map(() => freshId(Date.now())) as [Id, Id, Id, Id]
    const conversation = { id: conversationId, agent: { name: agent, hash: 'h' }, ceiling: [] }
    const request = {
      turnId,
      nodeIds,
      input: 'go',
      content: 'go',
      briefing: null,
      limits: DEFAULT_LIMITS,
      deadline: null,
      money: null,
      mayStart: true,
      ceiling: [],
    }
    const ledger = by === 'another' ? this.other : this.own
    return ledger.commit({
      kind: 'say',
      rootId: conversationId,
      plan: (draft) => planSay(draft, conversation, request),
    })
  }

  async node({ rootId, entryNodeId }: Turn): Promise<Node> {
    const node = (await this.store.tree(rootId)).node(entryNodeId)
    if (node === undefined) throw new Error(`there is no node ${entryNodeId}`)
    return node
  }

  async end({ rootId }: Pick<Node, 'rootId'>, claim: Claim): Promise<void> {
    const plan = (draft: Draft) => planResult(draft, claim, { state: 'finished', output: { content: 'done' } })
    await this.own.commit({ kind: 'result', rootId, plan })
  }

  async retryAt({ rootId }: Node, claim: Claim, wakeAt: number): Promise<void> {
    const plan = (draft: Draft) => planRetry(draft, claim, { error: 'not now', wakeAt })
    await this.own.commit({ kind: 'retry', rootId, plan })
  }

  async cancel({ id, rootId }: Turn, by: 'this process' | 'another'): Promise<void> {
    const ledger = by === 'another' ? this.other : this.own
    const plan = (draft: Draft) => planCancel(draft, id, { cause: 'cancelled', reason: null })
    await ledger.commit({ kind: 'cancel', rootId, plan })
  }

  /** Claims the node of a turn in the name of a process that died long ago. */
  async claimForDead(turn: Turn): Promise<void> {
    const row: EngineRow = {
      id: freshId(1),
      version: 1,
      bootId: '',
      pid: 1,
      processStart: '',
      leaseUntil: 1,
      agents: null,
    }
    await this.store.commit({ ...emptyCommit('lease', 1, null), engines: [row] })
    await this.other.commit({
      kind: 'claim',
      rootId: turn.rootId,
      plan: (draft) =>
        draft.changeNode(draft.node(turn.entryNodeId), { state: 'running', engineId: row.id, epoch: 1, startedAt: 1 }),
    })
  }

  times(turn: Turn): number {
    return this.begun.filter(({ node }) => node.id === turn.entryNodeId).length
  }

  async close(): Promise<void> {
    await this.engine.stop()
    await this.store.close()
    if (this.reported.length > 0) throw new Error('the engine reported an error', { cause: this.reported[0] })
  }

  private ledger(heard: Pick<Ledger['listener'], 'claims' | 'committed'>): Ledger {
    const listener = { ...heard, mayWait: () => false }
    const ledger = new Ledger({ store: this.store, clock: systemClock, kinds: withKinds({}), listener })
    ledger.endTurns = endTurns
    ledger.tellChanges = tellChanges
    return ledger
  }
}

const LAWS: readonly EngineLaw[] = [
  [
    'runs a node that a commit of this process makes runnable, once, under its own claim',
    async (world) => {
      await world.start()
      const turn = await world.say('this process')
      await until('the node has ended', async () => (await world.node(turn)).endedAt !== null)
      same('runs', world.times(turn), 1)
    },
  ],
  [
    'a wake of a node that has ended does nothing',
    async (world) => {
      await world.start()
      const turn = await world.say('this process')
      await until('the node has ended', async () => (await world.node(turn)).endedAt !== null)
      await world.takeUp(turn.rootId)
      await sleep(SWEEP_MS)
      same('runs', world.times(turn), 1)
    },
  ],
  [
    'two wakes at once run a node once',
    async (world) => {
      await world.start()
      const turn = await world.say('another')
      await Promise.all([world.takeUp(turn.rootId), world.takeUp(turn.rootId), world.takeUp()])
      await until('the node has ended', async () => (await world.node(turn)).endedAt !== null)
      same('runs', world.times(turn), 1)
    },
  ],
  [
    'a wake that comes before its commit does no harm, and the node is run after it',
    async (world) => {
      await world.start()
      await world.takeUp(freshId(Date.now()))
      const turn = await world.say('another')
      await world.takeUp(turn.rootId)
      await until('the node has ended', async () => (await world.node(turn)).endedAt !== null)
    },
  ],
  [
    'a wake that is lost is found by the sweep',
    async (world) => {
      await world.start()
      const turn = await world.say('another')
      await until('the node has ended', async () => (await world.node(turn)).endedAt !== null)
    },
  ],
  [
    'a moment that is due is met, and never early',
    async (world) => {
      let wakeAt = 0
      world.execute = (node, work) => {
        if (node.attempt > 1) return world.end(node, work.claim)
        wakeAt = Date.now() + 400
        return world.retryAt(node, work.claim, wakeAt)
      }
      await world.start()
      const turn = await world.say('this process')
      await until('the second attempt has ended', async () => (await world.node(turn)).endedAt !== null)
      const second = world.begun.find(({ node }) => node.attempt === 2)?.at ?? 0
      if (second < wakeAt) throw new Error(`the node ran ${wakeAt - second} ms early`)
      if (second > wakeAt + SOON_MS) throw new Error(`the node ran ${second - wakeAt} ms late`)
    },
  ],
  [
    'cancelling reaches a running node: at once in its own process, soon from another',
    async (world) => {
      for (const by of ['this process', 'another'] as const) {
        world.execute = untilStopped(world)
        await world.start()
        const turn = await world.say('this process')
        await until('the node runs', async () => world.times(turn) === 1)
        await world.cancel(turn, by)
        const asked = Date.now()
        await until('the node is asked to stop', async () => world.begun.at(-1)?.work.stopCause === 'cancel')
        const took = Date.now() - asked
        await until('the node has ended', async () => (await world.node(turn)).endedAt !== null)
        if (by === 'this process' && took > 200) throw new Error(`it took ${took} ms`)
      }
    },
  ],
  [
    'a cancelled node that does not stop loses its claim after the grace',
    async (world) => {
      world.execute = () => new Promise(() => undefined)
      await world.start()
      const turn = await world.say('this process')
      await until('the node runs', async () => world.times(turn) === 1)
      await world.cancel(turn, 'another')
      await until('the node has ended', async () => (await world.node(turn)).endedAt !== null)
    },
  ],
  [
    'stopping gives claims back, so that others continue',
    async (world) => {
      world.execute = untilStopped(world)
      await world.start()
      const turn = await world.say('this process')
      await until('the node runs', async () => world.times(turn) === 1)
      await world.stop()
      const { state, engineId } = await world.node(turn)
      same('the node', [state, engineId], ['pending', null])
    },
  ],
  [
    'a result under an older claim changes nothing but an event',
    async (world) => {
      await world.start()
      const turn = await world.say('this process')
      await until('the node has ended', async () => (await world.node(turn)).endedAt !== null)
      const before = await world.node(turn)
      await world.end(turn, { nodeId: turn.entryNodeId, rootId: turn.rootId, engineId: 'another', epoch: 0 })
      same('the node', await world.node(turn), before)
    },
  ],
  [
    'the claim of a process that died is taken over, and its node runs again',
    async (world) => {
      const turn = await world.say('another')
      await world.claimForDead(turn)
      await world.start()
      await until('the node has ended', async () => (await world.node(turn)).endedAt !== null)
      const { epoch } = await world.node(turn)
      if (epoch < 2) throw new Error(`the node ended under epoch ${epoch}`)
    },
  ],
  [
    'nothing runs whose code is not here',
    async (world) => {
      await world.start()
      const turns = [await world.say('this process', 'stranger'), await world.say('another', 'stranger')]
      for (const turn of turns) await world.takeUp(turn.rootId)
      await sleep(3 * SWEEP_MS)
      for (const turn of turns) same('the node', (await world.node(turn)).state, 'pending')
    },
  ],
  [
    'nothing runs that is left to others, and it runs when that is over',
    async (world) => {
      world.left = 'worker'
      await world.start()
      const turns = [await world.say('this process'), await world.say('another')]
      for (const turn of turns) await world.takeUp(turn.rootId)
      await sleep(3 * SWEEP_MS)
      for (const turn of turns) same('the node', (await world.node(turn)).state, 'pending')
      world.left = null
      for (const turn of turns) await until('it has ended', async () => (await world.node(turn)).endedAt !== null)
    },
  ],
  [
    'no more nodes run at once than there are workers, and all of them run',
    async (world) => {
      let running = 0
      let most = 0
      world.execute = async (node, work) => {
        most = Math.max(most, ++running)
        await sleep(40)
        running--
        await world.end(node, work.claim)
      }
      await world.start()
      const turns = await Promise.all(Array.from({ length: 12 }, () => world.say('this process')))
      for (const turn of turns) await until('all have ended', async () => (await world.node(turn)).endedAt !== null)
      same('most at once', most, 2)
    },
  ],
]

/** Work that ends when it is asked to stop, with its claim where it still may write. */
function untilStopped(world: EngineWorld): EngineWorld['execute'] {
  return async (node, work) => {
    await new Promise((resolve) => work.signal.addEventListener('abort', resolve, { once: true }))
    if (work.stopCause === 'cancel') await world.end(node, work.claim)
  }
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + SOON_MS + LEASE_MS; !(await isSo()); await sleep(5)) {
    if (Date.now() > end) throw new Error(`${what}: this did not happen in time`)
  }
}

function same(what: string, found: unknown, wanted: unknown): void {
  const [a, b] = [found, wanted].map((value) => JSON.stringify(value))
  if (a !== b) throw new Error(`${what}: ${a} instead of ${b}`)
}
