import { setTimeout as sleep } from 'node:timers/promises'
import { agent, type Run } from 'legate'
import { getKeyResult, startWaiter, waitKeys, whenKey } from 'legate/compat'
import { FieldError } from 'legate/fields'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { eventsOf, only, openRuntime } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { doneIn, heldModel, linesOf, PLAN, Plan } from './support.ts'

const planner = (turns: Parameters<typeof scriptedModel>[0]) =>
  agent({ name: 'planner', instructions: 'Plan.', output: Plan, model: scriptedModel(turns) })

const letters = (text: string) => ({ chunks: [...text] })

describe('the fields of a run', () => {
  test('a field is there when it is complete, before the answer ends', async () => {
    const { model, say, end } = heldModel()
    const run = openRuntime().run(agent({ name: 'a', instructions: '', output: Plan, model }), 'go')

    const thinking = run.field('thinking')
    say('{"thinking":"two thi')
    say('ngs","tasks":[')
    expect(await thinking).toBe('two things')
    const tasks = run.fields('tasks[*]')[Symbol.asyncIterator]()
    say('{"title":"pack","hours":3}')
    const first = await tasks.next()
    say('],"reply":"ok"}')
    end()

    expect(first.value).toMatchObject({ dot: 'tasks[0]', value: { title: 'pack', hours: 3 }, issues: [], attempt: 1 })
    expect((await run.result).output).toMatchObject({ reply: 'ok' })
    expect(await tasks.next()).toEqual({ value: undefined, done: true })
  })

  test('many readers, early and late, see the same from the beginning', async () => {
    const runtime = openRuntime()
    const run = runtime.run(planner([letters(`Here it is:\n\`\`\`json\n${PLAN}\n\`\`\``)]), 'go')

    const early = await Promise.all([doneIn(run), doneIn(run), doneIn(run, 'tasks[*].title')])
    await run.result
    const late = await Promise.all([doneIn(run), doneIn(await runtime.attach(run.id), '/tasks/*/title')])

    expect(early[0]).toEqual([
      'thinking="two things"',
      'tasks[0].title="pack"',
      'tasks[0].hours=3',
      'tasks[0]={"title":"pack","hours":3}',
      'tasks[1].title="drive"',
      'tasks[1].hours=5',
      'tasks[1]={"title":"drive","hours":5}',
      'tasks=[{"title":"pack","hours":3},{"title":"drive","hours":5}]',
      'reply="Go é."',
      `=${PLAN}`,
    ])
    expect(early[1]).toEqual(early[0])
    expect(late[0]).toEqual(early[0])
    expect(early[2]).toEqual(['tasks[0].title="pack"', 'tasks[1].title="drive"'])
    expect(late[1]).toEqual(early[2])
  })

  test('partial ones grow by deltas that make up the value', async () => {
    const run = openRuntime().run(planner([letters(PLAN)]), 'go')

    const lines = await linesOf(run.fields('reply', { partial: true }))

    expect(lines.at(-1)).toBe('1 done reply "Go é."')
    const deltas = lines.filter((line) => line.startsWith('1 delta reply '))
    expect(deltas.map((line) => line.slice('1 delta reply '.length)).join('')).toBe('Go é.')
    expect(deltas.length).toBeGreaterThan(2)
  })

  test('a field that does not fit is told so at once', async () => {
    const { model, say, end } = heldModel()
    const run = openRuntime().run(agent({ name: 'a', instructions: '', output: Plan, model }), 'go')
    const tasks = run.fields('tasks[*]')[Symbol.asyncIterator]()

    say('{"tasks":[{"title":"drive","hours":12}')
    const { value } = await tasks.next()

    expect(value.issues).toMatchObject([{ path: ['tasks', 0, 'hours'] }])
    await run.cancel()
    end()
  })

  test('a reader that stops stops nothing else; cancel does', async () => {
    const { model, say, end } = heldModel()
    const runtime = openRuntime()
    const run = runtime.run(agent({ name: 'a', instructions: '', output: Plan, model }), 'go')
    say('{"thinking":"x",')
    for await (const _ of run.fields()) break
    expect(localStore(runtime).turn(run.id)?.state).toBe('running')
    say('"tasks":[],"reply":"y"}')
    end()
    expect((await run.result).status).toBe('completed')

    const other = runtime.run(agent({ name: 'a', instructions: '', output: Plan, model: heldModel().model }), 'go')
    const waiting = other.field('thinking')
    await other.cancel('enough')

    await expect(waiting).rejects.toMatchObject({ code: 'field', reason: 'aborted' })
    expect((await other.result).status).toBe('cancelled')
  })

  test('a reader closes at once, also when nothing comes', async () => {
    const run = openRuntime().run(agent({ name: 'a', instructions: '', output: Plan, model: heldModel().model }), 'go')
    const readers = [run.fields(), waitKeys(run, ['reply']), run.events({ fields: true })]
    for (const reader of readers) {
      const iterator = reader[Symbol.asyncIterator]()
      const waiting = (async () => {
        for (;;) if ((await iterator.next()).done) return true
      })()
      await sleep(5)

      await iterator.return?.()

      expect(await waiting).toBe(true)
    }
    await run.cancel()
  })

  test('an agent without output has no fields, and an invalid path is refused', async () => {
    const run = openRuntime().run(agent({ name: 'a', instructions: '', model: scriptedModel(['hi']) }), 'go') as Run

    expect(() => run.fields('x')).toThrow(/has no output/)
    expect(() => run.onField('x', () => 1)).toThrow(/has no output/)
    await expect(run.field('x')).rejects.toMatchObject({ code: 'definition' })
    await expect(getKeyResult(run, 'x')).rejects.toMatchObject({ code: 'definition' })
    const other = openRuntime().run(planner([PLAN]), 'go') as Run
    expect(() => other.fields('a[')).toThrow(/is no path/)
    expect(() => other.onField('reply', 5 as never)).toThrow(/is a function/)
    await expect(other.field('reply', { timeoutMs: Number.NaN })).rejects.toMatchObject({ code: 'definition' })
  })

  test('text beside tool calls is not an answer', async () => {
    const model = scriptedModel([
      { text: '{"thinking":"let me look"', calls: [{ name: 'nothing', input: {} }] },
      letters(PLAN),
    ])
    const runtime = openRuntime()
    const run = runtime.run(agent({ name: 'a', instructions: '', output: Plan, model }), 'go')

    const live = await linesOf(run.fields('thinking', { partial: true }))
    const late = await linesOf(run.fields('thinking', { partial: true }))

    expect(live.at(-1)).toBe('1 done thinking "two things"')
    expect(live.filter((line) => line.includes('reset')).length).toBeLessThanOrEqual(1)
    expect(late).toEqual(['1 delta thinking two things', '1 done thinking "two things"'])
  })

  test('a call that is made again begins anew', async () => {
    const cut = { text: '{"thinking":"half', error: Object.assign(new Error('gone'), { statusCode: 503 }) }
    const run = openRuntime().run(planner([cut, letters(PLAN)]), 'go')

    const lines = await linesOf(run.fields('thinking', { partial: true }))
    const late = await linesOf(run.fields('thinking'))

    expect(lines.slice(0, 2)).toEqual(['1 delta thinking half', '2 reset  undefined'])
    expect(lines.at(-1)).toBe('2 done thinking "two things"')
    expect(late).toEqual(['2 done thinking "two things"'])
  })
})

describe('a field that does not come is', () => {
  const failureOf = async (turns: Parameters<typeof scriptedModel>[0], path: string) => {
    const run = openRuntime().run(planner(turns), 'go') as Run
    const error = await run.field(path).catch((thrown: unknown) => thrown)
    if (!FieldError.isInstance(error)) throw error
    return error
  }

  test('absent when the answer has none; null is a value', async () => {
    const Out = z.object({ a: z.null(), b: z.string().optional() })
    const run = openRuntime().run(
      agent({ name: 'a', instructions: '', output: Out, model: scriptedModel(['{"a":null}']) }),
      'go',
    )

    expect(await run.field('a')).toBeNull()
    await expect(run.field('b')).rejects.toMatchObject({
      reason: 'absent',
      message: 'The field b is not in the answer.',
    })
    expect(await run.field('b', { default: 7 })).toBe(7)
    expect(await run.field('b', { default: undefined })).toBeUndefined()
  })

  test('truncated when the answer ends inside it, with what there was', async () => {
    const error = await failureOf(['{"thinking":"a","reply":"hal', '{"thinking":"a","reply":"half'], 'reply')

    expect(error).toMatchObject({ reason: 'truncated', partial: 'half' })
    expect(error.message).toMatch(/The run ended invalid_output/)
  })

  test('invalid when it does not fit, with the issues', async () => {
    const bad = '{"thinking":"a","tasks":[{"title":"x","hours":9}],"reply":"b"}'

    expect(await failureOf([bad, bad], 'tasks[0].hours')).toMatchObject({
      reason: 'invalid',
      partial: 9,
      details: { issues: [{ path: ['tasks', 0, 'hours'] }] },
    })
  })

  test('absent when the model failed before it said anything', async () => {
    const error = await failureOf([{ error: new Error('no key') }], 'reply')

    expect(error).toMatchObject({ reason: 'absent', message: expect.stringContaining('no key') })
  })

  test('too late after a time, and the run goes on', async () => {
    const { model, say, end } = heldModel()
    const run = openRuntime().run(agent({ name: 'a', instructions: '', output: Plan, model }), 'go')

    await expect(run.field('reply', { timeoutMs: 20 })).rejects.toMatchObject({ reason: 'timeout' })
    say(PLAN)
    end()

    expect(await run.field('reply', { timeoutMs: 1_000 })).toBe('Go é.')
  })

  test('aborted when the runtime was closed', async () => {
    const runtime = openRuntime({ engine: { graceMs: 0 } })
    const run = runtime.run(agent({ name: 'a', instructions: '', output: Plan, model: heldModel().model }), 'go')
    const waiting = run.field('reply')
    const settled = expect(waiting).rejects.toMatchObject({ reason: 'aborted' })
    await sleep(5)

    await runtime.close()

    await settled
  })
})

describe('handlers', () => {
  test('are called while the answer goes on; what each made comes in the order of the fields', async () => {
    const { model, say, end } = heldModel()
    const run = openRuntime().run(agent({ name: 'a', instructions: '', output: Plan, model }), 'go')
    const called: string[] = []
    run
      .onField('reply', (reply) => reply.length)
      .onField('tasks[*]', async ({ title }, { indexes }) => {
        called.push(title)
        await sleep(title === 'pack' ? 20 : 1)
        if (title === 'drive') throw new Error('no car')
        return indexes
      })
      .onField('tasks[*]', ({ hours }) => hours)

    say('{"thinking":"x","tasks":[{"title":"pack","hours":3},')
    await expect.poll(() => called).toEqual(['pack'])
    say('{"title":"drive","hours":5}],"reply":"Go."}')
    end()
    const results = await run.settled()

    expect(results).toEqual([
      { path: 'tasks[0]', value: { title: 'pack', hours: 3 }, status: 'fulfilled', result: [0] },
      { path: 'tasks[0]', value: { title: 'pack', hours: 3 }, status: 'fulfilled', result: 3 },
      { path: 'tasks[1]', value: { title: 'drive', hours: 5 }, status: 'rejected', reason: new Error('no car') },
      { path: 'tasks[1]', value: { title: 'drive', hours: 5 }, status: 'fulfilled', result: 5 },
      { path: 'reply', value: 'Go.', status: 'fulfilled', result: 3 },
    ])
  })

  test('belong to one run, whose result is there without another request', async () => {
    const model = scriptedModel(() => PLAN)
    const one = agent({ name: 'a', instructions: '', output: Plan, model })
    const runtime = openRuntime()
    const calls: string[] = []
    const first = runtime.run(one, 'go').onField('reply', (reply) => calls.push(reply))
    await first.settled()

    const second = runtime.run(one, 'go')

    expect(await second.settled()).toEqual([])
    expect((await first.result).output?.reply).toBe('Go é.')
    expect(calls).toEqual(['Go é.'])
    expect(model.requests.length).toBe(2)
  })

  test('get a value that fits once, however often the answer is asked for', async () => {
    const bad = PLAN.replace('"hours":5', '"hours":50')
    const run = openRuntime().run(planner([letters(bad), letters(PLAN)]), 'go')
    const seen: string[] = []
    run.onField('tasks[*]', ({ title, hours }, { attempt }) => seen.push(`${attempt} ${title} ${hours}`))

    await run.settled()

    expect(seen).toEqual(['1 pack 3', '2 drive 5'])
  })
})

describe('the names of the key waiter', () => {
  test('keys in the order in which they are complete, each once', async () => {
    const run = openRuntime().run(planner([letters(PLAN)]), 'go')

    const found: [string, unknown][] = []
    for await (const pair of waitKeys(run, ['reply', 'thinking', 'tasks[*].title'])) found.push(pair)

    expect(found).toEqual([
      ['thinking', 'two things'],
      ['tasks[0].title', 'pack'],
      ['reply', 'Go é.'],
    ])
  })

  test('mustInPrompt takes keys that the schema has, and no other', async () => {
    const run = openRuntime().run(planner([PLAN]), 'go') as Run
    const must = { mustInPrompt: true }

    expect(await getKeyResult(run, 'reply', must)).toBe('Go é.')
    expect(await getKeyResult(run, '/tasks/1/title', must)).toBe('drive')
    await expect(getKeyResult(run, 'replay', must)).rejects.toMatchObject({ code: 'invalid_input' })
    expect(() => waitKeys(run, ['reply', 'tasks[*].name'], must)).toThrow(/no such key/)
    expect(() => whenKey(run, 'constructor', () => 1, must)).toThrow(/no such key/)
    await expect(getKeyResult(run, 'replay')).rejects.toMatchObject({ reason: 'absent' })
  })

  test('startWaiter gives what handlers made, and needs some', async () => {
    const run = openRuntime().run(planner([PLAN]), 'go')
    await expect(startWaiter(run)).rejects.toMatchObject({ code: 'invalid_input' })

    const results = await startWaiter(whenKey(run, 'reply', (reply) => reply.toUpperCase()))

    expect(results).toEqual([{ path: 'reply', value: 'Go é.', status: 'fulfilled', result: 'GO É.' }])
  })
})

describe('below a run', () => {
  const worker = (forward?: object) => ({
    work: {
      agent: agent({
        name: 'worker',
        instructions: '',
        output: z.object({ found: z.array(z.number()) }),
        model: scriptedModel([{ chunks: ['{"found":[1', ',2]}'] }]),
      }),
      ...forward,
    },
  })
  const host = (subagents: ReturnType<typeof worker>) =>
    agent({
      name: 'host',
      instructions: '',
      subagents,
      output: z.object({ sum: z.number() }),
      model: scriptedModel([{ calls: [{ name: 'work', input: { message: 'go' } }] }, '{"sum":3}']),
    })

  test("a child's fields are seen in its host's run, with the path of agents", async () => {
    const run = openRuntime().run(host(worker()), 'go')

    const found: string[] = []
    for await (const { agentPath, dot, value } of run.fields('found[*]', { agent: 'worker' })) {
      found.push(`${agentPath.join('/')} ${dot} ${value}`)
    }
    const all: string[] = []
    for await (const { agentPath, dot } of run.fields(undefined, { agent: '*' })) all.push(`${agentPath.at(-1)} ${dot}`)

    expect(found).toEqual(['host/worker found[0] 1', 'host/worker found[1] 2'])
    expect(all).toEqual(['worker found[0]', 'worker found[1]', 'worker found', 'worker ', 'host sum', 'host '])
    expect(await doneIn(run as Run)).toEqual(['sum=3', '={"sum":3}'])
  })

  test('and only where they are forwarded, whatever else is', async () => {
    const hidden = openRuntime().run(host(worker({ forwardEvents: ['message'] })), 'go')
    const shown = openRuntime().run(host(worker({ forwardEvents: ['field'] })), 'go')
    const grown = openRuntime().run(host(worker({ streamOptions: { incremental: false } })), 'go')

    expect(await linesOf(hidden.fields('found', { agent: 'worker' }))).toEqual([])
    expect(await linesOf(shown.fields('found', { agent: 'worker' }))).toEqual(['1 done found [1,2]'])
    expect(await linesOf(grown.fields('found', { agent: 'worker' }))).toEqual(['1 done found [1,2]'])
  })

  test('events({ fields: true }) tells each field behind the event that completes it', async () => {
    const run = openRuntime().run(host(worker({ forwardEvents: ['field'] })), 'go')

    const events = await eventsOf(run.events({ fields: true }))

    const fields = only(events, 'field')
    expect(fields.map(({ path, field, value }) => [path.at(-1), field, value])).toEqual([
      ['worker', 'found[0]', 1],
      ['worker', 'found[1]', 2],
      ['worker', 'found', [1, 2]],
      ['worker', '', { found: [1, 2] }],
      ['host', 'sum', 3],
      ['host', '', { sum: 3 }],
    ])
    expect(events.filter(({ type, path }) => type !== 'field' && path.at(-1) === 'worker')).toEqual([])
    expect(only(await eventsOf(run), 'field')).toEqual([])
    const seq = fields[4]?.seq ?? 0
    expect(only(await eventsOf(run.events({ fields: true, after: seq })), 'field').length).toBeLessThan(6)
  })
})
