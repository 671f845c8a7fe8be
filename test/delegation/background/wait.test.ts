import type { Json } from 'legate'
import { fakeClock, type Script } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { joinStatus } from '../../../src/core/graph/kinds.ts'
import { useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'
import { QUICK } from '../../support/process.ts'
import { memoryRows, stores } from '../../support/stores.ts'
import {
  call,
  data,
  gaveIn,
  hostOf,
  idIn,
  lastSaid,
  playing,
  resultsIn,
  spawnCall,
  tasksIn,
  until,
  untilTime,
  workerOf,
} from './support.ts'

describe.each<[Parameters<typeof joinStatus>[0], (string | null)[], string | undefined]>([
  ['all', [null, 'completed'], undefined],
  ['all', ['completed', 'completed'], 'met'],
  ['all', [null, 'failed'], 'not_met'],
  ['any', [null, 'failed'], undefined],
  ['any', [null, 'completed'], 'met'],
  ['any', ['failed', 'cancelled'], 'not_met'],
  [2, ['completed', null, null], undefined],
  [2, ['completed', null, 'completed'], 'met'],
  [2, ['failed', 'failed', null], 'not_met'],
  [5, ['completed', null], 'not_met'],
  ['settled', ['failed', null], undefined],
  ['settled', ['failed', 'completed'], 'met'],
  ['settled', [], 'met'],
  ['all', [], 'met'],
])('join %j over %j', (join, outcomes, status) => {
  test(`is ${status ?? 'not over'}`, () => {
    expect(joinStatus(join, outcomes)).toBe(status)
  })
})

describe.each(stores)('waiting for children in the background, on %s', (_, create) => {
  const world = useWorld(create)

  test('any, and the losers are cancelled', async () => {
    const { host, model } = hostOf(
      playing(
        () => ({ calls: [spawnCall('slow', 'slow'), spawnCall('quick', 'quick'), spawnCall('bad', 'bad')] }),
        () => call('subagent_wait', { join: 'any', losers: 'cancel' }),
      ),
      { agent: workerOf(byPrompt) },
    )
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    const gave = gaveIn(world.store, run.id).at(-1)
    expect(gave).toMatchObject({ ok: true, status: 'met', join: 'any' })
    expect(childrenOf(gave)['quick']).toMatchObject({ outcome: 'completed', text: 'quick done' })
    expect(childrenOf(gave)['slow']).toMatchObject({ outcome: null, cancelled: true })
    const links = world.store.linksOf(run.id)
    expect(links.map(({ outcome }) => outcome?.status)).toEqual(['cancelled', 'completed', 'failed'])
    expect(world.store.turnsOf(run.conversationId, { limit: 9 }).length).toBeLessThanOrEqual(2)
    expect(model.requests.length).toBeLessThanOrEqual(4)
  })

  test('a quorum of two, and partial failures are seen', async () => {
    const { host } = hostOf(
      playing(
        () => ({ calls: ['quick', 'bad', 'quick', 'slow'].map((prompt, at) => spawnCall(`w${at}`, prompt)) }),
        () => call('subagent_wait', { join: 2, losers: 'cancel' }),
      ),
      { agent: workerOf(byPrompt) },
    )
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    const gave = gaveIn(world.store, run.id).at(-1)
    expect(gave).toMatchObject({ status: 'met', join: 2 })
    expect(childrenOf(gave)).toMatchObject({ w0: { outcome: 'completed' }, w2: { outcome: 'completed' } })
  })

  test('all is over as soon as one has failed; settled waits for the rest', async () => {
    const { host } = hostOf(
      playing(
        () => ({ calls: [spawnCall('slow', 'slower'), spawnCall('bad', 'bad')] }),
        () => call('subagent_wait', { join: 'all' }),
        () => call('subagent_wait', { join: 'settled' }),
      ),
      { agent: workerOf(byPrompt) },
    )
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result

    const [, , all, settled] = gaveIn(world.store, run.id)
    expect(all).toMatchObject({ status: 'not_met' })
    expect(childrenOf(all)).toMatchObject({ bad: { outcome: 'failed', error: 'went wrong' }, slow: { outcome: null } })
    // What the first wait has told is not asked for again.
    expect(settled).toMatchObject({ status: 'met', children: [{ name: 'slow', outcome: 'completed' }] })
  })

  test('a wait that is over goes on without the child, which goes on too', async () => {
    const slow = makeGate()
    const { host, model } = hostOf(
      playing(
        () => ({ calls: [spawnCall()] }),
        () => call('subagent_wait', { timeout_ms: 30 }),
        () => {
          slow.open()
          return call('subagent_wait', { timeout_ms: 60_000 })
        },
      ),
      {
        agent: workerOf(async () => {
          await slow.opened
          return 'late'
        }),
      },
    )
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result

    const [, first, second] = gaveIn(world.store, run.id)
    expect(first).toMatchObject({ status: 'timed_out', children: [{ outcome: null, status: 'running' }] })
    expect(second).toMatchObject({ status: 'met', children: [{ outcome: 'completed', text: 'late' }] })
    expect(model.requests).toHaveLength(4)
  })

  test('all processes are gone while a host waits; the next one goes on when the child has ended', async () => {
    const slow = makeGate()
    const { host, model } = hostOf(
      playing(
        () => ({ calls: [spawnCall()] }),
        () => call('subagent_wait'),
      ),
      {
        agent: workerOf(async () => {
          await slow.opened
          return 'worked'
        }),
      },
    )
    const first = world.start({ agents: [host], engine: QUICK })
    const run = first.runtime.run(host, 'go')
    const wait = await until(() => tasksIn(world.store, run.id).find(({ state }) => state === 'waiting'))
    expect(wait).toMatchObject({ engineId: null, wait: { on: 'children', refs: [world.store.linksOf(run.id)[0]?.id] } })
    await first.kill()
    slow.open()
    const second = world.start({ agents: [host], engine: QUICK })
    const [resumed] = await second.runtime.resume()
    const outcome = await resumed?.result

    expect(outcome?.status).toBe('completed')
    expect(model.requests).toHaveLength(3)
  })

  test('subagent_run waits for the answer; if it takes too long the child goes on, and is told of later', async () => {
    const slow = makeGate()
    const { host, model } = hostOf(
      playing(
        () => call('subagent_run', { name: 'quick', prompt: 'quick' }),
        () => call('subagent_run', { name: 'gated', prompt: 'gated', timeout_ms: 20 }),
      ),
      {
        agent: workerOf(async (request) => {
          if (lastSaid(request) === 'gated') await slow.opened
          return `${lastSaid(request)} done`
        }),
      },
    )
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    const { open } = await run.result
    const [quick, gated] = gaveIn(world.store, run.id)

    expect(quick).toMatchObject({ status: 'met', children: [{ name: 'quick', text: 'quick done' }] })
    expect(gated).toMatchObject({ status: 'timed_out', children: [{ name: 'gated', outcome: null }] })
    expect(open).toHaveLength(1)
    slow.open()
    await runtime.idle()
    expect(lastSaid(model.requests.at(-1) ?? { messages: [] })).toContain('gated done')
  })

  test('a message to a running child is heard after what it does; one to an idle child at once', async () => {
    const slow = makeGate()
    const heard: string[] = []
    const { host } = hostOf(
      playing(
        () => ({ calls: [spawnCall('x', 'one')] }),
        (results) => call('subagent_send', { child_conversation_id: idIn(results[0]), message: 'two' }),
        () => {
          slow.open()
          return call('subagent_wait')
        },
        (results) => call('subagent_send', { child_conversation_id: idIn(results[0]), message: 'three' }),
        () => call('subagent_wait'),
      ),
      {
        agent: workerOf(async (request) => {
          if (lastSaid(request) === 'one') await slow.opened
          heard.push(lastSaid(request))
          return `after ${lastSaid(request)}`
        }),
      },
    )
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    const [, sent, both, , last] = gaveIn(world.store, run.id)
    expect(sent).toMatchObject({ ok: true, status: 'sent' })
    expect(heard).toEqual(['one', 'two', 'three'])
    expect(both?.['children']).toMatchObject([{ text: 'after one' }, { text: 'after two' }])
    expect(last).toMatchObject({ children: [{ text: 'after three' }] })
    expect(world.store.linksOf(run.id).every(({ deliveredTo }) => deliveredTo !== null)).toBe(true)
  })
})

describe('reading what a child has said', () => {
  const world = useWorld(memoryRows)

  test('an answer of 200 kB is read whole, in pages, with how it ended', async () => {
    const answer = Array.from({ length: 25_000 }, (_, at) => `語${at}🙂 `).join('')
    let read = ''
    const script: Script = (request) => {
      const results = resultsIn(request)
      if (results.length === 0) return { calls: [spawnCall()] }
      if (results.length === 1) return call('subagent_wait')
      const page = data(results.at(-1))
      if (results.length > 2) read += String(page['text'])
      const next = results.length === 2 ? 0 : (page['next_offset'] as number | null)
      return next === null ? 'done' : call('subagent_result', { child_conversation_id: idIn(results[0]), offset: next })
    }
    const { host } = hostOf(script, {
      agent: workerOf(() => ({ text: answer, usage: { inputTokens: 3, outputTokens: 4 } })),
    })
    const { runtime } = world.start({ agents: [host], engine: QUICK, budget: { modelCalls: 100 } })
    const run = runtime.run(host, 'go')
    await run.result

    const [, wait, page] = gaveIn(world.store, run.id)
    expect(read).toBe(answer)
    expect(Buffer.byteLength(answer)).toBeGreaterThan(200_000)
    expect(Buffer.byteLength(JSON.stringify(wait))).toBeLessThan(12_000)
    expect(childrenOf(wait)['worker']).toMatchObject({ text_cut: true, text_chars: answer.length })
    expect(page).toMatchObject({
      outcome: 'completed',
      error: null,
      duration_ms: world.store.linksOf(run.id)[0]?.outcome?.durationMs,
      turns: 1,
      usage: { input_tokens: 3, output_tokens: 4 },
    })
  })

  test('subagent_list names them all, the newest first, with what they do', async () => {
    const slow = makeGate()
    const { host } = hostOf(
      playing(
        () => ({ calls: [spawnCall('one', 'quick')] }),
        () => call('subagent_wait'),
        () => ({ calls: [spawnCall('two', 'gated')] }),
        () => call('subagent_list'),
        () => {
          slow.open()
          return 'done'
        },
      ),
      {
        agent: workerOf(async (request) => {
          if (lastSaid(request) === 'gated') await slow.opened
          return 'ok'
        }),
      },
    )
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    const listed = gaveIn(world.store, run.id).at(-1)

    expect(listed?.['children']).toMatchObject([
      { name: 'two', status: 'running', outcome: null, last_activity: expect.stringMatching(/^\d{4}-/) },
      { name: 'one', status: 'idle', outcome: 'completed' },
    ])
  })

  test.each<[string, Json, string]>([
    ['subagent_wait', { join: 'most' }, 'cybros.subagent_wait.invalid_join'],
    ['subagent_wait', { join: 0 }, 'cybros.subagent_wait.invalid_join'],
    ['subagent_wait', { ids: [] }, 'cybros.subagent_wait.ids_must_be_a_list'],
    ['subagent_wait', { ids: 'x' }, 'cybros.subagent_wait.ids_must_be_a_list'],
    ['subagent_wait', { losers: 'shoot' }, 'cybros.subagent_wait.invalid_losers'],
    ['subagent_wait', { timeout_ms: -5 }, 'cybros.subagent_wait.timeout_ms_out_of_range'],
    ['subagent_wait', { timeout_ms: 'soon' }, 'cybros.subagent_wait.timeout_ms_must_be_an_integer'],
    ['subagent_send', { child_conversation_id: 'x' }, 'cybros.subagent_send.message_is_required'],
    [
      'subagent_send',
      { child_conversation_id: 'x', message: 'y' },
      'cybros.subagent_send.child_conversation_not_found',
    ],
    ['subagent_result', { child_conversation_id: 'x', offset: -1 }, 'cybros.subagent_result.offset_out_of_range'],
    ['subagent_cancel', {}, 'cybros.subagent_cancel.child_conversation_id_is_required'],
  ])('%s with %j is refused: %s', async (name, input, code) => {
    const { host } = hostOf(playing(() => call(name, input)))
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    const [task] = tasksIn(world.store, run.id)

    expect(task?.output.metadata?.['validation_error']).toMatchObject({ code })
  })

  test('a wait without anything to wait for is over at once', async () => {
    const { host } = hostOf(playing(() => call('subagent_wait')))
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result

    expect(gaveIn(world.store, run.id)).toEqual([{ ok: true, status: 'met', join: 'settled', children: [] }])
  })
})

describe('deadlines', () => {
  const world = useWorld(memoryRows)

  test('a child may not outlive what is left to its host, and times out promptly when no process was there', async () => {
    const clock = fakeClock()
    const { host } = hostOf(
      playing(() => ({ calls: [spawnCall()] })),
      {
        agent: workerOf(() => ({ text: 'never', delayMs: 3_600_000 })),
        budget: { wallMs: 1_000 },
      },
    )
    const first = world.start({ agents: [host], clock, engine: QUICK })
    const run = first.runtime.run(host, 'go')
    await run.result
    await first.kill()
    await clock.advance(5_000)
    const second = world.start({ agents: [host], clock, engine: QUICK })
    await second.runtime.resume()
    await untilTime(clock, () => world.store.linksOf(run.id)[0]?.outcome)

    expect(world.store.linksOf(run.id)[0]?.outcome).toMatchObject({ status: 'timed_out' })
  })
})

const byPrompt: Script = (request) => {
  switch (lastSaid(request)) {
    case 'slow':
      return { text: 'slow done', delayMs: 60_000 }
    case 'slower':
      return { text: 'slower done', delayMs: 80 }
    case 'bad':
      return { error: new Error('went wrong') }
    default:
      return { text: `${lastSaid(request)} done`, delayMs: 10 }
  }
}

function childrenOf(gave: { readonly [key: string]: Json } | undefined) {
  const children = (gave?.['children'] ?? []) as { readonly name: string }[]
  return Object.fromEntries(children.map((child) => [child.name, child]))
}
