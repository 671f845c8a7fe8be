import fc from 'fast-check'
import { agent, createRuntime, type Id, type Runtime } from 'legate'
import type { Node } from 'legate/rows'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import type { EdgeType } from '../../src/core/graph/rows.ts'
import type { Mutation } from '../../src/core/rules/history/mutate.ts'
import type { LocalStore } from '../../src/core/store/store.ts'
import { talkOf } from '../support/agents.ts'
import { type Rows, stores } from '../support/stores.ts'

const RUNS = process.env['LEGATE_FULL'] === '1' ? 20_000 : 100
const TIMEOUT_MS = 3_600_000

/** What a node does: it finishes, fails, is asked for and allowed or denied, or speaks. */
type Part = 'finishes' | 'fails' | 'allowed' | 'denied' | 'speaks' | 'said'

interface Plan {
  readonly parts: readonly Part[]
  /** Between places in `parts`; from the lower place to the higher, in the order `made` says. */
  readonly edges: readonly (readonly [a: number, b: number, type: EdgeType])[]
  /** The order in which the nodes are made: edges run forwards and backwards. */
  readonly made: readonly number[]
  /** Nodes that are put in while the turn runs, each behind one that is there. */
  readonly later: readonly (readonly [part: Part, behind: number, type: EdgeType])[]
  /** Cancelled when this many nodes have run; null for never. */
  readonly cancelAfter: number | null
  readonly workers: number
  readonly processes: number
}

const edgeType = fc.constantFrom<EdgeType>('sequence', 'dependency', 'branch')
const work = fc.constantFrom<Part>('finishes', 'finishes', 'fails', 'allowed', 'denied', 'speaks')
const part = fc.oneof({ arbitrary: work, weight: 6 }, fc.constant<Part>('said'))

const plans: fc.Arbitrary<Plan> = fc.integer({ min: 1, max: 8 }).chain((size) =>
  fc.record({
    parts: fc.array(part, { minLength: size, maxLength: size }),
    edges: fc.array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1), edgeType), { maxLength: size * 2 }),
    made: fc.shuffledSubarray(
      Array.from({ length: size }, (_, n) => n),
      { minLength: size },
    ),
    later: fc.array(fc.tuple(work, fc.nat(size - 1), edgeType), { maxLength: 3 }),
    cancelAfter: fc.option(fc.nat(size), { freq: 4 }),
    workers: fc.integer({ min: 1, max: 4 }),
    processes: fc.integer({ min: 1, max: 2 }),
  }),
)

describe.each(stores)('any small graph on %s', (name, create) => {
  test(
    'ends whole: every node ends, none runs too early or twice, counters are right after each commit',
    async () => {
      // Rows in memory are new for each graph; a file has a hundred of them, each a tree of its own.
      const perRows = name === 'sqlite' ? 100 : 1
      let rows = create()
      let graphs = 0
      const check = fc.asyncProperty(plans, async (plan) => {
        if (graphs++ % perRows === 0) {
          await rows.drop()
          rows = create()
        }
        await new Trial(plan, rows).run()
        // Where all is answered at once no time passes, and what is to be heard of it would wait for ever.
        await new Promise(setImmediate)
      })

      await fc.assert(check, { numRuns: name === 'sqlite' ? RUNS / 10 : RUNS })

      await rows.drop()
    },
    TIMEOUT_MS,
  )
})

test('the rules that are checked would notice a wrong counter', () => {
  const broken = { edgesTo: () => [{ from: 'a', to: 'b', type: 'sequence' }], node: () => ({ endedAt: null }) }

  expect(() =>
    checkBlockers(broken as unknown as LocalStore, { id: 'b', state: 'pending', blockers: 0 } as Node),
  ).toThrow()
})

const TALKER = agent({ name: 'talker', instructions: '', model: scriptedModel(() => 'ok') })

class Trial {
  private readonly plan: Plan
  private readonly store: LocalStore
  private readonly runtime: Runtime
  private readonly others: readonly Runtime[]
  private readonly ids: Id[] = []
  private readonly ran: Id[] = []
  private readonly wrong: unknown[] = []
  private turnId = ''
  private cancelled: Promise<void> | undefined

  constructor(plan: Plan, rows: Rows) {
    this.plan = plan
    this.store = this.checked(rows.open())
    this.runtime = this.open(this.store)
    this.others = Array.from({ length: plan.processes - 1 }, () => this.open(this.checked(rows.open())))
  }

  private checked(store: LocalStore): LocalStore {
    return {
      ...store,
      commit: (commit) => {
        const stored = store.commit(commit)
        const isOurs = commit.turns.some(({ id }) => id === this.turnId)
        const check = () => (isOurs ? this.note(() => this.checkTurn(this.turnId)) : undefined)
        return stored instanceof Promise ? stored.then(check) : check()
      },
    }
  }

  private open(store: LocalStore): Runtime {
    return createRuntime({
      store,
      agents: [TALKER],
      kinds: {
        finishes: { execute: (node) => this.work(node) },
        fails: {
          execute: (node) => {
            this.work(node)
            throw new Error('it fails')
          },
        },
      },
      engine: { workers: this.plan.workers, sweepMs: 20 },
    })
  }

  async run(): Promise<void> {
    for (const other of this.others) await other.resume()
    const talk = await talkOf(this.runtime, TALKER)
    const turnId = await talk.mutate((m) => {
      this.turnId = m.runId
      this.put(m)
      return m.runId
    })
    for (const [part, behind, type] of this.plan.later) {
      await talk.mutate((m) => this.putOne(m, part, { behind, type }), { runId: turnId }).catch(ignoreEnded)
    }
    await this.answerAll(turnId)
    const outcome = await (await this.runtime.attach(turnId)).result
    await this.cancelled
    this.note(() => this.checkTurn(turnId))
    this.note(() => expect(this.store.openNodes(turnId)).toEqual([]))
    await Promise.all([this.runtime, ...this.others].map((runtime) => runtime.close()))

    expect(this.wrong).toEqual([])
    expect(new Set(this.ran).size).toBe(this.ran.length)
    if (outcome.status === 'completed') expect(outcome.text).toBe('ok')
    if (this.plan.cancelAfter === null) expect(['completed', 'failed', 'denied']).toContain(outcome.status)
  }

  private put(m: Mutation): void {
    this.ids.length = 0
    for (const place of this.plan.made) this.ids[place] = this.create(m, this.plan.parts[place] ?? 'finishes')
    for (const [a, b, type] of this.plan.edges) {
      if (a !== b) this.join(m, Math.min(a, b), { to: Math.max(a, b), type })
    }
  }

  private putOne(m: Mutation, part: Part, { behind, type }: { behind: number; type: EdgeType }): void {
    const id = this.create(m, part)
    m.createEdge(this.ids[behind] ?? '', id, type)
  }

  private create(m: Mutation, part: Part): Id {
    if (part === 'said') return m.createNode({ kind: 'user_message', content: 'hello' }).id
    if (part === 'speaks') return m.createNode({ kind: 'agent_message' }).id
    if (part === 'fails' || part === 'finishes') return m.createNode({ kind: part }).id
    return m.createNode({ kind: 'finishes', state: 'awaiting_approval', metadata: { allow: part === 'allowed' } }).id
  }

  /** What has already been said cannot be held back: such an edge is refused, and that is right. */
  private join(m: Mutation, from: number, { to, type }: { to: number; type: EdgeType }): void {
    const isSaid = this.plan.parts[to] === 'said'
    if (!isSaid || this.plan.parts[from] === 'said') m.createEdge(this.ids[from] ?? '', this.ids[to] ?? '', type)
  }

  private async answerAll(turnId: Id): Promise<void> {
    for (;;) {
      const asked = this.store.openNodes(turnId).find(({ state }) => state === 'awaiting_approval')
      if (asked === undefined) return
      await this.runtime.answer(asked.id, { allow: asked.metadata['allow'] === true }).catch(ignoreEnded)
    }
  }

  private work(node: Node): string {
    this.ran.push(node.id)
    this.note(() => this.checkAllowed(node))
    if (this.ran.length === this.plan.cancelAfter) this.cancelled = this.runtime.cancel(this.turnId)
    return 'done'
  }

  private checkAllowed(node: Node): void {
    for (const { from, type } of this.store.edgesTo(node.id)) {
      const before = this.store.node(from)
      if (type !== 'branch') expect(before?.endedAt).not.toBeNull()
      if (type === 'dependency') expect(before?.state).toBe('finished')
    }
  }

  private checkTurn(turnId: Id): void {
    for (const node of this.store.nodesOf(turnId)) checkBlockers(this.store, node)
    const turn = this.store.turn(turnId)
    if (turn?.state !== 'ended') return
    expect(turn.outcome).not.toBeNull()
    expect(this.store.openNodes(turnId)).toEqual([])
  }

  /** A commit must not fail because a check does: what is wrong is told at the end. */
  private note(check: () => void): void {
    try {
      check()
    } catch (error) {
      this.wrong.push(error)
    }
  }
}

/** A node that has not begun counts the edges that hold it back, and none of them can hold it for ever. */
function checkBlockers(store: LocalStore, node: Node): void {
  if (node.state !== 'pending' && node.state !== 'awaiting_approval') return
  let blockers = 0
  for (const { from, type } of store.edgesTo(node.id)) {
    if (type === 'branch') continue
    const before = store.node(from)
    if (before?.endedAt === null) blockers++
    else if (type === 'dependency') expect(before?.state).toBe('finished')
  }
  expect(node.blockers).toBe(blockers)
}

function ignoreEnded(error: unknown): void {
  const message = error instanceof Error ? error.message : ''
  if (!/no running turn|asked to stop|does not await approval/.test(message)) throw error
}
