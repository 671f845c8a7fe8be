import { agent } from 'legate'
import { fakeClock, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { sweep } from '../../src/core/engine/sweep.ts'
import type { Node } from '../../src/core/graph/rows.ts'
import { planResult } from '../../src/core/rules/turn/result.ts'
import type { LocalStore } from '../../src/core/store/store.ts'
import { speaker, useWorld } from '../support/agents.ts'
import { Graph } from '../support/graph.ts'
import { until } from '../support/process.ts'
import { stores } from '../support/stores.ts'

describe.each(stores)('every notification is lost, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('two processes that hear nothing of each other finish a run by their sweeps', async () => {
    const by = new Set<string>()
    const hostOf = (process: string) => {
      const worker = agent({
        name: 'worker',
        instructions: '',
        model: scriptedModel(async () => {
          by.add(process)
          await until('the other', () => by.size === 2)
          return 'done'
        }),
      })
      return agent({
        name: 'host',
        instructions: '',
        model: scriptedModel(({ messages }) => {
          if (messages.some(({ role }) => role === 'tool')) return 'all done'
          return { calls: ['a', 'b', 'c'].map((message) => ({ name: 'ask', input: { message } })) }
        }),
        subagents: { ask: worker },
      })
    }
    const one = start({ store: deaf, engine: { workers: 1 } })
    const two = start({ store: deaf, agents: [hostOf('two')], engine: { workers: 1 } })
    await two.runtime.resume()

    const outcome = await one.runtime.run(hostOf('one'), 'go').result

    expect(outcome).toMatchObject({ status: 'completed', text: 'all done' })
    expect([...by].toSorted()).toEqual(['one', 'two'])
  })

  test('a process that runs nothing itself still learns the end of its run, and of each event', async () => {
    const idle = start({ store: deaf })
    await idle.runtime.resume()
    const turn = await new Graph(world.rows.open(), { clock: fakeClock(Date.now()) }).say('go')
    const run = await idle.runtime.attach(turn.id)
    const runs = start({ store: deaf, agents: [speaker('agent', 'from the other')] })
    await runs.runtime.resume()

    const types: string[] = []
    for await (const event of run) types.push(event.type)

    expect(types.at(-1)).toBe('run-end')
    expect(await run.result).toMatchObject({ text: 'from the other' })
  })

  test('sweeps alone find every step of a graph', async () => {
    const graph = new Graph(world.rows.open(), { kinds: { work: {} } })
    const conversationId = await graph.conversation()
    const { turnId, ids } = await graph.mutate(conversationId, (m) => {
      const ids = Array.from({ length: 12 }, () => m.createNode({ kind: 'work' }).id)
      for (const [at, id] of ids.entries()) if (at >= 3) m.createEdge(ids[at - 3] ?? '', id, 'dependency')
      return { turnId: m.runId, ids }
    })

    const order: string[] = []
    for (let round = 0; graph.turn(turnId).state !== 'ended'; round++) {
      expect(round).toBeLessThan(30)
      for (const node of await sweptBy(graph)) {
        order.push(node.id)
        await graph.commit('result', node.rootId, (draft) =>
          planResult(draft, { ...node, nodeId: node.id, engineId: graph.engineId }, FINISHED),
        )
      }
    }

    expect(order.slice(0, 12).toSorted()).toEqual(ids.toSorted())
    expect(graph.turn(turnId).outcome?.status).toBe('completed')
  })
})

const FINISHED = { state: 'finished', output: { content: 'ok' } } as const

function deaf(store: LocalStore): LocalStore {
  return { ...store, watch: () => () => undefined }
}

/** What one sweep claims when nothing else ever told anybody anything. */
async function sweptBy(graph: Graph): Promise<readonly Node[]> {
  return graph.sweep(async (ledger) => {
    await sweep(ledger, {
      engineId: graph.engineId,
      graceMs: 5_000,
      freeWorkers: () => graph.freeWorkers,
      line: { last: undefined, isCrowded: false },
      crew: { learn: () => undefined },
      running: () => [],
      canRun: () => ({ agents: ['agent'], kinds: ['agent_message', 'work'] }),
      keep: () => undefined,
      report: (error) => {
        throw error
      },
    })
  })
}
