import path from 'node:path'
import { type AnyAgent, agent, type RunEvent, type SubagentConfig, tool } from 'legate'
import { toUIMessageStream } from 'legate/ai-sdk'
import type { EventType } from 'legate/background'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { makeGate } from '../../support/gate.ts'
import { eventsOf, isDurable, only, openRuntime, resultIn } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'
import { tempFolder } from '../../support/temp-folder.ts'

type Settings = Omit<SubagentConfig, 'agent'>

const look = tool({ description: 'Look', input: { type: 'object' }, effect: 'pure', execute: () => 'seen' })

/** Thinks, calls a tool, answers in three pieces. */
function expert(): AnyAgent {
  const model = scriptedModel([
    { reasoning: 'Hm. ', text: 'Let me see.', calls: [{ name: 'look', input: {} }] },
    { chunks: ['It ', 'is ', 'fast.'] },
  ])
  return agent({ name: 'expert', instructions: '', model, tools: { look } })
}

function hostOf(below: AnyAgent, settings: Settings) {
  const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'QUIC?' } }] }, 'done'])
  return {
    model,
    agent: agent({ name: 'host', instructions: '', model, subagents: { ask: { agent: below, ...settings } } }),
  }
}

/** All that a reader of the host's run sees, and what its model was told. */
async function watch(settings: Settings) {
  const { agent: host, model } = hostOf(expert(), settings)
  const runtime = openRuntime()
  const run = runtime.run(host, 'go')
  const events = await eventsOf(run)
  const outcome = await run.result
  const told = resultIn(model.requests[1]).replace(/[0-9a-f-]{36}/, '<id>')
  const task = localStore(runtime)
    .nodesOf(run.id)
    .find(({ kind }) => kind === 'task')
  return { events, outcome, told, runtime, run, metadata: task?.output.metadata, childs: events.filter(isOfChild) }
}

function isOfChild({ path }: RunEvent): boolean {
  return path.length > 1
}

const typesOf = (events: readonly RunEvent[]) => [...new Set(events.map(({ type }) => type))].sort()

describe('what readers of a host see of its child', () => {
  test('all of it, by default: typed, with the child’s name, run and session', async () => {
    const { childs, runtime, run } = await watch({})
    const [link] = localStore(runtime).linksOf(run.id)

    expect(childs.every(({ runId }) => runId === link?.id)).toBe(true)
    expect(childs.every(({ conversationId }) => conversationId === link?.childConversationId)).toBe(true)
    expect(childs.every(({ path, parentId }) => path.join() === 'host,expert' && parentId === run.id)).toBe(true)
    expect(typesOf(childs)).toEqual(
      [
        ...['message', 'reasoning-delta', 'run-end', 'run-start'],
        ...['text-delta', 'tool-call', 'tool-result', 'usage'],
      ].sort(),
    )
  })

  test('and the host’s model sees none of it', async () => {
    const { agent: host, model } = hostOf(expert(), {})
    await eventsOf(openRuntime().run(host, 'go'))

    expect(JSON.stringify(model.requests)).not.toMatch(/Let me see|Hm\. |delta|seen/)
  })

  test('nothing when it is not forwarded; only that it was asked, and has ended', async () => {
    const { childs, events } = await watch({ forwardEvents: false })

    expect(childs).toEqual([])
    expect(only(events, 'delegation-start')).toHaveLength(1)
    expect(only(events, 'delegation-end')).toMatchObject([{ agent: 'expert', status: 'completed' }])
  })

  test('the work of a child is all in the child’s own log', async () => {
    const { runtime, run, events } = await watch({ forwardEvents: false })
    const [link] = localStore(runtime).linksOf(run.id)

    const own = await eventsOf(await runtime.attach(link?.id ?? ''))

    expect(typesOf(own)).toEqual(['message', 'run-end', 'run-start', 'tool-call', 'tool-result', 'usage'])
    const all = new Set([...own, ...events.filter(isDurable)].map(({ seq }) => seq))
    expect([...all].sort((a, b) => a - b)).toEqual(Array.from({ length: all.size }, (_, at) => at + 1))
  })

  test.each<[string, Settings, EventType[]]>([
    ['forwardEvents', { forwardEvents: ['tool-call', 'text-delta'] }, ['text-delta', 'tool-call']],
    ['streamOptions', { streamOptions: { eventTypes: ['tool-result'] } }, ['tool-result']],
    [
      'both together',
      { forwardEvents: ['tool-result', 'message'], streamOptions: { eventTypes: ['tool-result', 'usage'] } },
      ['tool-result'],
    ],
    ['an empty list', { forwardEvents: [] }, []],
    ['a type that does not come', { forwardEvents: ['retry'] }, []],
    ['off, whatever the types', { forwardEvents: false, streamOptions: { eventTypes: ['message'] } }, []],
  ])('a filter selects: %s', async (_, settings, types) => {
    const { childs } = await watch(settings)

    expect(typesOf(childs)).toEqual(types)
  })

  test('a filter hides what a person is asked too; approvals() lists it', async () => {
    const model = scriptedModel([{ calls: [{ name: 'look', input: {} }] }, 'seen'])
    const careful = agent({ name: 'careful', instructions: '', model, tools: { look }, grant: { ask: ['tool:look'] } })
    const { agent: host } = hostOf(careful, { forwardEvents: ['text-delta'] })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    const reading = eventsOf(run)
    const shown = eventsOf(toUIMessageStream(run) as never)

    await expect.poll(() => runtime.approvals()).toHaveLength(1)
    const [asked] = await runtime.approvals()
    await runtime.answer(asked?.nodeId ?? '', { allow: true })

    expect(typesOf((await reading).filter(isOfChild))).toEqual(['text-delta'])
    expect((await shown).map(({ type }): string => type)).not.toContain('data-approval')
    expect((await run.result).text).toBe('done')
  })

  test('a filter is the same for one who comes late, or goes on where another stopped', async () => {
    const { run, events } = await watch({ forwardEvents: ['tool-call', 'text-delta'] })

    const late = await eventsOf(run)
    expect(late).toEqual(events.filter(isDurable))
    const middle = late[4]?.seq ?? 0
    expect(await eventsOf(run.events({ after: middle }))).toEqual(late.filter(({ seq }) => seq > middle))
  })

  test('a filter is in the rows: a reader in another process, without the code, sees the same', async () => {
    const folder = tempFolder()
    const file = path.join(folder, 'rows.db')
    const { agent: host } = hostOf(expert(), { forwardEvents: ['tool-call'] })
    const run = openRuntime({ store: sqliteStore(file) }).run(host, 'go')
    await run.result

    const other = await eventsOf(await openRuntime({ store: sqliteStore(file) }).attach(run.id))

    expect(other).toEqual(await eventsOf(run))
    expect(typesOf(other.filter(isOfChild))).toEqual(['tool-call'])
  })

  test('cumulative: each delta says all that was streamed so far, thoughts and words apart', async () => {
    const { childs, events } = await watch({ streamOptions: { incremental: false } })
    const { childs: plain } = await watch({})

    const texts = only(childs, 'text-delta').map(({ text, cumulative }) => `${cumulative} ${text}`)
    expect(texts).toEqual(['true Let me see.', 'true It ', 'true It is ', 'true It is fast.'])
    expect(only(childs, 'reasoning-delta').map(({ text }) => text)).toEqual(['Hm. '])
    expect(
      only(events, 'text-delta')
        .filter((event) => !isOfChild(event))
        .every(({ cumulative }) => cumulative === undefined),
    ).toBe(true)
    expect(typesOf(childs)).toEqual(typesOf(plain))
  })

  test('cumulative starts over with a model that does', async () => {
    let calls = 0
    const failing = Object.assign(new Error('busy'), { statusCode: 503, retryAfterMs: 1 })
    const model = scriptedModel(() =>
      calls++ === 0 ? { chunks: ['one ', 'two'], error: failing } : { chunks: ['three ', 'four'] },
    )
    const { agent: host } = hostOf(agent({ name: 'expert', instructions: '', model }), {
      streamOptions: { incremental: false },
    })

    const events = await eventsOf(openRuntime({ engine: { sweepMs: 5 } }).run(host, 'go'))

    const said = events
      .filter(isOfChild)
      .flatMap((event) => (event.type === 'text-delta' ? [event.text] : event.type === 'reset' ? ['reset'] : []))
    expect(said).toEqual(['one ', 'one two', 'reset', 'three ', 'three four'])
  })

  test('for every filter the answer, its data and the outcome are the same', async () => {
    const all: Settings[] = [
      {},
      { forwardEvents: true },
      { forwardEvents: false },
      { forwardEvents: [] },
      { forwardEvents: ['tool-result'] },
      { forwardEvents: ['run-start', 'retry'] },
      { streamOptions: { incremental: false } },
      { streamOptions: { eventTypes: ['reasoning-delta'], incremental: false } },
      { forwardEvents: ['message'], streamOptions: { eventTypes: ['tool-result'] } },
    ]

    const seen = await Promise.all(all.map(watch))

    for (const { told, outcome, metadata } of seen) {
      expect(told).toBe('session_id: <id>\n\nIt is fast.')
      expect(outcome).toMatchObject({ status: 'completed', text: 'done', children: 1 })
      expect(metadata).toMatchObject({ subagent: 'expert', outcome: { status: 'completed', turns: 2, error: null } })
    }
  })

  test('an observer that throws, breaks off or is not there changes nothing, and no other observer', async () => {
    const { agent: host } = hostOf(expert(), { streamOptions: { incremental: false } })
    const run = openRuntime().run(host, 'go')
    const whole = eventsOf(run)
    const thrown = (async () => {
      for await (const event of run) if (isOfChild(event)) throw new Error('mine')
    })().catch(String)
    const broken = (async () => {
      for await (const event of run) if (event.type === 'text-delta') break
    })()
    const ui = toUIMessageStream(run).getReader()
    await ui.read()
    await ui.cancel(new Error('closed'))

    expect(await thrown).toBe('Error: mine')
    await broken
    expect((await run.result).status).toBe('completed')
    expect((await whole).at(-1)?.type).toBe('run-end')
  })

  test('two children at once are never mixed: each delta grows its own text, and names its own run', async () => {
    const [first, second] = [makeGate(), makeGate()]
    const gates = [first, second]
    const model = {
      id: 'own/model',
      async *stream({ messages }: { messages: readonly { content: unknown }[] }) {
        const which = String(messages.at(-1)?.content)
        for (let n = 0; n < 20; n++) {
          yield { type: 'text-delta', text: `${which}${n} ` } as const
          gates[Number(which === 'a')]?.open()
          await gates[Number(which === 'b')]?.opened
          await new Promise((resolve) => setImmediate(resolve))
        }
        yield { type: 'finish', reason: 'stop', usage: NO_USAGE } as const
      },
    }
    const calls = ['a', 'b'].map((message) => ({ name: 'ask', input: { message } }))
    const boss = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel([{ calls }, 'done']),
      subagents: {
        ask: { agent: agent({ name: 'expert', instructions: '', model }), streamOptions: { incremental: false } },
      },
    })
    const runtime = openRuntime()

    const run = runtime.run(boss, 'go')
    const deltas = only(await eventsOf(run), 'text-delta').filter(isOfChild)

    const runs = localStore(runtime)
      .linksOf(run.id)
      .map(({ id }) => id)
    for (const [at, which] of ['a', 'b'].entries()) {
      const own = deltas.filter(({ runId }) => runId === runs[at]).map(({ text }) => text)
      expect(own).toEqual(
        Array.from({ length: 20 }, (_, n) => Array.from({ length: n + 1 }, (_, m) => `${which}${m} `).join('')),
      )
    }
    const order = deltas.map(({ runId }) => runId)
    expect(order.slice(0, 20)).not.toEqual(Array(20).fill(order[0]))
  })

  test('nesting re-encodes nothing: the event of a grandchild is the same object for every reader, with its whole path', async () => {
    const { runtime, run } = await nested({}, {})
    const [child] = localStore(runtime).linksOf(run.id)
    const [grandchild] = localStore(runtime).linksOf(child?.id ?? '')

    const [top, middle, own] = await Promise.all(
      [run.id, child?.id, grandchild?.id].map(async (id) => eventsOf(await runtime.attach(id ?? ''))),
    )

    expect(own?.every(({ path }) => path.join() === 'host,lead,expert')).toBe(true)
    expect(middle?.filter(({ runId }) => runId === grandchild?.id)).toEqual(own)
    expect(top?.filter(({ runId }) => runId === grandchild?.id)).toEqual(own)
  })

  test('on the way up every host may leave out more, and none can add', async () => {
    const { events, childs } = await nested(
      { forwardEvents: ['tool-call', 'run-start'] },
      { forwardEvents: ['tool-call', 'message'] },
    )
    expect(typesOf(childs)).toEqual(['run-start', 'tool-call'])
    expect(typesOf(events.filter(({ path }) => path.length === 3))).toEqual(['tool-call'])

    const silent = await nested({}, { forwardEvents: false })
    expect(silent.events.filter(({ path }) => path.length === 3)).toEqual([])
    expect(silent.childs.length).toBeGreaterThan(0)

    const cut = await nested({ forwardEvents: false }, {})
    expect(cut.childs).toEqual([])
    const [child] = localStore(cut.runtime).linksOf(cut.run.id)
    const below = await eventsOf(await cut.runtime.attach(child?.id ?? ''))
    expect(below.some(({ path }) => path.length === 3)).toBe(true)
  })

  test('a start and an end for each child, whatever the filter, and the end before the host’s', async () => {
    const { events } = await nested({ forwardEvents: ['run-start', 'run-end'] }, {})
    const told = events
      .filter(({ type }) => /^(run|delegation)-(start|end)$/.test(type))
      .map(({ type, path }) => `${path.at(-1)} ${type}`)

    expect(told).toEqual([
      'host run-start',
      'host delegation-start',
      'lead run-start',
      'expert run-start',
      'expert run-end',
      'lead run-end',
      'host delegation-end',
      'host run-end',
    ])
  })

  test('a session that is gone on with is shown as the host says now', async () => {
    const below = agent({ name: 'expert', instructions: '', model: scriptedModel(() => 'ok') })
    const runtime = openRuntime()
    let session = ''
    const ask = async (settings: Settings, conversationId?: string) => {
      const model = scriptedModel((request) => {
        const last = request.messages.at(-1)
        if (last?.role === 'tool') {
          session = /session_id: (\S+)/.exec(String(last.content))?.[1] ?? ''
          return 'done'
        }
        const input = { message: 'hi', ...(session === '' ? {} : { session_id: session }) }
        return { calls: [{ name: 'ask', input }] }
      })
      const host = agent({ name: 'host', instructions: '', model, subagents: { ask: { agent: below, ...settings } } })
      const run = runtime.run(host, 'go', conversationId === undefined ? {} : { conversationId })
      return { id: run.conversationId, seen: typesOf((await eventsOf(run)).filter(isOfChild)) }
    }

    const { id, seen } = await ask({ forwardEvents: false })
    expect(seen).toEqual([])
    expect((await ask({ forwardEvents: ['message'] }, id)).seen).toEqual(['message'])
    expect((await ask({}, id)).seen).toContain('run-end')
  })

  test.each<[string, object, string]>([
    ['a text', { forwardEvents: 'all' }, 'forwardEvents is a list of event types'],
    ['an event that there is not', { forwardEvents: ['shout'] }, 'there is no event "shout"'],
    ['a list for the options', { streamOptions: 7 }, 'streamOptions must be an object, not 7'],
    ['an option that there is not', { streamOptions: { types: [] } }, 'has no option "types"'],
    ['a word for incremental', { streamOptions: { incremental: 'no' } }, 'must be true or false'],
  ])('%s is refused when the host is defined', (_, settings, words) => {
    expect(() => hostOf(expert(), settings as Settings)).toThrow(words)
  })
})

/** A host, its lead, and the lead's expert. */
async function nested(top: Settings, inner: Settings) {
  const lead = hostOf(expert(), inner)
  const middle = agent({
    name: 'lead',
    instructions: '',
    model: lead.model,
    subagents: { ask: { agent: expert(), ...inner } },
  })
  const { agent: host } = hostOf(middle, top)
  const runtime = openRuntime()
  const run = runtime.run(host, 'go')
  const events = await eventsOf(run)
  return { runtime, run, events, childs: events.filter(isOfChild) }
}

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }
