import { type AnyAgent, agent, type InboxItem, ModelError, type Runtime } from 'legate'
import { askTools } from 'legate/background'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { callsThenSays, simpleTool, speaker, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { Planted } from '../support/planted.ts'
import { until } from '../support/process.ts'
import { tasksOf } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

const asks: Script = ({ messages }) =>
  messages.some(({ role }) => role === 'tool')
    ? 'ok'
    : { calls: [{ name: 'ask_person', input: { question: 'Which port?' } }] }

/** Asks for leave, asks a question, fails, or never comes back from an effect: each needs a person in its own way. */
function agents(pay = simpleTool(() => 'paid')): { readonly [name: string]: AnyAgent } {
  return {
    careful: agent({
      name: 'careful',
      instructions: '',
      tools: { look: simpleTool(() => 'seen') },
      grant: { ask: ['tool:look'] },
      model: scriptedModel(callsThenSays('look')),
    }),
    curious: agent({ name: 'curious', instructions: '', tools: askTools(), model: scriptedModel(asks) }),
    clerk: agent({ name: 'clerk', instructions: '', tools: { pay }, model: scriptedModel(callsThenSays('pay')) }),
    broken: agent({
      name: 'broken',
      instructions: '',
      model: scriptedModel(() => {
        throw new ModelError('model', 'The key is wrong.', { isRetryable: false })
      }),
    }),
  }
}

async function types(runtime: Runtime, query = {}): Promise<string[]> {
  return (await runtime.inbox(query)).map(({ type, agent, owner }) => `${type} ${agent} ${owner}`)
}

describe.each(stores)('the inbox on %s', (_, create) => {
  const world = useWorld(create)

  /** One run of each agent for each owner, whose process was killed; another has gone on as far as it goes. */
  async function needy(owners: readonly string[]) {
    const entered = owners.map(() => makeGate())
    let calls = 0
    const stuck = simpleTool(() => {
      entered[calls++]?.open()
      return makeGate().opened
    })
    const first = world.start()
    const { careful, curious, clerk, broken } = agents(stuck)
    const runs = owners.map((owner) =>
      [careful, curious, clerk, broken].map((one) => first.runtime.run(one as AnyAgent, 'go', { owner })),
    )
    await Promise.all(runs.map((row) => row[3]?.result))
    await Promise.all(entered.map(({ opened }) => opened))
    await expect.poll(async () => (await first.runtime.approvals()).length).toBe(owners.length)
    await expect.poll(async () => (await first.runtime.questions()).length).toBe(owners.length)
    await first.kill()
    const second = world.start({ agents: Object.values(agents()) })
    const open = await second.runtime.resume()
    await Promise.all(open.filter(({ id }) => runs.some((row) => row[2]?.id === id)).map(({ result }) => result))
    return { runtime: second.runtime, runs, worker: second }
  }

  test('is one list of everything that needs a person, the most urgent first', async () => {
    const { runtime, runs } = await needy(['ann'])

    const items = await runtime.inbox()

    expect(items.map(({ type }) => type)).toEqual(['approval', 'question', 'uncertain', 'failed'])
    const [careful, curious, clerk, broken] = runs[0] ?? []
    for (const [at, run] of [careful, curious, clerk, broken].entries()) {
      const { name, id } = { name: ['careful', 'curious', 'clerk', 'broken'][at] ?? '', id: run?.id }
      const place = { rootId: run?.conversationId, runId: id, agent: name, path: [name], owner: 'ann' }
      expect(items[at]).toMatchObject({ ...place, since: expect.any(Number) })
    }
    const [task] = tasksOf(world.store, clerk?.id ?? '')
    expect(items).toMatchObject([
      { text: 'tool:look', approval: (await runtime.approvals())[0] },
      { text: 'Which port?', question: (await runtime.questions())[0] },
      { nodeId: task?.id, tool: 'pay', input: {}, since: task?.endedAt },
      { nodeId: null, status: 'failed', text: expect.stringContaining('The key is wrong.') },
    ])
  })

  test('shows an owner what is theirs, and page by page the same as at once', async () => {
    const { runtime } = await needy(['ann', 'ben', 'ann'])

    const all = await runtime.inbox()
    expect(all).toHaveLength(12)
    expect(all.map(({ type }) => type)).toEqual(
      ['approval', 'question', 'uncertain', 'failed'].flatMap((type) => [type, type, type]),
    )
    expect(await types(runtime, { owner: 'ben' })).toEqual([
      'approval careful ben',
      'question curious ben',
      'uncertain clerk ben',
      'failed broken ben',
    ])
    expect(await types(runtime, { owner: 'nobody' })).toEqual([])
    const paged: InboxItem[] = []
    for (let after: InboxItem | undefined; paged.length < 20; ) {
      const page: InboxItem[] = await runtime.inbox({ limit: 1, ...(after === undefined ? {} : { after }) })
      if (page.length === 0) break
      expect(page).toHaveLength(1)
      paged.push(...page)
      after = page[0]
    }
    expect(paged).toEqual(all)
    expect(await runtime.inbox({ limit: 0 })).toEqual([])
    await expect(runtime.inbox({ owner: 5 } as never)).rejects.toThrow(/owner/)
  })

  test('gets empty as people act: what is answered, settled, left or asked again is gone', async ({ skip }) => {
    skip(process.env['LEGATE_FRESH'] === '1', 'the second agent of one name is known as long as nothing is forgotten')
    const { runtime, runs } = await needy(['ann'])
    const [approval, question, uncertain] = await runtime.inbox()
    const [careful, curious, , broken] = runs[0] ?? []

    await runtime.answer(approval?.nodeId ?? '', { allow: true })
    await runtime.answer(question?.nodeId ?? '', { text: '80' })
    for (const run of [careful, curious]) await (await runtime.attach(run?.id ?? '')).result
    expect(await types(runtime)).toEqual(['uncertain clerk ann', 'failed broken ann'])
    await runtime.settle(uncertain?.nodeId ?? '', { leave: true })
    expect(await types(runtime)).toEqual(['failed broken ann'])
    const { conversationId = '' } = broken ?? {}
    await runtime.run(speaker('broken'), 'again', { conversationId }).result
    expect(await types(runtime)).toEqual([])
  })

  test('lists an uncertain call of an open run, and of a child of it', async () => {
    const inside = makeGate()
    const stuck = simpleTool(() => {
      inside.open()
      return makeGate().opened
    })
    const script: Script = ({ messages }) => {
      const results = messages.filter(({ role }) => role === 'tool').length
      return results === 2 ? 'done' : { calls: [{ name: results === 0 ? 'pay' : 'ask_person', input: ASKED }] }
    }
    const below = (pay = stuck) =>
      agent({ name: 'clerk', instructions: '', tools: { pay, ...askTools() }, model: scriptedModel(script) })
    const host = (child: AnyAgent) =>
      agent({
        name: 'host',
        instructions: '',
        subagents: { ask: child },
        model: scriptedModel(() => ({ calls: [{ name: 'ask', input: { message: 'go' } }] })),
      })
    const first = world.start()
    const run = first.runtime.run(host(below()), 'go')
    await inside.opened
    await first.kill()
    const { runtime } = world.start({ agents: [below(), host(below())] })
    await runtime.resume()
    await expect.poll(async () => (await runtime.questions()).length).toBe(1)

    const items = await runtime.inbox()

    expect(items.map(({ type }) => type)).toEqual(['question', 'uncertain'])
    expect(items[1]).toMatchObject({ agent: 'clerk', path: ['host', 'clerk'], rootId: run.conversationId })
    await runtime.settle(items[1]?.nodeId ?? '', { happened: true })
    expect(await types(runtime)).toEqual(['question clerk null'])
    await runtime.cancel(run.id)
  })

  test('tells which agent no living process has code for, and forgets it when one has', async () => {
    const entered = makeGate()
    const slow = (answer: () => unknown) =>
      agent({ name: 'slow', instructions: '', model: scriptedModel(async () => String(await answer())) })
    const first = world.start()
    const run = first.runtime.run(
      slow(() => {
        entered.open()
        return makeGate().opened
      }),
      'go',
    )
    await entered.opened
    expect(await types(first.runtime)).toEqual([])
    await first.kill()

    const idle = world.start({ engine: { workers: 0 } })
    await idle.runtime.resume()
    const other = world.start({ agents: [speaker('other')] })
    await other.runtime.resume()
    await until('it is pending', () => world.store.openNodes(run.id).every(({ state }) => state === 'pending'))
    const [item] = await other.runtime.inbox()
    expect(item).toMatchObject({ type: 'no-worker', needs: 'slow', agent: 'slow', runId: run.id })
    expect(item?.text).toContain('"slow"')

    const gate = makeGate()
    const able = world.start({ agents: [slow(() => gate.opened.then(() => 'done'))] })
    const [resumed] = await able.runtime.resume()
    await until('it runs', () => world.store.openNodes(run.id).some(({ state }) => state === 'running'))
    expect(await types(other.runtime)).toEqual([])
    gate.open()
    expect((await resumed?.result)?.text).toBe('done')
  })

  test('an agent that is defined later is named in the row of its process too', async () => {
    const { runtime } = world.start({ agents: [speaker('one')] })
    await runtime.resume()
    const named = () => world.store.engines().flatMap(({ agents }) => agents ?? [])
    expect(named()).toContain('one')
    expect(named()).not.toContain('two')

    await runtime.run(speaker('two'), 'go').result

    await until('it is named', () => named().includes('two'))
  })
})

const ASKED = { question: 'Which port?' }

test('the inbox tells that nothing would make a run go on', async () => {
  const world = await Planted.in('memory')
  onTestFinished(() => world.close())
  const turn = await world.graph.say('go')
  const [, answer] = world.store.nodesOf(turn.id)
  if (answer) await world.change(answer, { state: 'finished', endedAt: 1, output: { content: 'done' } })

  const items = await world.runtime.inbox()

  expect(items.filter(({ runId }) => runId === turn.id)).toMatchObject([
    { type: 'stalled', text: expect.stringContaining('has not ended') },
  ])
  expect(items.filter(({ type }) => type === 'stalled')).toHaveLength(1)
})
