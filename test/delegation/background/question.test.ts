import { agent } from 'legate'
import { askTools, backgroundSubagents } from 'legate/background'
import { fakeClock, type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../../support/agents.ts'
import { QUICK } from '../../support/process.ts'
import { eventsOfType } from '../../support/rows.ts'
import { memoryRows, stores } from '../../support/stores.ts'
import { call, data, gaveIn, hostOf, idIn, lastSaid, playing, resultsIn, spawnCall, tasksIn, until } from './support.ts'

/** Asks once, and answers with what it was told. */
const asking =
  (tool: string): Script =>
  (request) => {
    const [answer] = resultsIn(request)
    return answer === undefined ? call(tool, { question: 'Which colour?' }) : `I was told ${answer}`
  }

function askerOf(tool = 'ask_host', name = 'asker') {
  return agent({ name, instructions: 'Ask.', model: scriptedModel(asking(tool)), tools: { ...askTools() } })
}

describe.each(stores)('a child asks, is parked, and goes on with the answer, on %s', (_, create) => {
  const world = useWorld(create)

  test('the idle of the child host is woken by the question and answers with subagent_send', async () => {
    const { host, model } = hostOf(
      (request) => {
        const said = lastSaid(request)
        if (!said.startsWith('[background]'))
          return resultsIn(request).length === 0 ? { calls: [spawnCall()] } : 'started'
        const told = data(said.split('\n')[1])
        if (told['outcome'] === 'completed') return `end: ${told['text']}`
        if (request.messages.at(-1)?.role === 'tool') return 'answered'
        return call('subagent_send', { child_conversation_id: told['child_conversation_id'] ?? '', message: 'blue' })
      },
      { agent: askerOf() },
    )
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    const turns = world.store.turnsOf(run.conversationId, { limit: 9 })
    expect(turns).toHaveLength(3)
    const said = lastSaid(model.requests.at(-1) ?? { messages: [] })
    expect(said).toContain('I was told blue')
    expect(gaveIn(world.store, turns[1]?.id ?? '')).toMatchObject([{ ok: true, status: 'answered' }])
    expect(eventsOfType(world.store, run.conversationId, 'question')).toMatchObject([
      { to: 'host', text: 'Which colour?' },
    ])
    expect(eventsOfType(world.store, run.conversationId, 'answer')).toMatchObject([{ by: 'host', text: 'blue' }])
  })

  test('a host that waits for it gets the question as the end of its wait', async () => {
    const { host, model } = hostOf(
      playing(
        () => ({ calls: [spawnCall()] }),
        () => call('subagent_wait'),
        (results) => call('subagent_send', { child_conversation_id: idIn(results[0]), message: 'red' }),
        () => call('subagent_wait'),
        (results) => String(results.at(-1)),
      ),
      { agent: askerOf() },
    )
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    const { text } = await run.result
    await runtime.idle()

    const [, asked, answered] = gaveIn(world.store, run.id)
    expect(asked).toMatchObject({ status: 'question', children: [{ question: 'Which colour?', outcome: null }] })
    expect(answered).toMatchObject({ status: 'answered' })
    expect(data(text)).toMatchObject({ status: 'met', children: [{ text: 'I was told red' }] })
    expect(model.requests).toHaveLength(5)
    expect(world.store.turnsOf(run.conversationId, { limit: 9 })).toHaveLength(1)
  })

  test('a call that waits for its child is promoted by the question, if its host can answer', async () => {
    const script: Script = (request) => {
      const results = resultsIn(request)
      if (lastSaid(request).startsWith('[background]')) return `told: ${lastSaid(request)}`
      if (results.length === 0) return call('consult', { message: 'decide' })
      if (results.length > 1) return 'done'
      return call('subagent_send', { child_conversation_id: idIn(results[0]), message: 'green' })
    }
    const host = agent({
      name: 'host',
      instructions: 'Host.',
      model: scriptedModel(script),
      tools: { ...backgroundSubagents() },
      subagents: { consult: askerOf() },
    })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    const [asked] = gaveIn(world.store, run.id)
    const [link] = world.store.linksOf(run.id)
    expect(asked).toMatchObject({
      status: 'question',
      question: 'Which colour?',
      child_conversation_id: link?.childConversationId,
    })
    expect(link).toMatchObject({ mode: 'background', contract: 'message', outcome: { status: 'completed' } })
    expect(world.store.linksOf(run.id)).toHaveLength(1)
    const told = world.store.turnsOf(run.conversationId, { limit: 9 })[1]
    expect(world.store.nodesOf(told?.id ?? '')[0]?.input.content).toContain('I was told green')
  })

  test('a host without the tools to answer is passed over: a person is asked, and the clock stands still', async () => {
    const host = agent({
      name: 'host',
      instructions: 'Host.',
      model: scriptedModel(
        playing(
          () => call('consult', { message: 'decide' }),
          (results) => String(results[0]),
        ),
      ),
      subagents: { consult: askerOf() },
    })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await until(() => world.store.timed({ limit: 1 })[0])
    const [question] = await runtime.questions()
    expect(question).toMatchObject({ to: 'person', text: 'Which colour?', path: ['host', 'asker'] })
    expect(world.store.turn(run.id)).toMatchObject({ deadline: null, paused: { asks: 1 } })

    await runtime.answer(question?.nodeId ?? '', { text: 'purple', by: 'ada' })
    const { text } = await run.result

    expect(text).toContain('I was told purple')
    expect(world.store.turn(run.id)?.paused).toBeNull()
    expect(eventsOfType(world.store, run.conversationId, 'answer')).toMatchObject([{ by: 'ada' }])
    await expect(runtime.answer(question?.nodeId ?? '', { text: 'again' })).rejects.toThrow('has no open question')
    await expect(runtime.answer(question?.nodeId ?? '', { text: ' ' })).rejects.toThrow('not empty')
  })

  test('ask_person asks a person from anywhere, also at the root; the process that asked may be gone', async () => {
    const asker = askerOf('ask_person')
    const first = world.start({ agents: [asker], engine: QUICK })
    const run = first.runtime.run(asker, 'go')
    await until(() => tasksIn(world.store, run.id).find(({ state }) => state === 'waiting'))
    await first.kill()
    const second = world.start({ agents: [asker], engine: QUICK })
    const [resumed] = await second.runtime.resume()
    const [question] = await second.runtime.questions()
    await second.runtime.answer(question?.nodeId ?? '', { text: 'white' })

    expect((await resumed?.result)?.text).toBe('I was told white')
    expect(await second.runtime.questions()).toEqual([])
  })
})

describe('questions nobody answers', () => {
  const world = useWorld(memoryRows)

  test('end after a day, and the agent is told so', async () => {
    const clock = fakeClock()
    const asker = askerOf('ask_person')
    const { runtime } = world.start({ agents: [asker], clock, engine: { sweepMs: 3_600_000, leaseMs: 10_000_000 } })
    const run = runtime.run(asker, 'go')
    await until(() => tasksIn(world.store, run.id).find(({ state }) => state === 'waiting'))
    await clock.advance(24 * 3_600_000 + 1)

    expect((await run.result).text).toContain('Nobody answered in time')
  })

  test.each([
    ['', 'question_is_required'],
    [7, 'question_is_required'],
    ['x'.repeat(9_000), 'question_is_too_long'],
  ])('an empty question is refused', async (question, code) => {
    const model = scriptedModel(playing(() => call('ask_person', { question })))
    const asker = agent({ name: 'asker', instructions: 'x', model, tools: { ...askTools() } })
    const { runtime } = world.start({ agents: [asker], engine: QUICK })
    const run = runtime.run(asker, 'go')
    await run.result

    const [task] = tasksIn(world.store, run.id)
    expect(task?.output.metadata?.['validation_error']).toMatchObject({ code: `ask_person.${code}` })
  })

  test('are stopped with their run', async () => {
    const asker = askerOf('ask_person')
    const { runtime } = world.start({ agents: [asker], engine: QUICK })
    const run = runtime.run(asker, 'go')
    await until(() => tasksIn(world.store, run.id).find(({ state }) => state === 'waiting'))
    await run.cancel()

    expect((await run.result).status).toBe('cancelled')
    expect(await runtime.questions()).toEqual([])
    expect(world.store.turn(run.id)?.paused).toBeNull()
  })
})

describe("a person does not write into a child that is its host's", () => {
  const world = useWorld(memoryRows)

  test('a message is refused', async () => {
    const worker = askerOf()
    const { host } = hostOf(
      playing(() => ({ calls: [spawnCall()] })),
      { agent: worker },
    )
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    const [link] = world.store.linksOf(run.id)
    const written = runtime.run(worker, 'psst', { conversationId: link?.childConversationId ?? '' })

    await expect(written.result).rejects.toThrow('only its host can go on with it')
    await runtime.cancel(run.id)
    await runtime.idle()
  })
})
