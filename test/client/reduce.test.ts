import { agent, type RunEvent, tool } from 'legate'
import { askTools, backgroundSubagents } from 'legate/background'
import { scriptedModel } from 'legate/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { DurableEvent } from '../../src/core/graph/event.ts'
import {
  approvalsOf,
  emptyTree,
  nodeOf,
  nodesOf,
  questionsOf,
  reduceTree,
  type TreeState,
  treeOf,
} from '../../src/server/client/index.ts'
import { tryHistory } from '../conversation/history/random-history.ts'
import { call, playing, spawnCall } from '../delegation/background/support.ts'
import { callsThenSays, simpleTool, useWorld } from '../support/agents.ts'
import { type Followed, followAll } from '../support/follow-all.ts'
import { makeGate } from '../support/gate.ts'
import { eventsOf, localStore } from '../support/rows.ts'
import { lasting, memoryRows, stores } from '../support/stores.ts'

const rows = [...stores, ...lasting.filter(([name]) => name === 'json')]

let followed: Followed
let leave: () => void

beforeEach(() => {
  followed = { commits: 0, wrong: [] }
  leave = followAll(followed)
})

afterEach(() => leave())

/** Every commit of the test left the same tree in its events as in its rows. */
function expectSame(atLeast: number): void {
  expect(followed.wrong).toEqual([])
  expect(followed.commits).toBeGreaterThanOrEqual(atLeast)
}

const child = agent({ name: 'child', instructions: '', model: scriptedModel(() => 'done'), input: z.object({}) })

describe.each(rows)('after each commit the tree of the events is that of the rows, on %s', (_, create) => {
  const world = useWorld(create)

  test('with delegations inside of delegations, several at once, beside tools', async () => {
    const leaf = agent({ name: 'leaf', instructions: '', model: scriptedModel(() => 'leaf'), input: z.object({}) })
    const middle = agent({
      name: 'middle',
      instructions: '',
      model: scriptedModel(callsThenSays('leaf', 'leaf', 'look')),
      input: z.object({}),
      subagents: { leaf },
      tools: { look: simpleTool(() => 'seen') },
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(callsThenSays('middle', 'middle')),
      subagents: { middle },
    })
    const { runtime } = world.start()
    const run = runtime.run(host, 'go', { title: 'The work' })

    expect((await run.result).status).toBe('completed')
    expect((await runtime.tree(run.conversationId)).title).toBe('The work')
    expectSame(8)
  })

  test('with plain calls and delegations, which tell nothing beside their events', async () => {
    const worker = agent({
      name: 'worker',
      instructions: '',
      model: scriptedModel(callsThenSays('look')),
      input: z.object({}),
      tools: { look: simpleTool(() => 'seen') },
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(callsThenSays('worker')),
      subagents: { worker },
    })
    const { runtime, store } = world.start()
    const run = runtime.run(host, 'go')

    expect((await run.result).status).toBe('completed')
    const events = eventsOf(store, run.conversationId)
    expect(events.map(({ type }) => type)).toContain('delegation-start')
    expect(events.flatMap(({ told }) => told ?? [])).toEqual([])
    expectSame(5)
  })

  test('with children in the background that outlive their host, and wake it', async () => {
    const gate = makeGate()
    const worker = agent({
      name: 'worker',
      instructions: '',
      model: scriptedModel(async () => {
        await gate.opened
        return 'found'
      }),
    })
    const model = scriptedModel(
      playing(
        () => ({ calls: [spawnCall()] }),
        () => 'later',
      ),
    )
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      tools: { ...backgroundSubagents({ agents: { worker } }) },
    })
    const { runtime } = world.start()
    const run = runtime.run(host, 'go')
    await run.result
    gate.open()
    await runtime.idle(run.id)

    expect((await runtime.tree(run.conversationId)).runs.length).toBe(2)
    expectSame(5)
  })

  test('with calls that fail and are tried again, and delegations that are', async () => {
    const failure = { error: new Error('The model is broken.') }
    const model = scriptedModel([failure, failure, 'at last'])
    const unsteady = agent({ name: 'unsteady', instructions: '', model, input: z.object({}) })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(callsThenSays('unsteady', 'broken')),
      subagents: { unsteady: { agent: unsteady, retries: 3, retryDelayMs: 1 } },
      tools: {
        broken: simpleTool(() => {
          throw new Error('no')
        }),
      },
    })
    const { runtime } = world.start({ mayFail: true })

    expect((await runtime.run(host, 'go').result).status).toBe('completed')
    expect(model.requests).toHaveLength(3)
    expectSame(6)
  })

  test('with approvals and questions, answered, denied and taken over by another process', async () => {
    const asker = agent({
      name: 'asker',
      instructions: '',
      model: scriptedModel(
        playing(
          () => call('ask_person', { question: 'which?' }),
          ([said = '']) => said,
        ),
      ),
      input: z.object({}),
      tools: { ...askTools() },
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(callsThenSays('deploy', 'drop', 'asker')),
      subagents: { asker },
      tools: { deploy: simpleTool(() => 'deployed'), drop: simpleTool(() => 'dropped') },
      grant: { ask: ['tool:deploy', 'tool:drop'] },
    })
    const first = world.start({ agents: [host, asker] })
    const run = first.runtime.run(host, 'go')
    const [deploy, drop] = await untilSome(() => first.runtime.approvals(), 2)
    const [question] = await untilSome(() => first.runtime.questions(), 1)
    const waiting = stateOf(eventsOf(first.store, run.conversationId))
    await first.runtime.answer(deploy?.nodeId ?? '', { allow: true })
    const runtime = await world.restart(first, [host, asker])
    await runtime.answer(drop?.nodeId ?? '', { allow: false, reason: 'not today' })
    await runtime.answer(question?.nodeId ?? '', { text: 'the second' })
    const outcome = await (await runtime.attach(run.id)).result

    expect(outcome.text).toContain('the second')
    expect(new Set(approvalsOf(waiting).map(({ request }) => request))).toEqual(new Set(['tool:deploy', 'tool:drop']))
    expect(questionsOf(waiting)).toMatchObject([{ nodeId: question?.nodeId, text: 'which?', to: 'person' }])
    const over = stateOf(eventsOf(localStore(runtime), run.conversationId))
    expect([approvalsOf(over), questionsOf(over)]).toEqual([[], []])
    expectSame(8)
  })

  test('with a cancel while things run, wait and are queued', async () => {
    const started = makeGate()
    const slow = agent({
      name: 'slow',
      instructions: '',
      input: z.object({}),
      model: scriptedModel(() => ({ calls: [{ name: 'hang', input: {} }] })),
      tools: {
        hang: tool({
          description: 'Hangs.',
          input: z.object({}),
          execute: (_input, { signal }) => {
            started.open()
            return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
          },
        }),
      },
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(callsThenSays('slow', 'pay')),
      subagents: { slow },
      tools: { pay: simpleTool(() => 'paid') },
      grant: { ask: ['tool:pay'] },
    })
    const { runtime } = world.start()
    const run = runtime.run(host, 'go')
    await started.opened
    const queued = runtime.run(host, 'more', { conversationId: run.conversationId })
    await queued.cancel()
    await runtime.cancel(run.id, 'enough')

    expect((await run.result).status).toBe('cancelled')
    expectSame(5)
  })

  test('with forks, edits, reruns, merges and an archived lane', async () => {
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(callsThenSays('child')),
      subagents: { child },
    })
    const { runtime } = world.start()
    const first = await runtime.run(host, 'one').result
    const { conversationId } = first
    const second = await runtime.run(host, 'two', { conversationId }).result
    const talk = await runtime.conversation(conversationId)
    const fork = await talk.history.fork(first.answerNodeId ?? '', { title: 'Another way' })
    await runtime.run(host, 'aside', { conversationId: fork.id }).result
    const again = await (await talk.history.rerun(second.answerNodeId ?? '')).result
    await talk.history.adopt(second.answerNodeId ?? '')
    await talk.history.fork(again.answerNodeId ?? '', { children: 'rerun' }).then(({ run }) => run?.result)
    const [said] = (await talk.transcript()).filter(({ role }) => role === 'user')
    await (await talk.history.edit(said?.nodeId ?? '', 'one, but better')).result
    await (await talk.history.merge([fork.id])).result
    await (await runtime.conversation(fork.id)).history.archive()
    await talk.observe('by the way')
    await talk.history.exclude(first.answerNodeId ?? '').catch(() => undefined)

    const tree = await runtime.tree(conversationId)
    expect(tree.lanes.map(({ title }) => title)).toContain('Another way')
    expect(tree.lanes.some(({ archivedAt }) => archivedAt !== null)).toBe(true)
    expectSame(12)
  })

  test('with budgets, failures and a process that dies', async () => {
    const spent = agent({
      name: 'spent',
      instructions: '',
      model: scriptedModel(callsThenSays('look')),
      tools: { look: simpleTool(() => 'seen') },
      budget: { modelCalls: 1 },
    })
    const failing = agent({
      name: 'failing',
      instructions: '',
      model: scriptedModel(() => {
        throw new Error('gone')
      }),
    })
    const pause = makeGate()
    const reached = makeGate()
    const paying = agent({
      name: 'paying',
      instructions: '',
      model: scriptedModel(callsThenSays('pay')),
      tools: {
        pay: simpleTool(async () => {
          reached.open()
          await pause.opened
          return 'paid'
        }),
      },
    })
    const first = world.start({ mayFail: true, engine: { sweepMs: 20 } })
    await first.runtime.run(spent, 'go').result
    await first.runtime.run(failing, 'go').result
    const run = first.runtime.run(paying, 'go')
    await reached.opened
    await first.kill()
    pause.open()
    const next = world.start({ agents: [paying], engine: { sweepMs: 20 } })
    await next.runtime.resume()
    const outcome = await (await next.runtime.attach(run.id)).result

    expect(outcome.uncertain.length).toBe(1)
    expectSame(8)
  })
})

test('after each of any 50 changes of history in a row the tree of the events is that of the rows', () => {
  for (let seed = 1; seed <= 60; seed++) tryHistory({ seed, operations: 50, auditEvery: 50 })
  expectSame(2_000)
})

describe('a state', () => {
  beforeEach(() => leave())
  const world = useWorld(memoryRows)

  /** The states after each stored event of a run with many children. */
  async function wideRun(children: number) {
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(callsThenSays(...Array<string>(children).fill('child'))),
      subagents: { child },
      budget: { children: children + 1, toolCalls: children + 1 },
    })
    const { runtime } = world.start()
    const { conversationId, id } = runtime.run(host, 'go')
    await runtime.idle(id)
    return { events: eventsOf(world.store, conversationId), conversationId, runId: id, runtime }
  }

  test('stays as it is when a later one is made, and shares what did not change', async () => {
    const { events, conversationId } = await wideRun(3)
    let state = emptyTree()
    const states = events.map((event) => {
      state = reduceTree(state, event)
      return state
    })
    const fresh = events.map((_, at) => stateOf(events.slice(0, at + 1)))
    const shown = states.map((state) => treeOf(state, conversationId))

    expect(shown).toEqual(fresh.map((state) => treeOf(state, conversationId)))
    const [before, after] = shown.slice(-2)
    expect(before?.runs[0]?.children).toHaveLength(3)
    for (const at of [0, 1, 2]) expect(after?.runs[0]?.children[at]).toBe(before?.runs[0]?.children[at])
    const last = states.at(-1) ?? emptyTree()
    expect(treeOf(last, conversationId)).toBe(treeOf(last, conversationId))
  })

  test('takes a stored event once', async () => {
    const { events } = await wideRun(1)
    const state = stateOf(events)

    expect(events.reduce<TreeState>(reduceTree, state)).toBe(state)
  })

  test('of a wide tree costs per event what that of a narrow one does', async () => {
    const narrow = await wideRun(10)
    const wide = await wideRun(200)
    const perEvent = (events: readonly DurableEvent[]) => {
      const times = Array.from({ length: 7 }, () => {
        const start = performance.now()
        stateOf(events)
        return (performance.now() - start) / events.length
      })
      return Math.min(...times)
    }
    perEvent(wide.events)

    expect(perEvent(wide.events)).toBeLessThan(perEvent(narrow.events) * 6 + 0.02)
    expect(treeOf(stateOf(wide.events), wide.conversationId)).toEqual(await wide.runtime.tree(wide.conversationId))
  })

  test('has the texts that stream: pieces add up, a reset forgets, and what was said so far replaces', async () => {
    const speaks = makeGate()
    const model = {
      id: 'own/model',
      async *stream() {
        yield { type: 'text-delta', text: 'So ' } as const
        yield { type: 'text-delta', text: 'far.' } as const
        yield { type: 'reasoning-delta', text: 'Hm.' } as const
        await speaks.opened
        yield { type: 'finish', reason: 'stop', usage: { inputTokens: 1, outputTokens: 1 } } as const
      },
    }
    const { runtime } = world.start()
    const run = runtime.run(agent({ name: 'host', instructions: '', model: model as never }), 'go')
    let state = emptyTree()
    const speaker = () => nodesOf(state, run.id).at(-1)
    for await (const event of run.events()) {
      state = reduceTree(state, event)
      if (speaker()?.reasoning !== 'Hm.' || Number.isInteger(event.seq)) continue
      expect(speaker()).toMatchObject({ text: 'So far.', state: 'running', what: 'agent_message', content: null })
      const nodeId = speaker()?.nodeId ?? ''
      const place = { ...event, nodeId, runId: run.id }
      const reset = reduceTree(state, { ...place, type: 'reset', attempt: 2 } as RunEvent)
      expect(nodeOf(reset, nodeId)).toMatchObject({ text: '', reasoning: '', attempt: 2 })
      const calls = [{ callId: 'c', tool: 'look', text: '{"a' }]
      const said = { text: 'All of it.', reasoning: '', attempt: 3, calls }
      const live = reduceTree(reset, { ...place, ...said, type: 'live' } as RunEvent)
      expect(nodeOf(live, nodeId)).toMatchObject({ text: 'All of it.', attempt: 3, writes: calls })
      expect(nodeOf(state, nodeId)?.text).toBe('So far.')
      speaks.open()
    }

    expect(speaker()).toMatchObject({ state: 'finished', content: 'So far.', text: 'So far.' })
  })
})

function stateOf(events: readonly RunEvent[]): TreeState {
  return events.reduce(reduceTree, emptyTree())
}

/** The items, as soon as there are so many. */
async function untilSome<Item>(read: () => Promise<readonly Item[]>, count: number): Promise<readonly Item[]> {
  for (;;) {
    const items = await read()
    if (items.length >= count) return items
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
