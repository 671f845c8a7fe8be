import { agent, StoreError } from 'legate'
import type { ModelRequest } from 'legate/models'
import { readTrees, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { brokenGraph } from '../../src/testing/crash/aftermath.ts'
import { simpleTool, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import type { Process } from '../support/process.ts'
import { expectAnswered } from '../support/requests.ts'
import { eventsOf, nodesOfTree, tasksOf, turnsOfTree } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

/** What a run of the scenario makes, at least: lease, say, expand with a child, two results, expand, result, two ends. */
const STEPS = 9
/** Some are refused because another was faster, and made anew. */
const COMMITS = 14

describe.each(stores)('a process dies at its n-th commit, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('the list names every kind of commit', async () => {
    const { host } = scenario()
    const { process, commits } = dyingAt(Number.POSITIVE_INFINITY, 'before')

    await process.runtime.run(host, 'go').result

    expect(commits()).toBeGreaterThanOrEqual(STEPS)
    expect(commits()).toBeLessThanOrEqual(COMMITS)
  })

  test('an audit finds nothing after any of them, nor after those of a run that is asked and cancelled', async () => {
    const found: string[] = []
    let commits = 0
    const audited = (store: LocalStore): LocalStore => ({
      ...store,
      commit: async (step) => {
        await store.commit(step)
        commits++
        found.push(...readTrees(store).flatMap(brokenGraph))
      },
    })
    const { runtime } = start({ store: audited })
    await runtime.run(scenario().host, 'go').result
    const held = runtime.run(scenario().host, 'go', { grant: { ask: ['tool:dig'] } })
    for await (const { type } of held) if (type === 'approval-request') break
    await held.cancel()
    await held.result

    expect(found).toEqual([])
    expect(commits).toBeGreaterThan(STEPS)
  })

  describe.each(['before', 'after'] as const)('%s it is written', (moment) => {
    test.each(Array.from({ length: COMMITS }, (_, n) => n + 1))(
      'n = %i: the run goes on, and nothing is doubled',
      async (n) => {
        const { host, requests, effects } = scenario()
        const doomed = dyingAt(n, moment)
        const run = doomed.process.runtime.run(host, 'go')
        await Promise.race([doomed.dead, run.result])
        doomed.spare()

        const heir = start({ agents: [host] })
        const [resumed] = await heir.runtime.resume()
        if (resumed === undefined) return expectOverOrNeverBegun(run.id)
        const outcome = await resumed.result

        expect(outcome.status).toBe('completed')
        expect(outcome.text).toMatch(/looked.*child: dug/s)
        expect(outcome.children).toBe(1)
        expectWhole(run.id)
        for (const request of requests) expectAnswered(request)
        expect(effects.length).toBeLessThanOrEqual(1)
        if (effects.length === 0) expect(outcome.uncertain).toHaveLength(1)
      },
    )
  })

  test.each(Array.from({ length: STEPS }, (_, n) => n + 1))(
    'commit %i fails and the process lives: the run ends whole, here or in the next process',
    async (n) => {
      const { host, requests, effects } = scenario()
      let commits = 0
      const failing = (store: LocalStore): LocalStore => ({
        ...store,
        commit: (step) => {
          if (++commits === n) throw new StoreError('store_full', 'The disk is full.')
          return store.commit(step)
        },
      })
      const { runtime } = start({ store: failing, mayFail: true })
      const run = runtime.run(host, 'go')

      const [first] = await Promise.allSettled([run.result])

      if (first?.status === 'rejected') {
        expect(first.reason).toMatchObject({ code: 'store_full' })
        expect(world.store.turn(run.id)).toBeUndefined()
        expect(await runtime.run(host, 'again').result).toMatchObject({ status: 'completed' })
        return
      }
      expect(first?.value.status).toBe('completed')
      expectWhole(run.id)
      for (const request of requests) expectAnswered(request)
      expect(effects).toHaveLength(1)
    },
  )

  function expectOverOrNeverBegun(runId: string): void {
    const turn = world.store.turn(runId)
    if (turn === undefined) return
    expect(turn.outcome?.status).toBe('completed')
    expectWhole(runId)
  }

  /** Every call has one task with an end, every child one link, every start one end. */
  function expectWhole(runId: string): void {
    const nodes = nodesOfTree(world.store, runId)
    expect(nodes.filter(({ endedAt }) => endedAt === null)).toEqual([])
    expect(world.store.linksOf(runId)).toHaveLength(1)
    for (const turnId of turnsOfTree(world.store, runId)) {
      const calls = world.store.nodesOf(turnId).flatMap(({ output }) => output.calls ?? [])
      expect(tasksOf(world.store, turnId).map(({ input }) => input.call)).toEqual(calls)
    }
    const events = eventsOf(world.store, world.store.turn(runId)?.rootId ?? '')
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    for (const type of ['run', 'delegation'] as const) {
      const starts = events.filter((event) => event.type === `${type}-start`)
      const ends = events.filter((event) => event.type === `${type}-end`)
      expect(ends).toHaveLength(starts.length)
    }
  }

  function dyingAt(n: number, moment: 'before' | 'after') {
    const died = makeGate()
    let process: Process | undefined
    let commits = 0
    let last = n
    const die = async (written: void | Promise<void>) => {
      await written
      await process?.kill()
      died.open()
      await makeGate().opened
    }
    const commit = (store: LocalStore) => (step: Parameters<LocalStore['commit']>[0]) => {
      commits++
      if (commits < last) return store.commit(step)
      const isWritten = commits === last && moment === 'after'
      return die(isWritten ? store.commit(step) : undefined)
    }
    process = start({ store: (store) => ({ ...store, commit: commit(store) }) })
    const spare = () => {
      if (commits < last) last = Number.POSITIVE_INFINITY
    }
    return { process, dead: died.opened, commits: () => commits, spare }
  }
})

/** One message with a pure tool, an effectful one and a child, which uses a tool itself. */
function scenario() {
  const requests: ModelRequest[] = []
  const effects: string[] = []
  const noted = (request: ModelRequest) => {
    requests.push(request)
    return request.messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
  }
  const child = agent({
    name: 'child',
    instructions: '',
    model: scriptedModel((request) => {
      const [dug] = noted(request)
      return dug === undefined ? { calls: [{ name: 'dig', input: {} }] } : `child: ${dug}`
    }),
    tools: { dig: simpleTool(() => 'dug', { effect: 'pure' }) },
  })
  const host = agent({
    name: 'host',
    instructions: '',
    model: scriptedModel((request) => {
      const results = noted(request)
      if (results.length > 0) return results.join('\n')
      return {
        calls: [
          { name: 'look', input: {} },
          { name: 'send', input: {} },
          { name: 'ask', input: { message: 'dig' } },
        ],
      }
    }),
    tools: {
      look: simpleTool(() => 'looked', { effect: 'pure' }),
      send: simpleTool(() => effects.push('sent')),
    },
    subagents: { ask: child },
  })
  return { host, requests, effects }
}
