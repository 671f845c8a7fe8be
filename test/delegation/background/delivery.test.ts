import { type AnyAgent, agent } from 'legate'
import { backgroundSubagents } from 'legate/background'
import type { ModelRequest } from 'legate/models'
import { type Script, type ScriptedModel, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { readTrees } from '../../../src/core/graph/reader.ts'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { brokenGraph } from '../../../src/testing/crash/aftermath.ts'
import { unsettled } from '../../../src/testing/crash/laws.ts'
import { useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'
import { QUICK } from '../../support/process.ts'
import { memoryRows, stores } from '../../support/stores.ts'
import {
  call,
  data,
  hostOf,
  idIn,
  lastSaid,
  playing,
  resultsIn,
  spawnCall,
  tasksIn,
  until,
  workerOf,
} from './support.ts'

describe.each(stores)('an end in the background is told exactly once, on %s', (_, create) => {
  const world = useWorld(create)
  const start = (...agents: AnyAgent[]) => world.start({ agents, engine: QUICK })

  test('(a) the host waits: the wait has it, and nothing more is said', async () => {
    const { host, model } = hostOf(
      playing(
        () => ({ calls: [spawnCall()] }),
        () => call('subagent_wait'),
        (results) => `heard ${results[1]}`,
      ),
      { agent: workerOf(() => ({ text: 'worked', delayMs: 20 })) },
    )
    const { runtime } = start(host)
    const run = runtime.run(host, 'go')
    const outcome = await run.result
    await runtime.idle()

    const [link] = world.store.linksOf(run.id)
    const [, wait] = tasksIn(world.store, run.id)
    expect(link).toMatchObject({ mode: 'background', contract: 'background', deliveredTo: wait?.id })
    expect(outcome.text).toContain('worked')
    expect(outcome.open).toEqual([])
    // Zero model calls while it waited (A65): spawn, wait, answer.
    expect(model.requests).toHaveLength(3)
    expectSound(world.store)
  })

  test('(b) the host is in the middle of a turn: the turn after it tells', async () => {
    const slow = makeGate()
    const script: Script = async (request) => {
      if (lastSaid(request).startsWith('[background]')) return `told: ${lastSaid(request)}`
      if (resultsIn(request).length === 0) return { calls: [spawnCall()] }
      await slow.opened
      return 'first answer'
    }
    const { host } = hostOf(script, { agent: workerOf() })
    const { runtime } = start(host)
    const run = runtime.run(host, 'go')
    await until(() => world.store.linksOf(run.id)[0]?.outcome)
    slow.open()
    const outcome = await run.result
    await runtime.idle()

    const turns = world.store.turnsOf(run.conversationId, { limit: 9 })
    expect(outcome.text).toBe('first answer')
    expect(turns.map(({ wokenBy }) => wokenBy)).toEqual([null, run.id])
    expect(answerOf(world.store, turns[1]?.id)).toContain('"outcome":"completed"')
    expectSound(world.store)
  })

  test('(c) and (d) the host is idle: the end starts the turn that tells of it, and its run named it as open', async () => {
    const slow = makeGate()
    const { host, model } = hostOf(
      playing(() => ({ calls: [spawnCall('TreeReader', 'read')] })),
      {
        agent: workerOf(async () => {
          await slow.opened
          return 'the answer'
        }),
      },
    )
    const { runtime } = start(host)
    const run = runtime.run(host, 'go')
    const outcome = await run.result
    const [link] = world.store.linksOf(run.id)
    expect(outcome).toMatchObject({ status: 'completed', text: 'done', open: [link?.id] })

    slow.open()
    await runtime.idle()

    const [, told] = world.store.turnsOf(run.conversationId, { limit: 9 })
    expect(told).toMatchObject({ state: 'ended', wokenBy: run.id, outcome: { status: 'completed' } })
    const said = lastSaid(model.requests.at(-1) ?? { messages: [] })
    expect(said).toContain('1 of your subagents in the background ended.')
    expect(data(said.split('\n')[1])).toMatchObject({
      child_conversation_id: link?.childConversationId,
      name: 'TreeReader',
      outcome: 'completed',
      text: 'the answer',
    })
    expect(world.store.link(link?.id ?? '')?.deliveredTo).toBe(world.store.nodesOf(told?.id ?? '')[0]?.id)
    expectSound(world.store)
  })

  test('(e) the host was cancelled: it is recorded as undeliverable, and never told later', async () => {
    const slow = makeGate()
    const { host, model } = hostOf(
      playing(
        () => ({ calls: [spawnCall()] }),
        () => call('subagent_wait'),
      ),
      {
        agent: workerOf(async () => {
          await slow.opened
          return 'too late'
        }),
      },
    )
    const { runtime } = start(host)
    const run = runtime.run(host, 'go')
    await until(() => tasksIn(world.store, run.id).find(({ state }) => state === 'waiting'))
    await run.cancel('enough')
    const outcome = await run.result
    slow.open()
    await runtime.idle()

    const [link] = world.store.linksOf(run.id)
    expect(outcome.status).toBe('cancelled')
    expect(link).toMatchObject({ deliveredTo: 'undeliverable', outcome: { status: 'cancelled' } })
    expect(world.store.turnsOf(run.conversationId, { limit: 9 })).toHaveLength(1)
    expect(model.requests).toHaveLength(2)
    const again = runtime.run(host, 'again', { conversationId: run.conversationId })
    await again.result
    await runtime.idle()
    expect(world.store.turnsOf(run.conversationId, { limit: 9 })).toHaveLength(2)
    expectSound(world.store)
  })

  test('a run that has ended is cancelled: what it left in the background stops, and nobody is woken', async () => {
    const { host } = hostOf(
      playing(() => ({ calls: [spawnCall()] })),
      {
        agent: workerOf(() => ({ text: 'never', delayMs: 60_000 })),
      },
    )
    const { runtime } = start(host)
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.cancel(run.id)
    await runtime.idle()

    const [link] = world.store.linksOf(run.id)
    expect(link).toMatchObject({ deliveredTo: 'undeliverable', outcome: { status: 'cancelled' } })
    expect(world.store.turn(run.id)?.outcome?.status).toBe('completed')
    expect(world.store.turnsOf(run.conversationId, { limit: 9 })).toHaveLength(1)
  })

  test('five that end at once are each told once', async () => {
    const together = makeGate()
    const names = ['a', 'b', 'c', 'd', 'e']
    const { host, model } = hostOf(
      playing(() => ({ calls: names.map((name) => spawnCall(name, name)) })),
      {
        agent: workerOf(async (request) => {
          await together.opened
          return `done ${lastSaid(request)}`
        }),
      },
    )
    const { runtime } = start(host)
    const run = runtime.run(host, 'go')
    const { open } = await run.result
    expect(open).toHaveLength(5)
    together.open()
    await runtime.idle()

    const told = toldOf(model)
    expect(told.map(({ name }) => name).sort()).toEqual(names)
    expect(told.map(({ text }) => text).sort()).toEqual(names.map((name) => `done ${name}`))
    const links = world.store.linksOf(run.id)
    expect(links.every(({ deliveredTo }) => deliveredTo !== null)).toBe(true)
    expect(world.store.conversation(run.conversationId)?.background).toEqual([])
    expectSound(world.store)
  })

  test.each(['subagent_poll', 'subagent_result'])('%s that reports the end is the one that is told', async (tool) => {
    const { host, model } = hostOf(
      async (request) => {
        const results = resultsIn(request)
        if (lastSaid(request).startsWith('[background]')) return 'told again!'
        if (results.length === 0) return { calls: [spawnCall()] }
        if (results.length > 1) return 'done'
        await until(() => world.store.conversation(idIn(results[0]))?.activeTurnId === null || undefined)
        return call(tool, { child_conversation_id: idIn(results[0]) })
      },
      { agent: workerOf() },
    )
    const { runtime } = start(host)
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    const [, asked] = tasksIn(world.store, run.id)
    expect(world.store.linksOf(run.id)[0]?.deliveredTo).toBe(asked?.id)
    expect(toldOf(model)).toEqual([])
    expect(world.store.turnsOf(run.conversationId, { limit: 9 })).toHaveLength(1)
    expectSound(world.store)
  })

  test('passive: the end is only a row until the host asks', async () => {
    const { host, model } = hostOf(
      (request) => {
        const results = resultsIn(request)
        if (lastSaid(request) === 'ask') {
          return results.length < 2
            ? call('subagent_result', { child_conversation_id: idIn(results[0]) })
            : String(results[1])
        }
        return results.length === 0 ? { calls: [spawnCall()] } : 'done'
      },
      { agent: workerOf(), wake: 'passive' },
    )
    const { runtime } = start(host)
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()
    expect(world.store.linksOf(run.id)[0]).toMatchObject({ outcome: { status: 'completed' }, deliveredTo: null })
    expect(model.requests).toHaveLength(2)

    const asking = runtime.run(host, 'ask', { conversationId: run.conversationId })
    expect((await asking.result).text).toContain('worked')
    const [task] = tasksIn(world.store, asking.id)
    expect(world.store.linksOf(run.id)[0]?.deliveredTo).toBe(task?.id)
  })

  test('failure and cancellation are told as such', async () => {
    const { host, model } = hostOf(
      playing(
        () => ({ calls: [spawnCall('fails', 'fail'), spawnCall('hangs', 'hang')] }),
        (results) => call('subagent_cancel', { child_conversation_id: idIn(results[1]), reason: 'not needed' }),
        (results) => String(results[2]),
      ),
      {
        agent: workerOf((request) =>
          lastSaid(request) === 'fail' ? { error: new Error('no network') } : { text: 'x', delayMs: 60_000 },
        ),
      },
    )
    const { runtime } = start(host)
    const run = runtime.run(host, 'go')
    const { text } = await run.result
    await runtime.idle()

    expect(data(text)).toMatchObject({
      status: 'met',
      children: [{ name: 'hangs', outcome: 'cancelled', error: 'not needed' }],
    })
    expect(toldOf(model)).toMatchObject([{ name: 'fails', outcome: 'failed', error: 'no network' }])
    expectSound(world.store)
  })

  test('a process that is killed between the end and the telling: the next one tells, once', async () => {
    const slow = makeGate()
    const { host, model } = hostOf(
      playing(() => ({ calls: [spawnCall()] })),
      {
        agent: workerOf(async () => {
          await slow.opened
          return 'worked'
        }),
      },
    )
    const first = start(host)
    const run = first.runtime.run(host, 'go')
    await run.result
    await first.kill()
    slow.open()
    const second = start(host)
    await second.runtime.resume()
    await second.runtime.idle()

    expect(toldOf(model)).toHaveLength(1)
    expectSound(world.store)
  })
})

describe('limits of what tells of ends', () => {
  const world = useWorld(memoryRows)

  test('the turn that tells of an end goes on with the budget of the run it tells: what it starts cannot go on without end', async () => {
    const script: Script = (request) => (request.messages.at(-1)?.role === 'user' ? { calls: [spawnCall()] } : 'done')
    const model = scriptedModel(script)
    const tools = { ...backgroundSubagents({ agent: workerOf() }) }
    const host = agent({ name: 'host', instructions: 'x', model, tools, budget: { children: 3 } })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    const turns = world.store.turnsOf(run.conversationId, { limit: 99 })
    expect(turns.map(({ limits }) => limits.children)).toEqual([3, 2, 1, 0])
    expect(turns.flatMap(({ id }) => world.store.linksOf(id))).toHaveLength(3)
  })

  test('the turn that tells of an end has no more room in the tree than the run it tells: two that are let in too many wait for each other', async () => {
    const slow = makeGate()
    const work: Script = async (request) => {
      if (lastSaid(request) === 'slowly') await slow.opened
      return 'worked'
    }
    const worker = workerOf(work)
    const script: Script = (request) => {
      if (request.messages.at(-1)?.role === 'tool') return 'done'
      return lastSaid(request).startsWith('[background]')
        ? call('consult', { message: 'go' })
        : { calls: [spawnCall('a', 'at once'), spawnCall('b', 'slowly')] }
    }
    const host = agent({
      name: 'host',
      instructions: 'Host.',
      model: scriptedModel(script),
      tools: { ...backgroundSubagents({ agent: worker }) },
      subagents: { consult: worker },
      budget: { treeConcurrency: 1 },
    })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    const woken = () => world.store.turnsOf(run.conversationId, { limit: 9 }).find(({ wokenBy }) => wokenBy === run.id)
    const consulted = await until(() => world.store.linksOf(woken()?.id ?? '')[0])

    expect(world.store.turn(run.id)?.tree).toMatchObject({ limit: 1, live: 1 })
    expect(consulted).toMatchObject({ toolName: 'consult', released: false })

    slow.open()
    await runtime.idle()
    expect(world.store.link(consulted.id)?.outcome).toMatchObject({ status: 'completed' })
    expectSound(world.store)
  })

  test('with no model call left it is told, and can do nothing with it', async () => {
    const script: Script = (request) => {
      const id = /"child_conversation_id":"([^"]+)"/.exec(lastSaid(request))?.[1]
      if (request.messages.at(-1)?.role === 'tool') return 'done'
      if (id === undefined) return { calls: [spawnCall()] }
      return { calls: [{ name: 'subagent_send', input: { child_conversation_id: id, message: 'again' } }] }
    }
    const model = scriptedModel(script)
    const tools = { ...backgroundSubagents({ agent: workerOf() }) }
    const host = agent({ name: 'host', instructions: 'x', model, tools, budget: { modelCalls: 4 } })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    const turns = world.store.turnsOf(run.conversationId, { limit: 999 })
    expect(turns.map(({ account }) => [account.modelCalls, account.toolCalls])).toEqual([
      [2, 1],
      [2, 1],
      [1, 0],
    ])
    const links = turns.flatMap(({ id }) => world.store.linksOf(id))
    expect(links.every(({ deliveredTo }) => deliveredTo !== null)).toBe(true)
  })

  test('a budget of tokens is one for the run and all the turns that tell of its children', async () => {
    const usage = { inputTokens: 10, outputTokens: 10 }
    const script: Script = (request) =>
      request.messages.at(-1)?.role === 'user' ? { usage, calls: [spawnCall()] } : { usage, text: 'done' }
    const tools = { ...backgroundSubagents({ agent: workerOf(() => ({ text: 'worked', usage })) }) }
    const budget = { tokens: 20_000, children: 6 }
    const host = agent({
      name: 'host',
      instructions: 'x',
      model: scriptedModel(script),
      tools,
      budget,
      settings: { maxOutputTokens: 100 },
    })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    const spent = world.store.turn(run.id)?.spend?.spent.tokens ?? 0
    const turns = world.store.turnsOf(run.conversationId, { limit: 999 })
    const all = turns.flatMap(({ id }) => [id, ...world.store.linksOf(id).map((link) => link.id)])
    const used = all.reduce((sum, id) => {
      const nodes = world.store.nodesOf(id)
      return sum + nodes.reduce((total, node) => total + node.usage.inputTokens + node.usage.outputTokens, 0)
    }, 0)
    expect(spent).toBe(used)
    expect(spent).toBeLessThanOrEqual(20_000)
  })

  test('nested: a child is told of its own children in the same turn, and its host gets one answer', async () => {
    const isTold = (request: ModelRequest) => lastSaid(request).startsWith('[background]')
    const levels: readonly Script[] = [
      (request) => {
        if (resultsIn(request).length === 0) return { calls: [spawnCall('child', 'c')] }
        return isTold(request) ? `host: ${lastSaid(request)}` : 'host done'
      },
      (request) => {
        if (isTold(request)) return 'child knows'
        return resultsIn(request).length > 0 ? 'child waits' : { calls: [spawnCall('grand', 'g')] }
      },
    ]
    const script: Script = (request, at) => levels[request.path.length - 1]?.(request, at) ?? 'grand done'
    const { host } = hostOf(script, { nested: true })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    const [link] = world.store.linksOf(run.id)
    const turns = world.store.turnsOf(link?.childConversationId ?? '', { limit: 9 })
    expect(turns).toHaveLength(1)
    expect(answerOf(world.store, turns[0]?.id)).toBe('child knows')
    const [, told] = world.store.turnsOf(run.conversationId, { limit: 9 })
    expect(answerOf(world.store, told?.id)).toContain('child knows')
    expectSound(world.store)
  })
})

/** What the host's model was told of ends, each as data. */
function toldOf(model: ScriptedModel) {
  const said = new Set(
    model.requests.flatMap(({ messages }) =>
      messages.flatMap(({ role, content }) => (role === 'user' ? [String(content)] : [])),
    ),
  )
  const lines = [...said].filter((text) => text.startsWith('[background]')).flatMap((text) => text.split('\n').slice(1))
  return lines.map((line) => data(line))
}

function answerOf(store: LocalStore, turnId: string | undefined): string {
  const node = store.node(store.turn(turnId ?? '')?.outcome?.answerNodeId ?? '')
  return String(node?.output.content)
}

function expectSound(store: LocalStore): void {
  const trees = readTrees(store)
  expect([...trees.flatMap(brokenGraph), ...trees.flatMap(unsettled)]).toEqual([])
}
