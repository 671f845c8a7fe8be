import { agent, type Runtime, tool } from 'legate'
import { memoryStore } from 'legate/store/memory'
import { fakeClock, scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { startProcess } from '../support/process.ts'
import { openRuntime } from '../support/reading.ts'
import { lasting, type Rows, stores } from '../support/stores.ts'

/** All stores, and rows that come later. */
const all = [...lasting, ...stores.filter(([name]) => name.includes('later'))]

const usage = { inputTokens: 7, outputTokens: 3 }

function clerk(name = 'clerk') {
  const model = scriptedModel(({ messages }) => ({ text: `heard ${messages.length}`, usage }))
  return agent({ name, instructions: 'You sell shoes.', model })
}

function failing() {
  const model = scriptedModel(() => {
    throw new Error('no')
  })
  return agent({ name: 'failing', instructions: 'Fail.', model, budget: { modelCalls: 1 } })
}

/** Its subagent asks a person. */
function asking() {
  const sign = tool({ description: 'Signs.', input: z.object({}), execute: () => 'signed' })
  const careful = agent({
    name: 'careful',
    instructions: 'Ask first.',
    grant: { ask: ['tool:sign'] },
    tools: { sign },
    model: scriptedModel([{ calls: [{ name: 'sign', input: {} }] }, 'signed']),
  })
  const model = scriptedModel([{ calls: [{ name: 'call_careful', input: { message: 'Sign.' } }], usage }, 'done'])
  return agent({ name: 'asking', instructions: 'Delegate.', subagents: [careful], model })
}

const COUNTER = { name: 'counter', instructions: '', input: z.object({ number: z.number() }) }

function open(rows: Rows): Runtime {
  onTestFinished(() => rows.drop())
  const { runtime } = startProcess(rows)
  onTestFinished(() => runtime.close())
  return runtime
}

describe.each(all)('lists, in a store in %s', (_, create) => {
  test('say in short what a run was asked: its message, or the first text of its input', async () => {
    const runtime = open(create())
    const input = z.object({ lines: z.number(), topic: z.string() })
    const poet = agent({ name: 'poet', instructions: '', input, model: scriptedModel(() => 'Roses.') })
    const counter = agent({ ...COUNTER, model: scriptedModel(() => 'Four.') })
    await runtime.run(clerk(), `Two\n  lines, ${'and more '.repeat(100)}`).result
    await runtime.run(poet, { lines: 4, topic: 'QUIC' }).result
    await runtime.run(counter, { number: 3 }).result

    const asked = (await runtime.runs()).map((run) => run.asked)
    expect(asked.slice(0, 2)).toEqual(['', 'QUIC'])
    expect(asked[2]).toMatch(/^Two lines, and more and more/)
    expect(asked[2]).toHaveLength(120)
  })

  test('of runs and conversations go page by page, newest first, whatever begins meanwhile', async () => {
    const runtime = open(create())
    const ids: string[] = []
    for (let at = 0; at < 7; at++) {
      ids.unshift((await runtime.run(clerk(), 'hello', { owner: 'ann', title: `t${at}` }).result).conversationId)
    }
    const listed: string[] = []
    const shown: string[] = []
    for (let before: string | undefined; ; ) {
      const query = { owner: 'ann', limit: 3, ...(before === undefined ? {} : { before }) }
      const page = await runtime.runs(query)
      const conversations = await runtime.conversations(query)
      expect(conversations.map(({ id }) => id)).toEqual(page.map(({ rootId }) => rootId))
      listed.push(...page.map(({ conversationId }) => conversationId))
      shown.push(...conversations.map(({ title }) => title ?? ''))
      if (page.length < 3) break
      before = page.at(-1)?.rootId
      await runtime.run(clerk(), 'newer', { owner: 'ann' }).result
    }

    expect(listed).toEqual(ids)
    expect(shown).toEqual(['t6', 't5', 't4', 't3', 't2', 't1', 't0'])
    expect(await runtime.runs({ owner: 'ann', limit: 1_000 })).toHaveLength(9)
  })

  test('choose by owner, agent and state', async () => {
    const runtime = open(create())
    const of = async (agentName: string, owner: string) =>
      (await runtime.run(clerk(agentName), 'x', { owner }).result).runId
    const [a, b, c] = [await of('clerk', 'ann'), await of('baker', 'ann'), await of('clerk', 'bob')]
    const failed = await runtime.run(failing(), 'x', { owner: 'ann' }).result
    const waiting = runtime.run(asking(), 'x', { owner: 'ann' })
    while ((await runtime.approvals()).length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    const idsOf = async (query: Parameters<Runtime['runs']>[0]) => (await runtime.runs(query)).map(({ runId }) => runId)

    expect(await idsOf({})).toEqual([waiting.id, failed.runId, c, b, a])
    expect(await idsOf({ owner: 'ann' })).toEqual([waiting.id, failed.runId, b, a])
    expect(await idsOf({ owner: 'ann', agent: 'clerk' })).toEqual([a])
    expect(await idsOf({ agent: 'clerk' })).toEqual([c, a])
    expect(await idsOf({ state: 'open' })).toEqual([waiting.id])
    expect(await idsOf({ state: 'failed', owner: 'ann' })).toEqual([failed.runId])
    expect(await idsOf({ state: 'completed', owner: 'ann' })).toEqual([b, a])
    expect(await idsOf({ owner: 'nobody' })).toEqual([])
    expect((await runtime.conversations({ owner: 'bob' })).map(({ owner }) => owner)).toEqual(['bob'])
    await waiting.cancel()
    await waiting.result
    expect(await idsOf({ state: 'open' })).toEqual([])
  })

  test('say what a run waits for, below it too, and what it has used', async () => {
    const runtime = open(create())
    const run = runtime.run(asking(), 'x', { owner: 'ann', title: 'Signing' })
    while ((await runtime.approvals()).length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    const [approval] = await runtime.approvals()

    const [waiting] = await runtime.runs({ owner: 'ann' })
    expect(waiting).toMatchObject({
      runId: run.id,
      conversationId: run.conversationId,
      rootId: run.conversationId,
      agent: 'asking',
      owner: 'ann',
      title: 'Signing',
      state: 'running',
      status: null,
      endedAt: null,
      waitingOn: [{ nodeId: approval?.nodeId, on: 'approval', what: 'sign' }],
    })
    expect(await runtime.conversations()).toMatchObject([{ id: run.conversationId, isRunning: true, turns: 1 }])

    await runtime.answer(approval?.nodeId ?? '', { allow: true })
    await run.result
    const [ended] = await runtime.runs({ owner: 'ann' })
    expect(ended).toMatchObject({ state: 'ended', status: 'completed', waitingOn: [] })
    expect(ended?.usage).toEqual((await runtime.usage(run.id)).usage)
    expect(ended?.usage.inputTokens).toBeGreaterThan(0)
  })
})

test('a conversation says how many runs it had and when the latest ended', async () => {
  const clock = fakeClock(1_000)
  const runtime = openRuntime({ clock, store: memoryStore() })
  const { conversationId } = await runtime.run(clerk(), 'one').result
  const [before] = await runtime.conversations()
  await clock.advance(5_000)
  await runtime.run(clerk(), 'two', { conversationId }).result
  const [after] = await runtime.conversations()

  expect(before).toEqual({
    id: conversationId,
    agent: 'clerk',
    owner: null,
    title: null,
    turns: 1,
    isRunning: false,
    archivedAt: null,
    createdAt: before?.createdAt,
    updatedAt: before?.updatedAt,
  })
  expect(after).toMatchObject({ turns: 2, createdAt: before?.createdAt })
  expect(after?.updatedAt).toBe((before?.updatedAt ?? 0) + 5_000)
  // The list of runs has the latest one of it.
  expect(await runtime.runs()).toHaveLength(1)
})

test.each<[string, object]>([
  ['a limit of 0', { limit: 0 }],
  ['a limit beyond a page', { limit: 1_001 }],
  ['a state that is none', { state: 'lost' }],
  ['an owner that is a number', { owner: 4 }],
])('%s is refused', async (_, query) => {
  await expect(openRuntime().runs(query)).rejects.toMatchObject({ code: 'definition' })
})
