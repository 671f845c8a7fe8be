import { agent, createRuntime, tool } from 'legate'
import { openSubagents } from 'legate/recipe'
import { fakeClock, type Script, scriptedModel } from 'legate/testing'
import { afterEach, describe, expect, test } from 'vitest'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { until, untilTime } from '../../delegation/background/support.ts'
import { useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'
import { QUICK } from '../../support/process.ts'
import { localStore } from '../../support/rows.ts'
import { stores } from '../../support/stores.ts'
import { calling, hostOf, lastResult, resultsIn, userOf } from './support.ts'

const surfaces = ['delegate'] as const
const later = (instructions: string) => ({ name: 'delegate', input: { instructions, async: true } })

/** The host does its moves one after the other; whatever wakes it later it answers with what it heard. */
function moving(moves: readonly ((results: string[]) => ReturnType<typeof calling> | string)[], child: Script): Script {
  return (request, at) => {
    if (request.path.length > 1) return child(request, at)
    const users = request.messages.filter(
      ({ role, content }) => role === 'user' && !String(content).startsWith('<system-info>'),
    )
    if (users.length > 1) return `heard: ${String(users.at(-1)?.content)}`
    const said = request.messages.filter(({ role }) => role === 'assistant').length
    return moves[said]?.(resultsIn(request)) ?? 'done'
  }
}

const idIn = (text: string | undefined) => /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(text ?? '')?.[0] ?? ''

describe.each(stores)('tasks in the background, on %s', (_, create) => {
  const world = useWorld(create)
  const start = (script: Script, options = {}) => {
    const model = scriptedModel(script)
    const host = hostOf({ model, options: { surfaces, ...options } })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    return { runtime, model, run: runtime.run(host, 'go') }
  }

  test('the id comes at once, the host is reminded, and woken once with the end', async () => {
    const slow = makeGate()
    const { runtime, model, run } = start(
      moving([() => ({ calls: [later('count the files')] }), () => 'working on'], async () => {
        await slow.opened
        return 'seven'
      }),
    )
    const outcome = await run.result
    expect(outcome.text).toBe('working on')
    expect(outcome.open).toHaveLength(1)
    // The child's request may have come before it or after it.
    const last = model.requests.findLast(({ path }) => path.length === 1)
    const [started] = resultsIn(last ?? { messages: [] })
    expect(started).toMatch(/^Task [0-9a-f-]{36} started in background: "count the files"\n/)
    expect(String(last?.messages.at(-1)?.content)).toMatch(
      /Background tasks:\n• [0-9a-f-]{36}: "count the files" - running for \d+s, \d turns?, idle \d+s/,
    )

    slow.open()
    await runtime.idle()
    const turns = world.store.turnsOf(run.conversationId, { limit: 9 })
    expect(turns).toHaveLength(2)
    const told = model.requests.filter(({ path }) => path.length === 1).at(-1)
    expect(String(told?.messages.findLast(({ role }) => role === 'user')?.content)).toContain('seven')
    expect(JSON.stringify(told?.messages)).not.toContain('Background tasks:')
    expect(String(told?.messages.findLast(({ role }) => role === 'user')?.content)).toContain('load({ "source": ')
  })

  test('the result of a task is a block with task, status, duration, turns and output; it can be read again', async () => {
    const { run } = start(
      moving(
        [
          () => ({ calls: [later('count')] }),
          ([first]) => calling('load', { source: idIn(first) }),
          ([first]) => calling('load', { source: idIn(first), again: 1 }),
          (results) => results.slice(1).join('\n====\n'),
        ],
        () => ({ text: 'seven', delayMs: 20 }),
      ),
    )
    const { text } = await run.result

    const [block = '', second] = text.split('\n====\n')
    expect(block).toMatch(
      /^# Background Task Result: [0-9a-f-]{36}\n\n\*\*Task:\*\* count\n\*\*Status:\*\* ✓ Completed\n/,
    )
    expect(block).toContain('**Duration:** 0s (1 turn)\n\n## Output\n\nseven')
    expect(second).toBe(block)
  })

  test('a task that failed is told as failed on every path', async () => {
    const broken: Script = () => ({ error: new Error('no such host'), delayMs: 10 })
    const wait = ([first]: string[]) => calling('load', { source: idIn(first) })
    const list = () => calling('load', {})
    const moves = [
      () => ({ calls: [later('break')] }),
      wait,
      wait,
      (results: string[]) => results.slice(1).join('\n====\n'),
    ]
    const [waited, again] = (await start(moving(moves, broken)).run.result).text.split('\n====\n')

    for (const block of [waited, again]) {
      expect(block).toContain('**Status:** ✗ Failed')
      expect(block).toMatch(/## Output\n\nError: .*no such host/)
    }

    const ended = makeGate()
    const slowly: Script = async (request, at) => {
      setTimeout(() => ended.open(), 60)
      return broken(request, at)
    }
    const listing = async (request: Parameters<Script>[0], at: number) => {
      if (request.path.length === 1 && resultsIn(request).length === 1) await ended.opened
      return moving([() => ({ calls: [later('break')] }), list, (results) => results.slice(1).join('')], slowly)(
        request,
        at,
      )
    }
    expect((await start(listing).run.result).text).toMatch(
      /^Completed Tasks \(awaiting retrieval\):\n• [0-9a-f-]{36}: "break" - failed after 0s; read it with load/,
    )

    const { runtime, run, model } = start(moving([() => ({ calls: [later('break')] })], broken))
    await run.result
    await runtime.idle()
    const told = model.requests.findLast(({ path }) => path.length === 1)
    expect(String(told?.messages.findLast(({ role }) => role === 'user')?.content)).toMatch(/"failed".*no such host/)
  })

  test('a look says what it is doing and takes nothing', async () => {
    const slow = makeGate()
    const { run } = start(
      moving(
        [
          () => ({ calls: [later('look')] }),
          ([first]) => calling('load', { source: idIn(first), peek: true }),
          ([first]) => {
            slow.open()
            return calling('load', { source: idIn(first) })
          },
          (results) => results.slice(1).join('\n====\n'),
        ],
        async () => {
          await slow.opened
          return 'saw'
        },
      ),
    )
    const [peeked, loaded] = (await run.result).text.split('\n====\n')

    expect(peeked).toContain('**Status:** Running')
    expect(peeked).toContain('**Elapsed:** 0s (0 turns), idle 0s\n**Tool calls:** none')
    expect(loaded).toContain('## Output\n\nsaw')
  })

  test('a task that is cancelled ends, with what it had', async () => {
    const { run } = start(
      moving(
        [
          () => ({ calls: [later('long')] }),
          ([first]) => calling('load', { source: idIn(first), cancel: true }),
          ([first]) => calling('load', { source: idIn(first) }),
          (results) => results.slice(1).join('\n====\n'),
        ],
        () => ({ chunks: ['half of '], text: 'x', delayMs: 60_000 }),
      ),
    )
    const [cancelled, again] = (await run.result).text.split('\n====\n')

    expect(cancelled).toContain('**Status:** ⊘ Cancelled')
    expect(again).toContain('**Status:** ⊘ Cancelled')
  })

  test('when the host is cancelled, so are its children, waited for or not, and no tool starts', async () => {
    let begun = 0
    const held = makeGate()
    const act = tool({
      description: 'Acts.',
      input: { type: 'object' },
      effect: 'pure',
      execute: async () => {
        begun++
        await held.opened
        return 'acted'
      },
    })
    // Two calls each: the second of a child may only start after the first, which is held until after the cancel.
    const child: Script = (request) => (resultsIn(request).length < 2 ? calling('act') : 'late')
    const now = { name: 'subagent', input: { instructions: 'sync' } }
    const model = scriptedModel(moving([() => ({ calls: [later('a'), later('b'), now] })], child))
    const host = hostOf({ model, options: { surfaces: ['subagent', 'delegate'] }, tools: { act } })
    const { runtime } = world.start({ agents: [host], engine: { ...QUICK, graceMs: 50 } })
    const run = runtime.run(host, 'go')
    await until(() => (begun === 3 ? true : undefined))
    await run.cancel('enough')
    held.open()
    await runtime.idle()

    expect(world.store.linksOf(run.id).map(({ outcome }) => outcome?.status)).toEqual(Array(3).fill('cancelled'))
    expect((await run.result).status).toBe('cancelled')
    expect(begun).toBe(3)
  })

  test('beyond the limit tasks wait their turn, and all of them run', async () => {
    let now = 0
    let most = 0
    const slow = makeGate()
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    const { runtime, run } = start(
      moving([() => ({ calls: names.map(later) })], async (request) => {
        most = Math.max(most, ++now)
        if (now === 5) slow.open()
        await slow.opened
        now--
        return `did ${String(userOf(request))}`
      }),
    )
    await run.result
    await runtime.idle()

    expect(most).toBe(5)
    expect(world.store.linksOf(run.id).map(({ outcome }) => outcome?.status)).toEqual(names.map(() => 'completed'))
  })

  test('after the process is gone, what ended and what was interrupted are listed from the rows, and the latter goes on', async () => {
    const first: Script = (request) => (userOf(request) === 'quick' ? 'quick as that' : { text: 'x', delayMs: 60_000 })
    const thinking = moving(
      [() => ({ calls: [later('quick'), later('slow')] }), () => ({ text: 'x', delayMs: 60_000 })] as never,
      first,
    )
    const host = (script: Script) => hostOf({ model: scriptedModel(script), options: { surfaces } })
    const gone = world.start({ agents: [host(thinking)], engine: QUICK })
    const run = gone.runtime.run(host(thinking), 'go')
    await until(() => world.store.linksOf(run.id).find(({ outcome }) => outcome !== null))
    await gone.kill()
    const slow = world.store.linksOf(run.id).find(({ outcome }) => outcome === null)

    const held = makeGate()
    const listing: Script = (request, at) => {
      if (request.path.length > 1) return held.opened.then(() => 'slow but sure')
      return moving([() => '', () => calling('load', {}), (results) => results.at(-1) ?? ''], () => '')(request, at)
    }
    const { runtime } = world.start({ agents: [host(listing)], engine: QUICK })
    await runtime.resume()
    const { text } = await (await runtime.attach(run.id)).result
    const [interrupted] = world.store.nodesOf(slow?.id ?? '').filter(({ kind }) => kind === 'agent_message')
    held.open()
    await runtime.idle()

    expect(text).toMatch(/^Completed Tasks \(awaiting retrieval\):\n• [0-9a-f-]{36}: "quick" - completed after 0s/)
    expect(interrupted).toMatchObject({ state: 'running', recoveries: 1 })
    const turns = world.store.turnsOf(run.conversationId, { limit: 9 })
    const heard = turns.map(({ id }) => answerOf(world.store, id)).join('\n')
    expect(heard).toContain('slow but sure')
    expect(heard).toContain('quick as that')
  })

  test('a result that nobody read expires: it is no longer listed, and a stone stands for it', async () => {
    const script = moving(
      [
        () => ({ calls: [later('old')] }),
        () => calling('wait'),
        () => calling('load', {}),
        ([first]) => calling('load', { source: idIn(first) }),
        (results) => results.slice(2).join('\n====\n'),
      ],
      () => 'seven',
    )
    const model = scriptedModel(script)
    const wait = tool({
      description: 'Waits.',
      input: { type: 'object' },
      effect: 'pure',
      execute: async (_, { node }) => {
        await until(() => world.store.linksOf(node.runId)[0]?.outcome)
        await new Promise((resolve) => setTimeout(resolve, 40))
        return 'waited'
      },
    })
    const host = hostOf({ model, options: { surfaces, keepMs: 20 }, tools: { wait } })
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    const [listed, stone] = (await run.result).text.split('\n====\n')
    await runtime.idle()

    expect(listed).toBe('No sources available for load/delegate.')
    expect(JSON.stringify(model.requests.at(-1)?.messages)).not.toContain('Background tasks:')
    expect(stone).toMatch(/^# Background Task Result: [0-9a-f-]{36}\n\n\*\*Task:\*\* old\n\*\*Status:\*\* Expired\n/)
    expect(stone).toContain('It ended (completed) 0s ago, and results are kept for 0s. Start it again if you need it.')
    expect(world.store.turnsOf(run.conversationId, { limit: 9 })).toHaveLength(1)
  })
})

function answerOf(store: LocalStore, runId = ''): string {
  return String(store.nodesOf(runId).findLast(({ kind }) => kind === 'agent_message')?.output.content)
}

describe('what needs no store of its own', () => {
  afterEach(() => {
    delete process.env['GOOSE_MAX_BACKGROUND_TASKS']
    delete process.env['GOOSE_COMPLETED_TASK_TTL_SECS']
  })

  test('a wait of five minutes leaves the task alone', async () => {
    const clock = fakeClock()
    const slow = makeGate()
    const model = scriptedModel(
      moving(
        [
          () => ({ calls: [later('slow')] }),
          ([first]) => calling('load', { source: idIn(first) }),
          (results) => results.slice(1).join(''),
        ],
        async () => {
          await slow.opened
          return 'at last'
        },
      ),
    )
    await using runtime = createRuntime({ clock, engine: { stalledMs: 3_600_000 } })
    const run = runtime.run(hostOf({ model, options: { surfaces } }), 'go')
    while (localStore(runtime).turn(run.id)?.state !== 'ended') {
      await clock.advance(5_000)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    const { text } = await run.result
    expect(text).toMatch(/^Task '[0-9a-f-]{36}' is still running after waiting 5 min\./)
    expect(text).toContain('**Elapsed:** 5m')
    slow.open()
    await untilTime(clock, () => localStore(runtime).linksOf(run.id)[0]?.outcome)
  })

  test.each([
    ['00000000-0000-7000-8000-000000000000', "Error: Task '00000000-0000-7000-8000-000000000000' not found."],
    ['20260101_1', "Error: Task '20260101_1' not found."],
    ['nobody', "Error: Source 'nobody' not found. Use load() to see available sources."],
  ])('I9: load(%s)', async (source, message) => {
    const model = scriptedModel((request) => lastResult(request) ?? calling('load', { source }))
    await using runtime = createRuntime()
    expect((await runtime.run(hostOf({ model, options: { surfaces } }), 'go').result).text).toBe(message)
  })

  test('I9: a task of another host is answered like one that does not exist', async () => {
    await using runtime = createRuntime()
    const owner = hostOf({
      model: scriptedModel(moving([() => ({ calls: [later('x')] })], () => 'secret')),
      options: { surfaces },
    })
    const run = runtime.run(owner, 'go')
    await run.result
    await runtime.idle()
    const id = localStore(runtime).linksOf(run.id)[0]?.childConversationId ?? ''
    const thief = scriptedModel((request) => lastResult(request) ?? calling('load', { source: id }))

    expect((await runtime.run(hostOf({ model: thief, options: { surfaces } }), 'go').result).text).toBe(
      `Error: Task '${id}' not found.`,
    )
  })

  test.each([
    ['600', 600_000],
    ['soon', 86_400_000],
  ])('the environment says how long results are kept: %s', async (said, keepMs) => {
    process.env['GOOSE_COMPLETED_TASK_TTL_SECS'] = said
    await using runtime = createRuntime()
    const model = scriptedModel(moving([() => ({ calls: [later('x')] })], () => 'ok'))
    const run = runtime.run(hostOf({ model, options: { surfaces } }), 'go')
    await run.result
    await runtime.idle()

    expect(localStore(runtime).linksOf(run.id)[0]?.delegationContext).toMatchObject({ open: { keepMs } })
    expect(() => openSubagents({ keepMs: 0 })).toThrow('openSubagents(): keepMs must be a number above 0, not 0.')
  })

  test('the environment says the limit', () => {
    process.env['GOOSE_MAX_BACKGROUND_TASKS'] = '2'
    const host = agent({ name: 'h', instructions: '', tools: { ...openSubagents({ surfaces }) } })
    expect(host.tools.has('delegate')).toBe(true)
  })
})
