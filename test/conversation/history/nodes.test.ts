import { agent, tool } from 'legate'
import type { KindDefinition } from 'legate/rows'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { talkOf, useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'
import { until } from '../../support/process.ts'
import { eventsOfType, localStore, nodesOfTree, tasksOf } from '../../support/rows.ts'
import { lasting, stores } from '../../support/stores.ts'
import { echo, expectLawful, reasonOf, say } from './support.ts'

const quick: KindDefinition = { execute: () => 'done' }

function isAsked(store: LocalStore, runId: string): boolean {
  return nodesOfTree(store, runId).some(({ state }) => state === 'awaiting_approval')
}

describe.each(stores)('single nodes, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('a required approval that was denied ends the turn; a retry asks again, and holds what comes after it', async () => {
    const { runtime } = start({ kinds: { quick } })
    const talk = await talkOf(runtime)
    const { ids, turnId } = await talk.mutate((m) => {
      const asked = m.createNode({
        kind: 'quick',
        state: 'awaiting_approval',
        metadata: { approval: { required: true, request: 'tool:x' }, mine: 1 },
      }).id
      const next = m.createNode({ kind: 'quick' }).id
      const later = m.createNode({ kind: 'agent_message' }).id
      m.createEdge(asked, next, 'dependency')
      m.createEdge(next, later, 'sequence')
      return { ids: { asked, next, later }, turnId: m.runId }
    })
    await runtime.answer(ids.asked, { allow: false, reason: 'not yet' })
    const failure = { code: 'approval_denied', message: 'tool:x is required, and was not allowed: not yet' }
    expect(await (await runtime.attach(turnId)).result).toMatchObject({ status: 'denied', error: failure })
    for (const id of [ids.next, ids.later]) expect(world.store.node(id)).toMatchObject({ state: 'skipped', failure })
    expectLawful(world.store)

    const again = await talk.history.retry(ids.asked)
    await talk.history.retry(ids.asked)

    const [asked, ...others] = await runtime.approvals()
    expect(others).toEqual([])
    expect(world.store.node(asked?.nodeId ?? '')).toMatchObject({
      state: 'awaiting_approval',
      attempt: 2,
      retryOf: ids.asked,
      metadata: { mine: 1 },
      output: {},
    })
    expect(world.store.node(asked?.nodeId ?? '')?.metadata['deniedBy']).toBeUndefined()
    expectLawful(world.store)
    await runtime.answer(asked?.nodeId ?? '', { allow: true })
    expect((await again.result).status).toBe('completed')
    const quicks = world.store.nodesOf(again.id).filter(({ kind }) => kind === 'quick')
    expect(quicks.map(({ state }) => state)).toEqual(['finished', 'finished'])
    expect(await reasonOf(talk.history.retry(ids.asked))).toBe('replaced')
    expectLawful(world.store)
  })

  test('a call that is retried does not let a run go past a required approval that was denied beside it', async () => {
    const ask = (approval: 'ask' | 'required') =>
      tool({ description: 'd', input: { type: 'object' }, approval, execute: () => 'x' })
    const calls = ['must', 'may'].map((name) => ({ name, input: {} }))
    const model = scriptedModel([{ calls }, 'on'])
    const tools = { must: ask('required'), may: ask('ask') }
    const { runtime } = start()
    const run = runtime.run(agent({ name: 'both', instructions: '', tools, model }), 'go')
    const asked = await until('questions', () => {
      const open = world.store.nodesOf(run.id).filter(({ state }) => state === 'awaiting_approval')
      return open.length === 2 && open
    })
    for (const { id } of asked) await runtime.answer(id, { allow: false })
    expect((await run.result).status).toBe('denied')
    const may = tasksOf(world.store, run.id).find(({ input }) => input.call?.name === 'may')

    const again = await (await runtime.conversation(run.conversationId)).history.retry(may?.id ?? '')
    const [approval] = await runtime.approvals()
    await runtime.answer(approval?.nodeId ?? '', { allow: true })

    expect(await again.result).toMatchObject({ status: 'denied', error: { code: 'approval_denied' } })
    expect(model.requests).toHaveLength(1)
    expectLawful(world.store)
  })

  test('a node whose results were used is not retried while its turn goes on; afterwards the turn is made anew', async () => {
    const gate = makeGate()
    let fails = true
    const kinds = {
      flaky: { execute: () => (fails ? Promise.reject(new Error('no')) : 'good') },
      slow: { execute: () => gate.opened.then(() => 'slow') },
    }
    const { runtime } = start({ kinds })
    const talk = await talkOf(runtime)
    const { flaky, turnId } = await talk.mutate((m) => {
      const flaky = m.createNode({ kind: 'flaky' }).id
      const slow = m.createNode({ kind: 'slow' }).id
      const side = m.createNode({ kind: 'user_message', content: 'hi' }).id
      m.createEdge(flaky, slow, 'sequence')
      m.createEdge(side, slow, 'sequence')
      return { flaky, turnId: m.runId }
    })
    await until('the flaky one fails', () => world.store.node(flaky)?.state === 'errored')

    expect(await reasonOf(talk.history.retry(flaky))).toBe('used')
    gate.open()
    await (await runtime.attach(turnId)).result
    fails = false
    const again = await talk.history.retry(flaky)
    expect((await again.result).status).toBe('completed')
    const made = world.store.nodesOf(again.id)
    expect(made.map(({ kind, state }) => [kind, state])).toEqual([
      ['flaky', 'finished'],
      ['slow', 'finished'],
      ['user_message', 'finished'],
      ['agent_message', 'finished'],
    ])
    expect(made[0]).toMatchObject({ output: { content: 'good' }, retryOf: flaky, idempotencyKey: null })
    expectLawful(world.store)
  })

  test('W20, W22: stop ends one node, tells its code, and begins nothing of what comes after it', async () => {
    let aborted = ''
    let started = 0
    const wait = tool({
      description: 'x',
      input: { type: 'object' },
      effect: 'pure',
      execute: (_input, { signal }) => {
        started++
        return new Promise((_, reject) =>
          signal.addEventListener('abort', () => {
            aborted = String(signal.reason)
            reject(signal.reason)
          }),
        )
      },
    })
    const look = tool({ description: 'x', input: { type: 'object' }, effect: 'pure', execute: () => 'seen' })
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? 'went on'
        : {
            calls: [
              { name: 'wait', input: {} },
              { name: 'look', input: {} },
            ],
          },
    )
    const who = agent({ name: 'who', instructions: '', model, tools: { wait, look } })
    const { runtime } = start()
    const run = runtime.run(who, 'go')
    const task = await until('it waits', () => (started === 1 ? tasksOf(world.store, run.id)[0] : undefined))
    const talk = await runtime.conversation(run.conversationId)

    await talk.history.stop(task.id, 'enough')
    await talk.history.stop(task.id, 'again')

    const outcome = await run.result
    expect(outcome.status).toBe('cancelled')
    expect(aborted).toContain('asked to stop')
    expect(world.store.node(task.id)?.state).toBe('stopped')
    expect(tasksOf(world.store, run.id)[1]?.state).toBe('finished')
    expect(model.requests).toHaveLength(1)
    expect(eventsOfType(world.store, run.conversationId, 'graph-change').map(({ change }) => change)).toEqual(['stop'])
    await talk.history.stop(task.id)
    expectLawful(world.store)
  })

  test('I4: a stopped call that may have had its effect is uncertain, and nothing comes after it; stubborn code is not waited for', async () => {
    let started = 0
    const pay = tool({
      description: 'x',
      input: { type: 'object' },
      execute: () => {
        started++
        return new Promise<string>((resolve) => setTimeout(resolve, 1_500, 'paid'))
      },
    })
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'went on' : { calls: [{ name: 'pay', input: {} }] },
    )
    const who = agent({ name: 'who', instructions: '', model, tools: { pay } })
    const { runtime } = start()
    const run = runtime.run(who, 'go')
    await until('it pays', () => started === 1)
    const talk = await runtime.conversation(run.conversationId)
    const task = tasksOf(world.store, run.id)[0]

    await talk.history.stop(task?.id ?? '')

    const outcome = await run.result
    expect(outcome.uncertain).toEqual([task?.id])
    expect(world.store.node(task?.id ?? '')?.state).toBe('uncertain')
    expect(model.requests).toHaveLength(1)
    const again = await talk.history.retry(task?.id ?? '')
    expect((await again.result).text).toBe('went on')
    expect(tasksOf(world.store, again.id)[0]?.idempotencyKey).toBe(task?.id)
    expectLawful(world.store)
  })

  test('stop of a delegation ends its child; of a queued or approval-waiting node it ends that', async () => {
    const gate = makeGate()
    const child = agent({
      name: 'child',
      instructions: '',
      model: scriptedModel(async () => {
        await gate.opened
        return 'late'
      }),
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name: 'ask', input: { message: 'x' } }] },
      ),
      subagents: { ask: child },
    })
    const { runtime } = start({ kinds: { quick } })
    const run = runtime.run(host, 'go')
    const task = await until('it waits', () => tasksOf(world.store, run.id).find(({ state }) => state === 'waiting'))
    const talk = await runtime.conversation(run.conversationId)

    await talk.history.stop(task.id)

    expect((await run.result).status).toBe('cancelled')
    const [link] = world.store.linksOf(run.id)
    await until('the child ends', () => world.store.turn(link?.id ?? '')?.state === 'ended')
    expect(world.store.turn(link?.id ?? '')?.outcome?.status).toBe('cancelled')
    gate.open()
    const { asked, turnId } = await talk.mutate((m) => ({
      asked: m.createNode({ kind: 'quick', state: 'awaiting_approval' }).id,
      turnId: m.runId,
    }))
    await talk.history.stop(asked, 'no need')
    expect((await (await runtime.attach(turnId)).result).status).toBe('cancelled')
    expect(world.store.turn(turnId)?.paused).toBeNull()
    expectLawful(world.store)
  })

  test('skip leaves out what has not begun: what follows in sequence goes on, what depends on it does not', async () => {
    const gate = makeGate()
    const { runtime } = start({ kinds: { quick, slow: { execute: () => gate.opened.then(() => 'slow') } } })
    const talk = await talkOf(runtime)
    const { ids, turnId } = await talk.mutate((m) => {
      const slow = m.createNode({ kind: 'slow' }).id
      const middle = m.createNode({ kind: 'quick' }).id
      const after = m.createNode({ kind: 'quick' }).id
      const needs = m.createNode({ kind: 'quick' }).id
      m.createEdge(slow, middle, 'sequence')
      m.createEdge(middle, after, 'sequence')
      m.createEdge(middle, needs, 'dependency')
      return { ids: { slow, middle, after, needs }, turnId: m.runId }
    })

    await talk.history.skip(ids.middle, 'not needed')
    await talk.history.skip(ids.middle)

    expect(await reasonOf(talk.history.skip(ids.slow))).toBe('wrong_state')
    gate.open()
    await (await runtime.attach(turnId)).result
    expect(world.store.node(ids.middle)).toMatchObject({ state: 'skipped', failure: { message: 'not needed' } })
    expect(world.store.node(ids.after)?.state).toBe('finished')
    expect(world.store.node(ids.needs)?.state).toBe('skipped')
    expect(await reasonOf(talk.history.skip(ids.after))).toBe('wrong_state')
    expectLawful(world.store)
  })

  test('what was used is summed up by lane, by model and by day', async () => {
    const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 4 }
    const one = agent({
      name: 'one',
      instructions: '',
      model: scriptedModel(() => ({ text: 'ok', usage }), 'openai/gpt-5'),
    })
    const { runtime } = start()
    const first = await say(runtime, one, 'a')
    await say(runtime, one, 'b', first.run.conversationId)
    const talk = await runtime.conversation(first.run.conversationId)
    const { id } = await talk.history.fork(first.answer.id)
    await say(runtime, one, 'c', id)

    const stats = await talk.usageStats()
    const tree = await talk.usageStats({ of: 'tree' })

    expect(stats.total).toMatchObject({ calls: 2, usage: { inputTokens: 20, outputTokens: 10 }, cacheHitRate: 0.4 })
    expect(stats.total.usd).toBeGreaterThan(0)
    expect(Object.keys(stats.byModel)).toEqual(['openai/gpt-5'])
    expect(Object.values(stats.byDay).reduce((sum, { calls }) => sum + calls, 0)).toBe(2)
    expect(Object.keys(stats.byDay)[0]).toMatch(/^\d{4}-\d\d-\d\d$/)
    expect(tree.byLane[id]?.calls).toBe(1)
    expect(tree.total.calls).toBe(3)
    expect((await talk.usageStats({ since: Date.now() + 60_000 })).total.calls).toBe(0)
    expect((await talk.usageStats({ until: 0 })).total).toMatchObject({ calls: 0, usd: 0 })
    expect(await reasonOf(talk.usageStats({ since: 'x' as never }))).toBe('definition')
    expect(await reasonOf(talk.usageStats({ of: 'all' as never }))).toBe('definition')
  })

  test('the tree of a root: states, outcomes, usage, lanes and what is waited for, in one call', async () => {
    const gate = makeGate()
    const child = agent({
      name: 'child',
      instructions: '',
      model: scriptedModel(async () => {
        await gate.opened
        return { text: 'ok', usage: { inputTokens: 1, outputTokens: 1 } }
      }),
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name: 'ask', input: { message: 'x' } }] },
      ),
      subagents: { ask: child },
    })
    const { runtime } = start()
    const run = runtime.run(host, 'go')
    const task = await until('it waits', () => tasksOf(world.store, run.id).find(({ state }) => state === 'waiting'))

    const during = await runtime.tree(run.conversationId)
    gate.open()
    const outcome = await run.result
    const talk = await runtime.conversation(run.conversationId)
    const { id } = await talk.history.fork(outcome.answerNodeId ?? '')
    const after = await runtime.tree(run.conversationId)

    const [open] = during.runs
    expect(open).toMatchObject({ runId: run.id, state: 'running', outcome: null, agent: 'host', tool: null })
    expect(open?.waitingOn).toMatchObject([
      { nodeId: task.id, on: 'children', what: 'ask', refs: [open?.children[0]?.runId] },
      { on: 'nodes', refs: [task.id] },
    ])
    expect(open?.children).toMatchObject([{ agent: 'child', tool: 'ask', state: 'running', waitingOn: [] }])
    expect(after.runs[0]).toMatchObject({
      state: 'ended',
      outcome: { status: 'completed' },
      usage: { inputTokens: 1 },
      waitingOn: [],
    })
    expect(after.lanes).toMatchObject([{ conversationId: id, forkedAt: outcome.answerNodeId, runs: [] }])
    expect(await reasonOf(runtime.tree('x'))).toBe('not_found')
    expect(await reasonOf(runtime.tree(run.conversationId, { limitTurns: 0 }))).toBe('invalid_input')
  })

  test('what cannot be put in is refused with its reason and what would work', async () => {
    const gate = makeGate()
    const { runtime } = start({ kinds: { quick, slow: { execute: () => gate.opened.then(() => 'slow') } } })
    const talk = await talkOf(runtime)
    const { a, b, c, turnId } = await talk.mutate((m) => {
      const [one, two, three] = [1, 2, 3].map((at) => m.createNode({ kind: 'slow', idempotencyKey: `k${at}` }).id)
      m.createEdge(one ?? '', two ?? '', 'sequence')
      return { a: one ?? '', b: two ?? '', c: three ?? '', turnId: m.runId }
    })
    const tried = (change: Parameters<typeof talk.mutate>[0], into = turnId) =>
      reasonOf(talk.mutate(change, into === '' ? {} : { runId: into }))

    expect(await tried((m) => m.createEdge(a, a, 'sequence'))).toBe('cycle')
    expect(await tried((m) => m.createEdge(b, a, 'branch'))).toBe('cycle')
    expect(await tried((m) => m.createEdge(b, c, 'sequence'))).toBe('wrong_state')
    expect(
      await tried((m) => m.createNode({ kind: 'slow', idempotencyKey: 'k1', effect: 'pure', input: { value: 1 } })),
    ).toBe('key_used')
    expect(await tried((m) => m.createNode({ kind: 'quick' }), '')).toBe('busy')
    expect(await tried((m) => m.createEdge('x', b, 'sequence'))).toBe('not_found')
    gate.open()
    await (await runtime.attach(turnId)).result
    expectLawful(world.store)
  })

  test('an archived lane says so in the log, also one without a turn of its own', async () => {
    const { echo: who } = echo()
    const { runtime } = start()
    const one = await say(runtime, who, 'one')
    const lane = await (await runtime.conversation(one.run.conversationId)).history.fork(one.answer.id)

    await (await runtime.conversation(lane.id)).history.archive()

    const told = eventsOfType(world.store, one.run.conversationId, 'graph-change').at(-1)
    expect(told).toMatchObject({ change: 'archive', detail: { lane: lane.id } })
    expectLawful(world.store)
  })

  test('after a restart the events of a lane and of a child are still read page by page', async () => {
    const { echo: who } = echo()
    const { runtime } = start()
    const one = await say(runtime, who, 'one')
    const { id } = await (await runtime.conversation(one.run.conversationId)).history.fork(one.answer.id)
    await say(runtime, who, 'two', id)
    const { runtime: other } = start({ agents: [who] })
    const lane = await other.conversation(id)

    const first = await lane.eventPage({ limit: 2 })
    const rest = await lane.eventPage({ limit: 100, after: first.at(-1)?.seq ?? 0 })

    expect(first).toHaveLength(2)
    expect([...first, ...rest].every(({ conversationId }) => conversationId === id)).toBe(true)
    expect(rest.at(-1)?.type).toBe('run-end')
  })
})

describe.each(lasting)('a required approval, on %s', (_, create) => {
  const { start } = useWorld(create)

  test('P5, I6: a denied required approval ends its run, also after a crash: the next message is answered, the host goes on', async () => {
    const required = (approval: 'required' | (() => 'required')) =>
      tool({ description: 'd', input: { type: 'object' }, approval, execute: () => 'x' })
    const make = () => {
      const d = required('required')
      const first: Script = ({ messages }) => (messages.length > 1 ? 'on' : { calls: [{ name: 'd', input: {} }] })
      const careful = agent({ name: 'careful', instructions: '', tools: { d }, model: scriptedModel(first) })
      const tools = { d: required(() => 'required') }
      const kid = agent({ name: 'kid', description: 'k', instructions: '', tools, model: scriptedModel(first) })
      const model = scriptedModel(({ messages }) => {
        const heard = messages.find(({ role }) => role === 'tool')
        return heard === undefined ? { calls: [{ name: 'kid', input: { message: 'do' } }] } : String(heard.content)
      })
      return { careful, host: agent({ name: 'host', instructions: '', subagents: { kid }, model }) }
    }
    const { careful, host } = make()
    const before = start({ agents: [careful, host] })
    const run = before.runtime.run(careful, 'go', { conversationKey: 'k' })
    const queued = before.runtime.run(careful, 'and then', { conversationKey: 'k' })
    const hosted = before.runtime.run(host, 'go')
    await until('two questions', () => [run.id, hosted.id].every((id) => isAsked(before.store, id)))
    await before.kill()

    const { runtime } = start({ agents: Object.values(make()) })
    await runtime.resume()
    for (const { nodeId } of await runtime.approvals()) await runtime.answer(nodeId, { allow: false, by: 'ann' })

    const message = 'tool:d is required, and was not allowed: ann denied tool:d, and gave no reason.'
    const denied = { status: 'denied', error: { code: 'approval_denied', message } }
    expect(await (await runtime.attach(run.id)).result).toMatchObject(denied)
    expect(await (await runtime.attach(queued.id)).result).toMatchObject({ status: 'completed', text: 'on' })
    const told = await (await runtime.attach(hosted.id)).result
    expect(told.text).toBe(`Error: Execution error: ${message}`)
    await runtime.idle()
    expect((await runtime.why(run.id)).reasons).toMatchObject([{ code: 'ended' }])
    expectLawful(localStore(runtime))
  })
})
