import { type AnyAgent, agent, type Tools } from 'legate'
import type { Node } from 'legate/rows'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { callsThenSays, simpleTool, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { until } from '../support/process.ts'
import { eventsOfType, nodesOfTree, tasksOf } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

/** Says how each result came to it: as a failure or not. */
const tells: Script = ({ messages }) => {
  const results = messages.flatMap((one) => (one.role === 'tool' ? [`${one.isError ? '!' : '='} ${one.content}`] : []))
  return results.length > 0 ? results.join('\n') : { calls: [{ name: 'pay', input: { amount: 5 } }] }
}

function clerk(tools: Tools, script: Script = tells): AnyAgent {
  return agent({ name: 'clerk', instructions: 'Do it.', tools, model: scriptedModel(script) })
}

describe.each(stores)('I4: a call that is uncertain, on %s', (_, create) => {
  const world = useWorld(create)
  const keys: string[] = []

  /** A tool that pays: the first time it never comes back. */
  function pay(inside = makeGate()) {
    keys.length = 0
    const stuck = simpleTool((_, { idempotencyKey }) => {
      keys.push(idempotencyKey)
      inside.open()
      return makeGate().opened
    })
    const works = simpleTool((_, { idempotencyKey }) => `paid ${keys.push(idempotencyKey)}`)
    return { inside, stuck, works }
  }

  /** A run that has ended, whose process was killed while it paid. */
  async function ended() {
    const { inside, stuck, works } = pay()
    const first = world.start()
    const run = first.runtime.run(clerk({ pay: stuck }), 'go')
    await inside.opened
    await first.kill()
    const second = world.start({ agents: [clerk({ pay: works })] })
    const [resumed] = await second.runtime.resume()
    const outcome = await resumed?.result
    const node = nodesOfTree(world.store, run.id).find(({ state }) => state === 'uncertain') as Node
    expect(outcome).toMatchObject({ status: 'completed', uncertain: [node.id] })
    expect(outcome?.text).toMatch(/^! .*unknown/s)
    return { runtime: second.runtime, run, node, worker: second }
  }

  /** The turn that counts now. */
  function newest(conversationId: string) {
    return world.store.turnsOf(conversationId, { limit: 1 })[0]
  }

  test('happened: the run is made anew with the result, and nothing is run again', async () => {
    const { runtime, run, node } = await ended()
    const other = world.start({ engine: { workers: 0 } })

    const settled = await other.runtime.settle(node.id, { happened: true, result: { receipt: 7 } }, { by: 'ann' })

    expect(settled).toEqual({ how: 'happened', runId: expect.any(String), obstacle: null })
    const outcome = await (await runtime.attach(settled.runId ?? '')).result
    expect(outcome).toMatchObject({ status: 'completed', text: '= {"receipt":7}', uncertain: [] })
    expect(keys).toHaveLength(1)
    const [task] = tasksOf(world.store, settled.runId ?? '')
    expect(task).toMatchObject({ state: 'finished', output: { value: { receipt: 7 } }, versionSet: node.versionSet })
    expect(task?.marks?.settled).toMatchObject({ how: 'happened', by: 'ann' })
    expect(world.store.node(node.id)).toMatchObject({ state: 'uncertain', marks: { settled: { by: 'ann' } } })
    expect(world.store.turn(run.id)).toMatchObject({ outcome: { uncertain: [node.id] }, account: { uncertain: [] } })
    expect(newest(run.conversationId)?.id).toBe(settled.runId)
    expect(eventsOfType(world.store, run.conversationId, 'call-settled')).toMatchObject([
      { runId: run.id, nodeId: node.id, tool: 'pay', how: 'happened', by: 'ann', nextRunId: settled.runId },
    ])
    expect((await runtime.audit()).findings).toEqual([])
  })

  test('happened, with no known result: the model reads that it took effect', async () => {
    const { runtime, node } = await ended()

    const { runId } = await runtime.settle(node.id, { happened: true }, { by: 'ann' })

    const { text } = await (await runtime.attach(runId ?? '')).result
    expect(text).toBe('= It took effect: ann has checked. Its result is not known. Do not call it again for this.')
    expect(keys).toHaveLength(1)
  })

  test('did not happen: it runs again, once and with its key, by the rules of retry', async () => {
    const { runtime, run, node } = await ended()

    const settled = await runtime.settle(node.id, { happened: false }, { by: 'ann' })

    const outcome = await (await runtime.attach(settled.runId ?? '')).result
    expect(outcome).toMatchObject({ status: 'completed', text: '= paid 2', uncertain: [] })
    expect(keys).toEqual([node.id, node.id])
    expect(world.store.turn(run.id)?.account.uncertain).toEqual([])
    expect(world.store.node(node.id)?.marks?.settled).toMatchObject({ how: 'not_happened', by: 'ann' })
    expect((await runtime.audit()).findings).toEqual([])
  })

  test('is left: nothing runs, and it may be settled later all the same', async () => {
    const { runtime, run, node } = await ended()

    expect(await runtime.settle(node.id, { leave: true }, { by: 'ann' })).toEqual({
      how: 'left',
      runId: null,
      obstacle: null,
    })
    expect(newest(run.conversationId)).toMatchObject({ id: run.id, account: { uncertain: [] } })
    const { runId } = await runtime.settle(node.id, { happened: true, result: 'paid' }, { by: 'ben' })
    expect((await (await runtime.attach(runId ?? '')).result).text).toBe('= paid')
  })

  test('is settled once: a later word hears who was first; another node and another word are refused', async () => {
    const { runtime, run, node } = await ended()
    await runtime.settle(node.id, { happened: true, result: 'paid' }, { by: 'ann' })

    await expect(runtime.settle(node.id, { happened: false }, { by: 'ben' })).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('ann has said that it happened'),
      details: { by: 'ann', how: 'happened', at: expect.any(Number) },
    })
    const [said] = world.store.nodesOf(run.id)
    await expect(runtime.settle(said?.id ?? '', { leave: true })).rejects.toMatchObject({
      details: { reason: 'wrong_state', state: 'finished' },
    })
    await expect(runtime.settle(run.id, { leave: true })).rejects.toMatchObject({ code: 'not_found' })
    for (const word of [{}, { happened: 'yes' }, { happened: true, leave: true }, { leave: false }, null, 'yes']) {
      await expect(runtime.settle(node.id, word as never)).rejects.toThrow(/the word is \{ happened: true/)
    }
    await expect(runtime.settle(node.id, { happened: false, result: 1 } as never)).rejects.toThrow(/the word is/)
    await expect(runtime.settle(node.id, { leave: true }, { by: 5 } as never)).rejects.toThrow(/by/)
  })

  test('in a conversation that has gone on: it is recorded, and models read it from then on', async () => {
    const { runtime, run, node, worker } = await ended()
    const { conversationId } = run
    const { works } = pay()
    await worker.runtime.run(clerk({ pay: works }), 'And now?', { conversationId }).result

    const settled = await runtime.settle(node.id, { happened: true, result: 'receipt 7' }, { by: 'ann' })
    expect(settled).toEqual({ how: 'happened', runId: null, obstacle: 'later_turns' })
    const { text } = await worker.runtime.run(clerk({ pay: works }), 'And now?', { conversationId }).result
    expect(text).toBe('= receipt 7')
  })

  test('in a conversation that has gone on: what did not happen is recorded, and its model may call it again', async () => {
    const { runtime, run, node } = await ended()
    const { conversationId } = run
    const { works } = pay()
    await runtime.run(clerk({ pay: works }), 'And now?', { conversationId }).result

    const settled = await runtime.settle(node.id, { happened: false }, { by: 'ann' })
    expect(settled).toEqual({ how: 'not_happened', runId: null, obstacle: 'later_turns' })
    const { text } = await runtime.run(clerk({ pay: works }), 'And now?', { conversationId }).result
    expect(text).toBe('! It did not take effect: ann has checked. Call it again if it is still wanted.')
  })

  test('in a child that has ended: it is recorded for the child and for its hosts', async () => {
    const host = (below: AnyAgent) =>
      agent({
        name: 'host',
        instructions: '',
        subagents: { pay: below },
        model: scriptedModel(({ messages }) => {
          const result = messages.findLast(({ role }) => role === 'tool')
          return result === undefined ? { calls: [{ name: 'pay', input: { message: 'go' } }] } : String(result.content)
        }),
      })
    const { inside, stuck, works } = pay()
    const first = world.start()
    const run = first.runtime.run(host(clerk({ pay: stuck })), 'go')
    await inside.opened
    await first.kill()
    const { runtime } = world.start({ agents: [clerk({ pay: works }), host(clerk({ pay: works }))] })
    const [resumed] = await runtime.resume()
    const outcome = await resumed?.result
    const [id = ''] = outcome?.uncertain ?? []
    const child = world.store.node(id)?.turnId ?? ''
    expect(world.store.turn(run.id)?.account.uncertain).toEqual([id])

    expect(await runtime.settle(id, { happened: true, result: 'paid' }, { by: 'ann' })).toEqual({
      how: 'happened',
      runId: null,
      obstacle: 'delegated',
    })
    for (const turn of [child, run.id]) expect(world.store.turn(turn)?.account.uncertain).toEqual([])
    expect(world.store.turn(child)?.outcome?.uncertain).toEqual([id])
    expect((await runtime.audit()).findings).toEqual([])
  })

  describe('while its run is open', () => {
    /** A run whose process was killed while it paid; beside the call waits another that nobody has allowed. */
    async function open(script: Script) {
      const { inside, stuck, works } = pay()
      const both = (one: Tools[string]) =>
        agent({
          name: 'clerk',
          instructions: 'Do it.',
          tools: { pay: one, look: simpleTool(() => 'seen', { effect: 'pure' }) },
          grant: { ask: ['tool:look'] },
          model: scriptedModel(script),
        })
      const first = world.start()
      const run = first.runtime.run(both(stuck), 'go')
      await inside.opened
      await first.kill()
      const { runtime } = world.start({ agents: [both(works)] })
      await runtime.resume()
      const isIn = ({ state }: Node) => state === 'uncertain'
      const node = await until('it is uncertain', () => tasksOf(world.store, run.id).find(isIn))
      await expect.poll(async () => (await runtime.approvals()).length).toBe(1)
      const [asked] = await runtime.approvals()
      return { runtime, run, node, look: () => runtime.answer(asked?.nodeId ?? '', { allow: true }) }
    }

    test('and nothing has gone on from it: its model reads the result', async () => {
      const { runtime, run, node, look } = await open(callsThenSays('pay', 'look'))

      expect(await runtime.settle(node.id, { happened: true, result: 'paid' }, { by: 'ann' })).toMatchObject({
        runId: run.id,
      })
      await look()

      expect(await (await runtime.attach(run.id)).result).toMatchObject({ text: 'paid\nseen', uncertain: [] })
      expect(keys).toHaveLength(1)
      expect((await runtime.audit()).findings).toEqual([])
    })

    test('and nothing has gone on from it: what did not happen runs again in its place', async () => {
      const { runtime, run, node, look } = await open(callsThenSays('pay', 'look'))

      expect(await runtime.settle(node.id, { happened: false }, { by: 'ann' })).toMatchObject({ runId: run.id })
      await look()

      expect(await (await runtime.attach(run.id)).result).toMatchObject({ text: 'paid 2\nseen', uncertain: [] })
      expect(keys).toEqual([node.id, expect.any(String)])
      expect((await runtime.audit()).findings).toEqual([])
    })

    test('and its model has gone on: the result is read at the next call; to run it again is refused until the end', async () => {
      const script: Script = ({ messages }) => {
        const results = messages.flatMap((one) => (one.role === 'tool' ? [String(one.content)] : []))
        if (results.length === 0) return { calls: [{ name: 'pay', input: {} }] }
        return results.length === 1 ? { calls: [{ name: 'look', input: {} }] } : results.join('\n')
      }
      const { runtime, run, node, look } = await open(script)

      await expect(runtime.settle(node.id, { happened: false })).rejects.toMatchObject({ details: { reason: 'used' } })
      expect(world.store.node(node.id)?.marks).toBeNull()
      await runtime.settle(node.id, { happened: true, result: 'paid' }, { by: 'ann' })
      await look()

      expect(await (await runtime.attach(run.id)).result).toMatchObject({ text: 'paid\nseen', uncertain: [] })
      expect(world.store.turn(run.id)?.outcome?.uncertain).toEqual([])
    })
  })

  test('of a run that was cancelled: what happened is recorded, and the run stays stopped', async () => {
    const inside = makeGate()
    const deaf = simpleTool(() => {
      inside.open()
      return makeGate().opened
    })
    const { runtime } = world.start()
    const run = runtime.run(clerk({ pay: deaf }), 'go')
    await inside.opened
    await run.cancel()
    const { status, uncertain } = await run.result
    expect(status).toBe('cancelled')

    expect(await runtime.settle(uncertain[0] ?? '', { happened: true, result: 'paid' })).toMatchObject({ runId: null })
    expect(newest(run.conversationId)?.id).toBe(run.id)
  })

  test('of an agent that is code: the result is its answer, or the code runs again', async () => {
    const inside = makeGate()
    const mason = (reply: () => Promise<string>) => agent({ name: 'mason', effect: 'effectful', reply })
    const stuck = mason(() => {
      inside.open()
      return makeGate().opened.then(() => 'never')
    })
    const first = world.start()
    const run = first.runtime.run(stuck, 'go')
    await inside.opened
    await first.kill()
    const { runtime } = world.start({ agents: [mason(async () => 'Built.')] })
    const [resumed] = await runtime.resume()
    const { status, uncertain } = (await resumed?.result) ?? {}
    expect(status).toBe('uncertain')

    const { runId } = await runtime.settle(uncertain?.[0] ?? '', { happened: true, result: 'A wall.' }, { by: 'ann' })
    expect(await (await runtime.attach(runId ?? '')).result).toMatchObject({ status: 'completed', text: 'A wall.' })
    expect(newest(run.conversationId)?.id).toBe(runId)
    expect((await runtime.audit()).findings).toEqual([])
  })
})
