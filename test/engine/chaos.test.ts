import fc from 'fast-check'
import { type AnyAgent, agent, type SubagentConfig, type Tools } from 'legate'
import type { ModelRequest } from 'legate/models'
import { readTrees, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { brokenGraph } from '../../src/testing/crash/aftermath.ts'
import { simpleTool } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { type Process, startProcess } from '../support/process.ts'
import { expectAnswered } from '../support/requests.ts'
import { eventsOf, nodesOfTree, tasksOf, turnsOfTree } from '../support/rows.ts'
import { type Rows, stores } from '../support/stores.ts'

const RUNS = process.env['LEGATE_FULL'] === '1' ? 2_000 : 60
const TIMEOUT_MS = 3_600_000

/** What an agent asks for in its one message before it answers. */
type Step =
  | { readonly does: 'pure' | 'effectful' | 'fails' | 'unknown' }
  | { readonly does: 'parked' | 'flaky' | 'called' | 'called once'; readonly child: Plan }

type Plan = readonly Step[]

interface Life {
  /** It dies at this commit. */
  readonly commits: number
  readonly isWritten: boolean
}

interface Trouble {
  readonly plan: Plan
  readonly lives: readonly Life[]
  /** Cancelled when this many of the lives are over; null for never. */
  readonly cancelAfter: number | null
  readonly workers: number
  readonly concurrency: number
  /** Parked children of an agent are one after the other. */
  readonly isKeyed: boolean
  readonly tree: number | null
}

const { plan } = fc.letrec<{ plan: Plan; step: Step }>((tie) => ({
  plan: fc.array(tie('step'), { maxLength: 3 }),
  step: fc.oneof(
    { depthSize: 'small', maxDepth: 3, withCrossShrink: true },
    fc.record({ does: fc.constantFrom('pure', 'effectful', 'fails', 'unknown') }),
    fc.record({ does: fc.constantFrom('parked', 'flaky', 'called', 'called once'), child: tie('plan') }),
  ) as fc.Arbitrary<Step>,
}))

const troubles: fc.Arbitrary<Trouble> = fc.record({
  plan,
  lives: fc.array(fc.record({ commits: fc.integer({ min: 1, max: 20 }), isWritten: fc.boolean() }), { maxLength: 3 }),
  cancelAfter: fc.option(fc.nat(3), { freq: 3 }),
  workers: fc.integer({ min: 1, max: 4 }),
  concurrency: fc.integer({ min: 1, max: 3 }),
  isKeyed: fc.boolean(),
  tree: fc.option(fc.integer({ min: 1, max: 2 })),
})

describe.each(stores)('any tree of agents whose processes die, on %s', (name, create) => {
  test(
    'ends whole: one outcome, no effect twice, no child twice, what was spent counted once',
    async () => {
      const check = fc.asyncProperty(troubles, async (trouble) => {
        const rows = create()
        await new Chaos(trouble, rows).run()
        await rows.drop()
      })

      await fc.assert(check, { numRuns: name === 'sqlite' ? RUNS / 10 : RUNS })
    },
    TIMEOUT_MS,
  )
})

class Chaos {
  private readonly trouble: Trouble
  private readonly rows: Rows
  private readonly store: LocalStore
  private readonly root: ReturnType<Chaos['build']>
  private readonly requests: ModelRequest[] = []
  /** How often each effectful call ran. */
  private readonly effects = new Map<string, number>()
  /** Flaky agents that have failed once. */
  private readonly failed = new Set<string>()

  constructor(trouble: Trouble, rows: Rows) {
    this.trouble = trouble
    this.rows = rows
    this.store = rows.open()
    this.root = this.build(trouble.plan, 'agent')
  }

  async run(): Promise<void> {
    const runId = await this.live()
    if (runId === undefined) return
    const last = this.start()
    if (this.trouble.cancelAfter !== null) await last.runtime.cancel(runId)
    await last.runtime.resume()
    const outcome = await (await last.runtime.attach(runId)).result
    await last.runtime.close()

    expect(last.errors).toEqual([])
    expect(outcome.status).toBe(this.store.turn(runId)?.cancel ? 'cancelled' : 'completed')
    this.checkRows(runId)
    this.checkStanding()
    this.checkEvents(runId)
    for (const request of this.requests) expectAnswered(request)
    for (const times of this.effects.values()) expect(times).toBe(1)
  }

  /** The lives that end badly; gives the run if it was ever recorded. */
  private async live(): Promise<string | undefined> {
    let runId: string | undefined
    for (const [index, life] of this.trouble.lives.entries()) {
      const { process, over } = this.startDoomed(life)
      if (runId === undefined) {
        const run = process.runtime.run(this.root, 'go')
        await Promise.race([over, run.result.catch(() => undefined)])
        runId = this.store.turn(run.id)?.id
      } else {
        if (index === this.trouble.cancelAfter) await Promise.race([over, process.runtime.cancel(runId)])
        const resumed = process.runtime.resume().then((runs) => Promise.all(runs.map(({ result }) => result)))
        await Promise.race([over, resumed.catch(() => undefined)])
      }
      await process.kill()
      this.checkStanding()
    }
    if (runId !== undefined || this.trouble.lives.length > 0) return runId
    const process = this.start()
    const run = process.runtime.run(this.root, 'go')
    await run.result
    await process.runtime.close()
    return run.id
  }

  private start(store: (store: LocalStore) => LocalStore = (store) => store): Process {
    return startProcess(this.rows, { agents: [this.root], store, engine: { workers: this.trouble.workers } })
  }

  private startDoomed({ commits, isWritten }: Life): { process: Process; over: Promise<void> } {
    const dead = makeGate()
    let left = commits
    const die = async (written: void | Promise<void>) => {
      await written
      dead.open()
      await makeGate().opened
    }
    const process = this.start((store) => ({
      ...store,
      commit: (step) => {
        if (--left > 0) return store.commit(step)
        return die(left === 0 && isWritten ? store.commit(step) : undefined)
      },
    }))
    return { process, over: dead.opened }
  }

  private build(plan: Plan, name: string, does: Step['does'] = 'parked'): AnyAgent & ReturnType<typeof agent> {
    const children = plan.map((step, at) =>
      'child' in step ? this.build(step.child, `${name}_${at}`, step.does) : null,
    )
    const tools: Record<string, Tools[string]> = {}
    const subagents: Record<string, SubagentConfig> = {}
    const { isKeyed, tree, concurrency } = this.trouble
    const settings = isKeyed ? { concurrency: 1, concurrencyKey: 'one' } : {}
    for (const [at, step] of plan.entries()) {
      const child = children[at] ?? null
      const key = `step_${at}`
      if (step.does === 'parked' && child !== null) subagents[key] = { agent: child, ...settings }
      else if (step.does === 'flaky' && child !== null) {
        subagents[key] = { agent: child, retries: 1, retryDelayMs: 0, ...settings }
      } else if (step.does !== 'unknown') tools[key] = this.toolOf(step, child)
    }
    return agent({
      name,
      instructions: `You are ${name}.`,
      model: scriptedModel((request) => {
        this.requests.push(request)
        if (does === 'flaky' && !this.failed.has(name)) {
          this.failed.add(name)
          return { error: new Error('flaky') }
        }
        const isAnswered = plan.length === 0 || request.messages.some(({ role }) => role === 'tool')
        const usage = { inputTokens: 1 }
        if (isAnswered) return { text: `${name} is done`, usage }
        return { calls: plan.map((_, at) => ({ name: `step_${at}`, input: { message: 'go' } })), usage }
      }),
      tools,
      subagents,
      budget: { concurrency, depth: 9, ...(tree === null ? {} : { treeConcurrency: tree }) },
    })
  }

  private toolOf(step: Step, child: AnyAgent | null) {
    const effect = step.does === 'effectful' || step.does === 'called once' ? 'effectful' : 'pure'
    return simpleTool(
      async (_, { node, delegate }) => {
        if (effect === 'effectful') this.effects.set(node.id, (this.effects.get(node.id) ?? 0) + 1)
        if (step.does === 'fails') throw new Error('it fails')
        if (child !== null) await delegate(child as ReturnType<typeof agent>, 'go')
        return 'did it'
      },
      { effect },
    )
  }

  /** What is true after every commit. */
  private checkStanding(): void {
    expect(readTrees(this.store).flatMap(brokenGraph)).toEqual([])
  }

  private checkRows(runId: string): void {
    const open = nodesOfTree(this.store, runId).filter(({ endedAt, engineId }) => endedAt === null || engineId !== null)
    expect(open).toEqual([])
    for (const turnId of turnsOfTree(this.store, runId)) {
      const turn = this.store.turn(turnId)
      expect(turn).toMatchObject({ state: 'ended', account: { live: 0 } })
      const links = this.store.linksOf(turnId)
      expect(new Set(links.map(({ taskId, attempt }) => `${taskId} ${attempt}`)).size).toBe(links.length)
      for (const link of links) expect(link.outcome).not.toBeNull()
      const calls = this.store.nodesOf(turnId).flatMap(({ output }) => output.calls ?? [])
      expect(tasksOf(this.store, turnId).map(({ input }) => input.call)).toEqual(calls)
    }
  }

  private checkEvents(runId: string): void {
    const turn = this.store.turn(runId)
    const events = eventsOf(this.store, turn?.rootId ?? '')
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    const count = (type: string) => events.filter((event) => event.type === type).length
    expect(count('delegation-end')).toBe(count('delegation-start'))
    expect(count('tool-result')).toBe(count('tool-call'))
    expect(count('run-end')).toBe(turnsOfTree(this.store, runId).length)
    const spent = events.reduce((sum, event) => sum + (event.type === 'usage' ? event.usage.inputTokens : 0), 0)
    expect(turn?.outcome?.usage.inputTokens).toBe(spent)
  }
}
