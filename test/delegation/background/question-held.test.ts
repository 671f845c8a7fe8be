import { agent, type Budget, type Json, tool } from 'legate'
import { askTools, type BackgroundOptions, backgroundSubagents, type SpawnedAgent } from 'legate/background'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'
import { QUICK } from '../../support/process.ts'
import { eventsOfType } from '../../support/rows.ts'
import { memoryRows, stores } from '../../support/stores.ts'
import { call, data, gaveIn, hostOf, idIn, lastSaid, playing, resultsIn, spawnCall, tasksIn, until } from './support.ts'

/** Asks its host once if it is told to decide, and answers with what it was told. */
const deciding: Script = (request) => {
  const answers = resultsIn(request)
  if (!lastSaid(request).includes('decide')) return `did ${lastSaid(request)}`
  const ask = { name: 'ask_host', input: { question: 'Which colour?' } }
  const calls = lastSaid(request).includes('twice') ? [ask, ask] : [ask]
  return answers.length === 0 ? { calls } : `I was told ${answers}`
}

function askerOf(script: Script = deciding, name = 'asker') {
  return agent({ name, instructions: 'Ask.', model: scriptedModel(script), tools: { ...askTools() } })
}

interface Limits {
  readonly concurrency?: number
  readonly budget?: Budget
}

/** Calls its asker with these messages at once; answers what it is asked with `blue`. */
function consulting(messages: readonly string[], { concurrency, budget }: Limits) {
  const script: Script = (request) => {
    const results = resultsIn(request)
    if (results.length === 0) return { calls: messages.map((message) => ({ name: 'consult', input: { message } })) }
    const asks = data(results.find((result) => result.includes('"question"')) ?? '{}')
    if (results.length > messages.length || lastSaid(request).startsWith('[background]')) return 'done'
    return call('subagent_send', { child_conversation_id: asks['child_conversation_id'] ?? '', message: 'blue' })
  }
  return agent({
    name: 'host',
    instructions: 'Host.',
    model: scriptedModel(script),
    tools: { ...backgroundSubagents() },
    subagents: { consult: { agent: askerOf(), ...(concurrency === undefined ? {} : { concurrency }) } },
    ...(budget === undefined ? {} : { budget }),
  })
}

describe.each(stores)('a host never waits for a child that waits for it, on %s', (_, create) => {
  const world = useWorld(create)

  test.each<[string, Limits]>([
    ['key', { concurrency: 1 }],
    ['run', { budget: { concurrency: 1 } }],
    ['tree', { budget: { treeConcurrency: 1 } }],
  ])('a call that waits for room of its %s goes on in the background when who has it asks', async (_what, limits) => {
    const host = consulting(['decide', 'paint'], limits)
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    const { text } = await run.result
    await runtime.idle()

    const [asked, held, answered] = gaveIn(world.store, run.id)
    expect(text).toBe('done')
    expect(asked).toMatchObject({ status: 'question', question: 'Which colour?' })
    expect(held).toMatchObject({ ok: true, status: 'promoted' })
    expect(held?.['questions']).toMatchObject([
      { child_conversation_id: asked?.['child_conversation_id'], question: 'Which colour?' },
    ])
    expect(String(held?.['advice'])).toContain('subagent_send')
    expect(answered).toMatchObject({ status: 'answered' })
    const links = world.store.linksOf(run.id)
    expect(links.map(({ outcome }) => outcome?.status)).toEqual(['completed', 'completed'])
    expect(links.every(({ deliveredTo }) => deliveredTo !== null)).toBe(true)
  })

  test('a turn of a session that waits for the one that asks goes on in the background too', async () => {
    const script: Script = (request) => {
      const results = resultsIn(request)
      const id = idIn(results[0])
      if (lastSaid(request).startsWith('[background]')) return 'told'
      if (results.length === 0) return call('consult', { message: 'decide' })
      if (results.length === 1) return call('consult', { message: 'paint', session_id: id })
      if (results.length === 2) return call('subagent_send', { child_conversation_id: id, message: 'red' })
      return 'done'
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

    const [asked, second] = gaveIn(world.store, run.id)
    expect(second).toMatchObject({
      status: 'promoted',
      questions: [{ child_conversation_id: asked?.['child_conversation_id'], question: 'Which colour?' }],
    })
    expect(world.store.linksOf(run.id).map(({ outcome }) => outcome?.status)).toEqual(['completed', 'completed'])
  })

  test('a wait for a child whose question was told is over at once, also beside a call that takes its time', async () => {
    const slow = tool({
      description: 'Slow.',
      input: { type: 'object' },
      effect: 'pure',
      execute: () => new Promise((resolve) => setTimeout(() => resolve('slow'), 40)),
    })
    const model = scriptedModel(
      playing(
        () => ({ calls: [spawnCall('asker', 'decide')] }),
        () => call('subagent_wait'),
        () => ({
          calls: [
            { name: 'slow', input: {} },
            { name: 'subagent_wait', input: {} },
          ],
        }),
        (results) => call('subagent_send', { child_conversation_id: idIn(results[0]), message: 'red' }),
        () => call('subagent_wait'),
      ),
    )
    const tools = { slow, ...backgroundSubagents({ agent: askerOf() }) }
    const host = agent({ name: 'host', instructions: 'Host.', model, tools })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result

    const waits = tasksIn(world.store, run.id).filter(({ input }) => input.call?.name === 'subagent_wait')
    expect(waits.map(({ output }) => data(String(output.content))['status'])).toEqual(['question', 'question', 'met'])
  })

  test('a wait for a child that waits for room ends with the question of who has it', async () => {
    const first = makeGate()
    const model = scriptedModel(
      playing(
        () => ({ calls: [spawnCall('a', 'decide'), spawnCall('b', 'paint')] }),
        (results) => {
          first.open()
          return call('subagent_wait', { ids: [idIn(results[1])] })
        },
        (results) => call('subagent_send', { child_conversation_id: idIn(results[0]), message: 'red' }),
        () => call('subagent_wait'),
      ),
    )
    const asker = askerOf(async (request, at) => {
      await first.opened
      return deciding(request, at)
    })
    const tools = { ...backgroundSubagents({ agent: asker }) }
    const host = agent({ name: 'host', instructions: 'Host.', model, tools, budget: { concurrency: 1 } })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    const wait = gaveIn(world.store, run.id)[2]
    expect(wait).toMatchObject({ status: 'question' })
    expect(wait?.['children']).toMatchObject([
      { name: 'b', outcome: null },
      { name: 'a', question: 'Which colour?' },
    ])
    expect(gaveIn(world.store, run.id).at(-1)).toMatchObject({ status: 'met' })
  })
})

describe.each(stores)('several questions of one child, on %s', (_, create) => {
  const world = useWorld(create)

  test('are told one after the other, each once, and the answer goes to the one that was told', async () => {
    const asker = askerOf((request) => {
      const answers = resultsIn(request)
      if (answers.length > 0) return `answers: ${answers.join(', ')}`
      return { calls: ['Which colour?', 'Which size?'].map((question) => ({ name: 'ask_host', input: { question } })) }
    })
    const heard: string[] = []
    const script: Script = (request) => {
      const said = lastSaid(request)
      if (!said.startsWith('[background]'))
        return resultsIn(request).length === 0 ? { calls: [spawnCall()] } : 'started'
      const told = data(said.split('\n')[1])
      const results = request.messages.slice(request.messages.findLastIndex(({ role }) => role === 'user') + 1)
      const last = results.length === 0 ? told : data(String(results.at(-1)?.content))
      if (last['question'] === undefined) return String(last['text'] ?? 'answered')
      heard.push(String(last['question']))
      const id = last['child_conversation_id'] ?? ''
      return call('subagent_send', { child_conversation_id: id, message: `re ${last['question']}` })
    }
    const { host } = hostOf(script, { agent: asker })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    expect(heard).toEqual(['Which colour?', 'Which size?'])
    const [link] = world.store.linksOf(run.id)
    expect(link?.outcome?.status).toBe('completed')
    const answers = tasksIn(world.store, link?.id ?? '').map(({ output }) => output.content)
    expect(answers).toEqual(['re Which colour?', 're Which size?'])
  })

  test('a host that is idle is woken by the second when a person has answered the first', async () => {
    const asker = askerOf((request) => {
      const answers = resultsIn(request)
      if (answers.length > 0) return `answers: ${answers.join(', ')}`
      return { calls: ['Which colour?', 'Which size?'].map((question) => ({ name: 'ask_host', input: { question } })) }
    })
    const script: Script = (request) => {
      const said = lastSaid(request)
      if (!said.startsWith('[background]'))
        return resultsIn(request).length === 0 ? { calls: [spawnCall()] } : 'started'
      const told = data(said.split('\n')[1])
      if (told['question'] !== 'Which size?') return 'I leave that to a person.'
      if (request.messages.at(-1)?.role === 'tool') return 'answered'
      return call('subagent_send', { child_conversation_id: told['child_conversation_id'] ?? '', message: 'big' })
    }
    const { host } = hostOf(script, { agent: asker })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    const first = await until(() => {
      const [, woken] = world.store.turnsOf(run.conversationId, { limit: 9 })
      if (woken?.state !== 'ended') return undefined
      const [link] = world.store.linksOf(run.id)
      const asked = tasksIn(world.store, link?.id ?? '')
      return asked.filter(({ state }) => state === 'waiting').length === 2 ? asked[0] : undefined
    })
    await runtime.answer(first?.id ?? '', { text: 'blue' })
    await runtime.idle()

    const [link] = world.store.linksOf(run.id)
    expect(tasksIn(world.store, link?.id ?? '').map(({ output }) => output.content)).toEqual(['blue', 'big'])
  })
})

describe.each(stores)('a child as host, on %s', (_, create) => {
  const world = useWorld(create)

  /** A root that spawns a lead; the lead spawns an asker and does what it is told with its question. */
  function leadOf(lead: Script, budget: Budget = {}) {
    const asker = askerOf()
    const middle = agent({
      name: 'lead',
      instructions: 'Lead.',
      model: scriptedModel(lead),
      tools: { ...backgroundSubagents({ agent: asker, nested: true }) },
      budget,
    })
    return agent({
      name: 'root',
      instructions: 'Root.',
      model: scriptedModel((request) => (resultsIn(request).length > 0 ? 'over' : call('lead', { message: 'go' }))),
      subagents: { lead: middle },
    })
  }

  test.each<[string, Budget, readonly string[]]>([
    ['says its last word without an answer', {}, ['decide']],
    ['has no model call left', { modelCalls: 2 }, ['decide']],
    ['has another child that waits for room', { concurrency: 1 }, ['decide', 'paint']],
    ['is asked twice', {}, ['decide twice']],
  ])(
    'a child that %s: the child is told that nobody answers, and all come to an end',
    async (_what, budget, prompts) => {
      const root = leadOf(
        (request) =>
          resultsIn(request).length > 0 ? 'no' : { calls: prompts.map((prompt) => spawnCall('a', prompt)) },
        budget,
      )
      const { runtime } = world.start({ agents: [root], engine: QUICK })
      const run = runtime.run(root, 'go')
      const { text } = await run.result

      expect(text).toBe('over')
      const [lead] = world.store.linksOf(run.id)
      const [asker] = world.store.linksOf(lead?.id ?? '')
      const [question] = tasksIn(world.store, asker?.id ?? '')
      expect(question).toMatchObject({ state: 'finished', output: { isError: true } })
      expect(String(question?.output.content)).toContain('does not answer')
      expect(world.store.linksOf(lead?.id ?? '').every(({ outcome }) => outcome?.status === 'completed')).toBe(true)
      const answers = eventsOfType(world.store, run.conversationId, 'answer')
      expect(answers.every(({ by, text: said }) => by === 'nobody' && said === '')).toBe(true)
    },
  )
})

describe('a host that cannot answer is passed over for a person', () => {
  const world = useWorld(memoryRows)

  async function answerAll(runtime: ReturnType<typeof world.start>['runtime']): Promise<Json[]> {
    const found = await until(() => world.store.timed({ limit: 9 }).find(({ wait }) => wait?.on === 'question'))
    const questions = await runtime.questions()
    await runtime.answer(found.id, { text: 'purple' })
    return questions.map(({ to }) => to)
  }

  test('code that awaits what it has spawned', async () => {
    const asker = askerOf()
    const start = tool({
      description: 'Starts one.',
      input: { type: 'object' },
      effect: 'idempotent',
      execute: async () => {
        const handle: SpawnedAgent = await runtime.spawn(asker, 'decide')
        return (await handle.result()).text
      },
    })
    const model = scriptedModel(
      playing(
        () => call('start'),
        (results) => String(results[0]),
      ),
    )
    const tools = { start, ...backgroundSubagents() }
    const host = agent({ name: 'host', instructions: 'Host.', model, tools })
    const { runtime } = world.start({ agents: [host, asker], engine: QUICK })
    const run = runtime.run(host, 'go')

    expect(await answerAll(runtime)).toEqual(['person'])
    expect((await run.result).text).toBe('I was told purple')
  })

  test('a child that is a host and does not wait for its own', async () => {
    const asker = askerOf()
    const passive = backgroundSubagents({ agent: asker, nested: true, wake: 'passive' })
    const lead = agent({
      name: 'lead',
      instructions: 'Lead.',
      model: scriptedModel((request) =>
        resultsIn(request).length > 0 ? 'led' : { calls: [spawnCall('a', 'decide')] },
      ),
      tools: { ...passive },
    })
    const model = scriptedModel(playing(() => call('lead', { message: 'go' })))
    const root = agent({ name: 'root', instructions: 'Root.', model, subagents: { lead } })
    const { runtime } = world.start({ agents: [root], engine: QUICK })
    const run = runtime.run(root, 'go')
    await run.result

    expect(await answerAll(runtime)).toEqual(['person'])
    await runtime.idle()
  })

  test.each([
    ['that a call was promoted for, without subagent_send', { promoteAfterMs: 20 }, undefined],
    ['without subagent_send among its tools', {}, ['subagent_spawn']],
  ] as const)('a host that %s is passed over', async (_what, settings, names) => {
    const slow = makeGate()
    const asker = askerOf(async (request, at) => {
      await slow.opened
      return deciding(request, at)
    })
    const own = Object.entries(backgroundSubagents({ agent: asker } as BackgroundOptions))
    const tools = Object.fromEntries(own.filter(([name]) => names?.includes(name as never)))
    const begin = names === undefined ? { name: 'consult', input: { message: 'decide' } } : spawnCall('a', 'decide')
    const model = scriptedModel((request) => (resultsIn(request).length > 0 ? 'went on' : { calls: [begin] }))
    const host = agent({
      name: 'host',
      instructions: 'Host.',
      model,
      tools,
      ...(names === undefined ? { subagents: { consult: { agent: asker, ...settings } } } : {}),
    })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    slow.open()

    expect(await answerAll(runtime)).toEqual(['person'])
    await runtime.idle()
    expect(world.store.linksOf(run.id)[0]?.outcome?.status).toBe('completed')
  })
})
