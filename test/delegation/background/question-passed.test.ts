import { agent, tool } from 'legate'
import { askTools, backgroundSubagents, type SpawnedAgent } from 'legate/background'
import { fakeClock, type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../../support/agents.ts'
import { QUICK } from '../../support/process.ts'
import { eventsOfType } from '../../support/rows.ts'
import { memoryRows, stores } from '../../support/stores.ts'
import { call, gaveIn, hostOf, lastSaid, resultsIn, spawnCall, untilTime } from './support.ts'

async function soon<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (let left = 400; left > 0; left--) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error('It did not come.')
}

function askerOf(name: 'ask_host' | 'ask_person' = 'ask_host') {
  const script: Script = (request) => {
    const [answer] = resultsIn(request)
    if (lastSaid(request) === 'more') return 'heard more'
    return answer === undefined ? call(name, { question: 'Which colour?' }) : `I was told ${answer}`
  }
  return agent({ name: 'asker', instructions: 'Ask.', model: scriptedModel(script), tools: { ...askTools() } })
}

/** Spawns an asker, does not answer when it is told, and answers when its user says so. */
const leaving: Script = (request) => {
  const said = lastSaid(request)
  const [last] = request.messages.slice(-1)
  if (said.startsWith('[background]')) return 'I leave that.'
  if (said === 'go') return last?.role === 'tool' ? 'started' : { calls: [spawnCall()] }
  if (last?.role === 'tool') return 'answered'
  return call('subagent_send', { child_conversation_id: said.slice('blue: '.length), message: 'blue' })
}

describe.each(stores)('a root host that was told a question and ends its turn, on %s', (_, create) => {
  const world = useWorld(create)

  async function ignored() {
    const { host } = hostOf(leaving, { agent: askerOf() })
    const started = world.start({ agents: [host], engine: QUICK })
    const run = started.runtime.run(host, 'go')
    await run.result
    const [question] = await soon(async () => {
      const found = await started.runtime.questions()
      return found.length > 0 ? found : undefined
    })
    const [link] = world.store.linksOf(run.id)
    return { ...started, host, run, question, childRun: link?.id ?? '', childId: link?.childConversationId ?? '' }
  }

  test('a person is asked from then on, and the clock of the child stands still', async () => {
    const { runtime, run, question, childRun } = await ignored()

    expect(question).toMatchObject({ to: 'person', text: 'Which colour?', path: ['host', 'asker'] })
    expect(world.store.turn(childRun)).toMatchObject({ deadline: null, paused: { asks: 1 } })
    expect(eventsOfType(world.store, run.conversationId, 'question').map(({ to }) => to)).toEqual(['host', 'person'])
    expect((await runtime.audit()).findings).toEqual([])

    await runtime.answer(question?.nodeId ?? '', { text: 'red', by: 'ada' })
    await runtime.idle()
    expect(world.store.turn(childRun)).toMatchObject({ outcome: { status: 'completed' }, paused: null })
    expect(world.store.linksOf(run.id)[0]?.deliveredTo).not.toBeNull()
  })

  test('the host may answer still, in a later turn', async () => {
    const { runtime, run, host, childRun, childId } = await ignored()
    const later = runtime.run(host, `blue: ${childId}`, { conversationId: run.conversationId })
    await later.result
    await runtime.idle()

    expect(gaveIn(world.store, later.id)).toMatchObject([{ ok: true, status: 'answered' }])
    expect(world.store.turn(childRun)).toMatchObject({ outcome: { status: 'completed' }, paused: null })
    expect(await runtime.questions()).toEqual([])
  })

  test('a host without a model call left cannot answer: it is told, and a person is asked', async () => {
    const answering: Script = (request) => {
      const id = /"child_conversation_id":"([^"]+)"/.exec(lastSaid(request))?.[1]
      if (request.messages.at(-1)?.role === 'tool') return 'done'
      if (id === undefined) return { calls: [spawnCall()] }
      return call('subagent_send', { child_conversation_id: id, message: 'blue' })
    }
    const tools = { ...backgroundSubagents({ agent: askerOf() }) }
    const model = scriptedModel(answering)
    const host = agent({ name: 'host', instructions: 'Host.', model, tools, budget: { modelCalls: 2 } })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    const question = await soon(async () => (await runtime.questions())[0])

    expect(question).toMatchObject({ to: 'person', text: 'Which colour?' })
    expect(world.store.turnsOf(run.conversationId, { limit: 9 }).map(({ account }) => account.toolCalls)).toEqual([
      1, 0,
    ])
    await runtime.answer(question.nodeId, { text: 'red' })
    await runtime.idle()
  })

  test('a host that is not woken at all is no different', async () => {
    const { host } = hostOf(leaving, { agent: askerOf(), wake: 'passive' })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    await runtime.run(host, 'go').result
    const question = await soon(async () => (await runtime.questions())[0])
    expect(question).toMatchObject({ to: 'person', text: 'Which colour?' })
    await runtime.answer(question?.nodeId ?? '', { text: 'red' })
    await runtime.idle()
  })
})

describe('the time of a question that was passed on', () => {
  const world = useWorld(memoryRows)

  test('is a day: then the child goes on without the answer, whatever its own deadline was', async () => {
    const clock = fakeClock()
    const { host } = hostOf(leaving, { agent: askerOf() })
    const { runtime } = world.start({ agents: [host], clock, engine: { sweepMs: 3_600_000, leaseMs: 10_000_000 } })
    const run = runtime.run(host, 'go')
    await run.result
    await soon(async () => (await runtime.questions())[0])
    const [link] = world.store.linksOf(run.id)
    await clock.advance(23 * 3_600_000)
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(world.store.turn(link?.id ?? '')?.state).toBe('running')
    await clock.advance(2 * 3_600_000)
    const outcome = await untilTime(clock, () => world.store.turn(link?.id ?? '')?.outcome)
    expect(outcome.status).toBe('completed')
  })
})

describe.each(stores)('handle.send answers what the child asks, on %s', (_, create) => {
  const world = useWorld(create)

  test('a root of its own', async () => {
    const asker = askerOf()
    const { runtime } = world.start({ agents: [asker], engine: QUICK })
    const handle = await runtime.spawn(asker, 'go')
    const { question } = await soon(async () => {
      const poll = await handle.poll()
      return poll.question === null ? undefined : poll
    })
    await handle.send('blue')

    expect(question).toBe('Which colour?')
    expect(await handle.result()).toMatchObject({ status: 'completed', text: 'I was told blue' })
    expect(world.store.turnsOf(handle.conversationId, { limit: 9 })).toHaveLength(1)
    await handle.send('more')
    expect(await handle.result()).toMatchObject({ text: 'heard more' })
    expect((await handle.poll()).question).toBeNull()
  })

  test('a child of the running call, which awaits it', async () => {
    const asker = askerOf()
    const start = tool({
      description: 'Starts one.',
      input: { type: 'object' },
      effect: 'idempotent',
      execute: async () => {
        const handle: SpawnedAgent = await runtime.spawn(asker, 'go')
        await soon(async () => (await handle.poll()).question ?? undefined)
        await handle.send('green')
        return (await handle.result()).text
      },
    })
    const script: Script = (request) => resultsIn(request)[0] ?? call('start')
    const tools = { start, ...backgroundSubagents() }
    const host = agent({ name: 'host', instructions: 'Host.', model: scriptedModel(script), tools })
    const { runtime } = world.start({ agents: [host, asker], engine: QUICK })
    const run = runtime.run(host, 'go')

    expect((await run.result).text).toBe('I was told green')
    expect(world.store.linksOf(run.id)).toHaveLength(1)
    expect(eventsOfType(world.store, run.conversationId, 'answer')).toMatchObject([{ by: 'host', text: 'green' }])
  })

  test('a question to a person is not a question to the code: a message is one more turn', async () => {
    const asker = askerOf('ask_person')
    const { runtime } = world.start({ agents: [asker], engine: QUICK })
    const handle = await runtime.spawn(asker, 'go')
    const question = await soon(async () => (await runtime.questions())[0])
    await handle.send('more')

    expect((await handle.poll()).question).toBeNull()
    expect(await runtime.questions()).toHaveLength(1)
    await runtime.answer(question?.nodeId ?? '', { text: 'red' })
    expect(await handle.result()).toMatchObject({ text: 'heard more' })
  })
})
