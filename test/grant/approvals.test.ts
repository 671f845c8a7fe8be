import { type AnyAgent, agent, type PendingApproval, type Run, type Runtime, tool } from 'legate'
import { askTools } from 'legate/background'
import { fakeClock, type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import type { Json } from '../../src/core/base/json.ts'
import { programRequest } from '../../src/core/grant/request.ts'
import type { Conversation, Node } from '../../src/core/graph/rows.ts'
import { isApproved } from '../../src/core/rules/turn/approve.ts'
import { useWorld } from '../support/agents.ts'
import { eventsOf, only, openRuntime, resultIn, taskOf } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { lasting, stores } from '../support/stores.ts'

const HOUR = 3_600_000
const done: unknown[] = []

function deployTool(extra: object = {}) {
  return tool({
    description: 'Deploys',
    input: { type: 'object', properties: { to: { type: 'string' } } },
    execute: (input) => {
      done.push(input)
      return `deployed to ${(input as { to?: string }).to}`
    },
    ...extra,
  })
}

/** Calls `deploy` once, then says what came back. */
const deploys: Script = ({ messages }) => {
  const result = messages.findLast(({ role }) => role === 'tool')
  return result === undefined ? { calls: [{ name: 'deploy', input: { to: 'prod' } }] } : `told: ${result.content}`
}

function worker(script: Script = deploys, extra: object = {}): AnyAgent {
  return agent({
    name: 'worker',
    instructions: '',
    model: scriptedModel(script),
    tools: { deploy: deployTool() },
    grant: { ask: ['tool:deploy'] },
    ...extra,
  })
}

function hostOf(name: string, below: AnyAgent): AnyAgent {
  const script: Script = ({ messages }) => {
    const result = messages.findLast(({ role }) => role === 'tool')
    return result === undefined ? { calls: [{ name: 'ask', input: { message: 'go' } }] } : String(result.content)
  }
  return agent({ name, instructions: '', model: scriptedModel(script), subagents: { ask: below } })
}

async function asked(runtime: Runtime, count = 1, to?: string): Promise<PendingApproval[]> {
  for (;;) {
    const all = await runtime.approvals()
    const found = all.filter(({ input }) => to === undefined || (input as { to: string }).to === to)
    if (found.length >= count) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

function start(runtime: Runtime, who: AnyAgent): Run {
  return runtime.run(who, 'go' as never)
}

describe('the queue of a tree', () => {
  test('shows who asks, for what, with which arguments, by which rule, since when and until when', async () => {
    const clock = fakeClock()
    const runtime = openRuntime({ clock })
    const run = start(runtime, hostOf('lead', hostOf('middle', worker())))

    const [first, ...others] = await asked(runtime)

    expect(others).toEqual([])
    expect(first).toMatchObject({
      rootRunId: run.id,
      path: ['lead', 'middle', 'worker'],
      request: 'tool:deploy',
      tool: 'deploy',
      input: { to: 'prod' },
      reason: 'worker asks for tool:deploy',
      required: false,
      since: clock.now(),
      expiresAt: clock.now() + 24 * HOUR,
    })
    expect(await runtime.approvals({ runId: run.id })).toHaveLength(1)
    expect(await runtime.approvals({ runId: first?.runId ?? '' })).toHaveLength(1)
    expect(await runtime.approvals({ runId: 'another' })).toEqual([])
    await run.cancel()
    await run.result
    expect(await runtime.approvals()).toEqual([])
  })

  test('is read page by page', async () => {
    const runtime = openRuntime()
    for (let at = 0; at < 7; at++) start(runtime, worker())
    const all = await asked(runtime, 7)

    const seen: PendingApproval[] = []
    for (let page = await runtime.approvals({ limit: 3 }); page.length > 0; ) {
      seen.push(...page)
      const after = page.at(-1)
      page = await runtime.approvals({ limit: 3, ...(after === undefined ? {} : { after }) })
    }

    expect(seen).toEqual(all)
    expect(new Set(seen.map(({ nodeId }) => nodeId)).size).toBe(7)
  })

  test('takes an answer to the one that asked, with two children asking at once', async () => {
    const runtime = openRuntime()
    const model = scriptedModel(({ messages }) => {
      const results = messages.filter(({ role }) => role === 'tool')
      if (results.length > 0) return results.map(({ content }) => content).join(' | ')
      return { calls: ['a', 'b'].map((id) => ({ id, name: 'ask', input: { message: id } })) }
    })
    const host = agent({ name: 'host', instructions: '', model, subagents: { ask: worker() } })
    const run = runtime.run(host, 'go')
    const [one, two] = await asked(runtime, 2)

    await runtime.answer(two?.nodeId ?? '', { allow: false, reason: 'not this one' })
    await runtime.answer(one?.nodeId ?? '', { allow: true, by: 'ann' })

    const { text } = await run.result
    expect(text.match(/deployed to prod/g)).toHaveLength(1)
    expect(text.match(/not this one/g)).toHaveLength(1)
  })
})

describe.each(stores)('an answer on %s', (_, create) => {
  const world = useWorld(create)

  test('works twice in a row, from another process, after the one that asked is gone', async () => {
    const twice: Script = ({ messages }) => {
      const results = messages.filter(({ role }) => role === 'tool').length
      return results < 2 ? { calls: [{ name: 'deploy', input: { to: `env-${results}` } }] } : 'both done'
    }
    const first = world.start()
    const run = first.runtime.run(worker(twice), 'go' as never)
    await asked(first.runtime)
    await first.kill()

    const second = world.start({ agents: [worker(twice)] })
    const third = world.start()
    await second.runtime.resume()
    for (const expected of ['env-0', 'env-1']) {
      const [ask] = await asked(third.runtime, 1, expected)
      await third.runtime.answer(ask?.nodeId ?? '', { allow: true, by: 'ann' })
    }

    expect(await (await second.runtime.attach(run.id)).result).toMatchObject({ status: 'completed', text: 'both done' })
  })

  test('of calls made together one is asked for; the others are done, and not again', async () => {
    const ran: string[] = []
    const noted = (name: string) =>
      tool({
        description: name,
        input: { type: 'object' },
        execute: () => {
          ran.push(name)
          return name
        },
      })
    const define = () =>
      agent({
        name: 'worker',
        instructions: '',
        tools: { first: noted('first'), deploy: noted('deploy'), last: noted('last') },
        grant: { ask: ['tool:deploy'] },
        model: scriptedModel(({ messages }) => {
          const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
          if (results.length > 0) return results.join(', ')
          return { calls: ['first', 'deploy', 'last'].map((name) => ({ name, input: {} })) }
        }),
      })
    const one = world.start()
    const run = one.runtime.run(define(), 'go')
    await asked(one.runtime)
    while (ran.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    await new Promise((resolve) => setTimeout(resolve, 20))
    await one.kill()
    expect(ran.sort()).toEqual(['first', 'last'])
    expect(world.store.nodesOf(run.id).map(({ state }) => state)).toEqual([
      'finished',
      'finished',
      'finished',
      'awaiting_approval',
      'finished',
      'pending',
    ])

    const { runtime } = world.start({ agents: [define()] })
    const [ask] = await asked(runtime)
    await runtime.answer(ask?.nodeId ?? '', { allow: true })
    await runtime.resume()

    expect((await (await runtime.attach(run.id)).result).text).toBe('first, deploy, last')
    expect(ran).toEqual(['first', 'last', 'deploy'])
  })

  test('two children at depth 2 ask twice each, over a restart; each hears its own answers', async () => {
    done.length = 0
    const twice: Script = ({ messages, path }) => {
      const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
      if (results.length === 2) return results.join(' / ')
      return { calls: [{ name: 'deploy', input: { to: `${path[1]}-${results.length}` } }] }
    }
    const both: Script = ({ messages }) => {
      const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
      if (results.length > 0) return results.map((result) => result.split('\n').at(-1)).join('\n')
      return { calls: ['left', 'right'].map((name) => ({ name, input: { message: 'go' } })) }
    }
    const define = () =>
      agent({
        name: 'root',
        instructions: '',
        model: scriptedModel(both),
        subagents: { left: hostOf('left', worker(twice)), right: hostOf('right', worker(twice)) },
      })
    const one = world.start()
    const run = one.runtime.run(define(), 'go')
    const before = await asked(one.runtime, 2)
    expect(before.map(({ path }) => path.join('/')).sort()).toEqual(['root/left/worker', 'root/right/worker'])
    await one.kill()

    const { runtime } = world.start({ agents: [define()] })
    await runtime.resume()
    const answers = {
      'left-0': { allow: true },
      'right-0': { allow: false, reason: 'not there' },
      'left-1': { allow: true, edit: { to: 'staging' } },
      'right-1': { allow: true },
    }
    for (const [to, answer] of Object.entries(answers)) {
      const [ask] = await asked(runtime, 1, to)
      await runtime.answer(ask?.nodeId ?? '', { by: 'ann', ...answer })
    }
    const { status, text } = await (await runtime.attach(run.id)).result

    expect(status).toBe('completed')
    expect(text.split('\n')).toEqual([
      'deployed to left-0 / deployed to staging',
      expect.stringMatching(/not there.* \/ deployed to right-1$/),
    ])
    expect(done).toEqual([{ to: 'left-0' }, { to: 'staging' }, { to: 'right-1' }])
  })
})

describe.each(stores)('a yes on %s', (_, create) => {
  const world = useWorld(create)

  test('does not outlive a deny: what is denied when it would run does not run', async () => {
    done.length = 0
    const first = world.start()
    const run = first.runtime.run(worker(), 'go' as never)
    const [ask] = await asked(first.runtime)
    await first.kill()

    const stricter = worker(deploys, { grant: { ask: ['tool:deploy'], deny: ['tool:deploy'] } })
    const second = world.start({ agents: [stricter] })
    await second.runtime.answer(ask?.nodeId ?? '', { allow: true })
    await second.runtime.resume()

    expect((await (await second.runtime.attach(run.id)).result).text).toContain(
      'deploy is not allowed here: worker denies',
    )
    expect(done).toEqual([])
  })
})

describe.each(lasting)('I11 always, on %s', (_, create) => {
  const world = useWorld(create)
  const ran: string[] = []

  /** Runs these commands, one after the other; each is asked for. */
  const runner = (...commands: readonly (readonly string[])[]) =>
    agent({
      name: 'runner',
      instructions: '',
      tools: {
        shell: tool({
          description: 'Runs',
          input: { type: 'object', properties: { argv: { type: 'array', items: { type: 'string' } } } },
          needs: (input) => [programRequest((input as { argv: string[] }).argv), 'net:log'],
          execute: (input) => {
            ran.push((input as { argv: string[] }).argv.join(' '))
            return 'ok'
          },
        }),
      },
      grant: { use: ['tool:*', 'exec:*', 'net:*'], ask: ['exec:*'] },
      model: scriptedModel(({ messages }) => {
        const argv = commands[messages.filter(({ role }) => role === 'tool').length]
        return argv === undefined ? 'done' : { calls: [{ name: 'shell', input: { argv: [...argv] } }] }
      }),
    })

  /** Answers each question, in a process of its own; gives what was asked for. */
  async function answered(who: AnyAgent, answer: (request: string) => object): Promise<string[]> {
    ran.length = 0
    const requests: string[] = []
    const first = world.start()
    const run = first.runtime.run(who, 'go' as never)
    await asked(first.runtime)
    await first.runtime.close()
    const { runtime } = world.start({ agents: [who] })
    await runtime.resume()
    const ended = (await runtime.attach(run.id)).result
    let isOver = false
    const over = ended.then(() => {
      isOver = true
    })
    while (!isOver) {
      const [ask] = await runtime.approvals()
      if (ask !== undefined) {
        requests.push(ask.request)
        await runtime.answer(ask.nodeId, { allow: true, by: 'ann', ...answer(ask.request) })
      }
      await Promise.race([over, new Promise((resolve) => setTimeout(resolve, 5))])
    }
    return requests
  }

  test('with an edit is remembered for what runs, not for what it replaces, and is asked for once', async () => {
    const who = runner(['echo', 'EVIL'], ['echo', 'GOOD'], ['echo', 'EVIL'])
    const requests = await answered(who, (request) =>
      request === 'exec:echo EVIL' ? { always: true, edit: { argv: ['echo', 'GOOD'] } } : {},
    )

    expect(requests).toEqual(['exec:echo EVIL', 'exec:echo EVIL'])
    expect(ran).toEqual(['echo GOOD', 'echo GOOD', 'echo GOOD'])
  })

  test('no command line spells out the yes for another', async () => {
    const evil = ['sh', '-c', 'TOKEN=1\necho hostile > PWNED; echo done']
    const { version = '' } = programRequest(evil)
    const baits = ['TOKEN=1\\necho hostile > PWNED; echo done', 'TOKEN=***'].map((bait) => ['sh', '-c', bait])
    const requests = await answered(
      runner(...baits, ...baits.map((bait) => [...bait, 'version', version]), evil),
      () => ({ always: true }),
    )

    expect(version).not.toBe('')
    expect(requests).toHaveLength(5)
    expect(requests.at(-1)).toContain('echo hostile')
  })
})

test('I11 a yes of an older store that may hold a version is asked for again', () => {
  const isAllowed = (approved: Json, version?: string) =>
    isApproved({ metadata: {} } as unknown as Node, { metadata: { approved } } as unknown as Conversation, {
      request: 'exec:x',
      input: null,
      ...(version === undefined ? {} : { version }),
    })

  expect(isAllowed(['exec:x'])).toBe(true)
  expect(isAllowed(['exec:x version abc'], 'abc')).toBe(false)
  expect(isAllowed([{ request: 'exec:x', version: 'abc' }], 'abc')).toBe(true)
  expect(isAllowed([{ request: 'exec:x', version: 'abc' }])).toBe(false)
  expect(isAllowed([{ request: 'exec:x version abc', version: null }], 'abc')).toBe(false)
})

describe('an answer', () => {
  test('an answer that denies is read by the model with its reason, and names who denied', async () => {
    const runtime = openRuntime()
    const run = start(runtime, worker())
    const [ask] = await asked(runtime)

    await runtime.answer(ask?.nodeId ?? '', { allow: false, by: 'ann', reason: 'Freeze until Monday.' })

    expect((await run.result).text).toContain('Freeze until Monday.')
    expect(taskOf(runtime, run)).toMatchObject({ state: 'rejected', metadata: { deniedBy: 'ann' } })
    expect(only(await eventsOf(run), 'approval-answer')).toMatchObject([{ allowed: false, by: 'ann', always: false }])
  })

  test('may edit the arguments: what runs is what was allowed', async () => {
    done.length = 0
    const runtime = openRuntime()
    const run = start(runtime, worker())
    const [ask] = await asked(runtime)

    await runtime.answer(ask?.nodeId ?? '', { allow: true, edit: { to: 'staging' } })

    expect((await run.result).text).toBe('told: deployed to staging')
    expect(done).toEqual([{ to: 'staging' }])
    expect(only(await eventsOf(run), 'approval-answer')).toMatchObject([{ edited: true }])
  })

  test('with arguments that do not fit is refused, and answers nothing', async () => {
    done.length = 0
    const runtime = openRuntime()
    const run = start(runtime, worker())
    const [ask] = await asked(runtime)
    const wrong = runtime.answer(ask?.nodeId ?? '', { allow: true, edit: { to: 7 } })

    await expect(wrong).rejects.toThrow(
      'Nothing was answered: the new arguments of deploy are wrong. to: must be string',
    )
    expect(await asked(runtime)).toEqual([ask])
    await runtime.answer(ask?.nodeId ?? '', { allow: true, edit: { to: 'x' } })
    await run.result
    expect(done).toEqual([{ to: 'x' }])
  })

  test('an answer that was given says by whom and how', async () => {
    const runtime = openRuntime()
    const run = start(runtime, worker())
    const [ask] = await asked(runtime)
    await runtime.answer(ask?.nodeId ?? '', { allow: true, by: 'ann', always: true, edit: { to: 'x' } })
    await run.result

    await expect(runtime.answer(ask?.nodeId ?? '', { allow: true })).rejects.toThrow(
      /does not await approval: ann has allowed it already, for the conversation, with other arguments\./,
    )
  })

  test('for the conversation is not asked for again there, and is asked for in another', async () => {
    const thrice: Script = ({ messages }) => {
      const results = messages.filter(({ role }) => role === 'tool').length
      return results < 3 ? { calls: [{ name: 'deploy', input: { to: `${results}` } }] } : 'done'
    }
    const runtime = openRuntime()
    const who = worker(thrice)
    const run = start(runtime, who)
    const [ask] = await asked(runtime)
    await runtime.answer(ask?.nodeId ?? '', { allow: true, always: true })
    await run.result

    expect(only(await eventsOf(run), 'approval-request')).toHaveLength(1)
    const other = start(runtime, who)
    expect(await asked(runtime)).toMatchObject([{ runId: other.id }])
    await other.cancel()
  })

  test('a second one, one for nothing, one for another node: refused', async () => {
    done.length = 0
    const runtime = openRuntime()
    const run = start(runtime, worker())
    const [ask] = await asked(runtime)
    const nodeId = ask?.nodeId ?? ''

    const both = await Promise.allSettled([
      runtime.answer(nodeId, { allow: true }),
      runtime.answer(nodeId, { allow: false }),
    ])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    await run.result
    await expect(runtime.answer(nodeId, { allow: true })).rejects.toThrow(/does not await approval/)
    await expect(runtime.answer(run.id, { allow: true })).rejects.toThrow(/There is no node/)
    expect(done).toHaveLength(1)
  })
})

describe.each(lasting)('an answer to what was seen, on %s', (_, create) => {
  const world = useWorld(create)
  const two = () => worker(deploys, { tools: { deploy: deployTool({ needs: () => ['net:a.test'] }) }, grant: BOTH })
  const BOTH = { use: ['tool:*', 'net:*'], ask: ['tool:deploy', 'net:a.test'] }
  /** The hash of something that nobody asks. */
  const OTHER = '0'.repeat(64)

  test('answers what was listed with it, and not what the same node asks for next, in this process or the next', async () => {
    done.length = 0
    const first = world.start()
    const run = start(first.runtime, two())
    const [shown] = await asked(first.runtime)
    const { nodeId = '', seen = '' } = shown ?? {}
    await first.runtime.answer(nodeId, { allow: true, seen, by: 'ann' })
    await expect.poll(async () => (await first.runtime.approvals())[0]?.request).toBe('net:a.test')
    await expect(first.runtime.answer(nodeId, { allow: true, seen })).rejects.toThrow(/asks for something else/)
    await first.runtime.close()

    const { runtime } = world.start({ agents: [two()] })
    await runtime.resume()
    const [next] = await runtime.approvals()
    expect(next).toMatchObject({ nodeId, request: 'net:a.test' })
    const { request, reason, input, required, since, expiresAt } = next ?? {}
    const now = { request, reason, input, required, seen: next?.seen, since, expiresAt }
    await expect(runtime.answer(nodeId, { allow: false, seen, by: 'ben' })).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(/asks for something else now, net:a.test. ann has allowed it already.$/),
      details: { request: now, by: 'ann', allowed: true, at: expect.any(Number) },
    })
    await expect(runtime.answer(nodeId, { allow: true, seen: 'x' })).rejects.toThrow('all 64 hex digits')
    const strange = await runtime.answer(nodeId, { allow: true, seen: OTHER }).catch((error) => error)
    expect(strange.details).toEqual({ state: 'awaiting_approval', request: now })
    expect(done).toEqual([])
    await runtime.answer(nodeId, { allow: true, seen: next?.seen ?? '' })
    expect((await (await runtime.attach(run.id)).result).status).toBe('completed')
    expect(done).toEqual([{ to: 'prod' }])
  })

  test('is the first and only one: a later one hears who answered, how and when, after a restart too', async () => {
    const first = world.start()
    start(first.runtime, worker())
    const [{ nodeId = '', seen = '' } = {}] = await asked(first.runtime)
    const before = Date.now()
    await first.runtime.answer(nodeId, { allow: false, reason: 'Not today.', by: 'ann', seen })
    const runtime = await world.restart(first, [worker()])

    const late = await runtime.answer(nodeId, { allow: true, by: 'ben', seen }).catch((error) => error)

    expect(late).toMatchObject({ code: 'conflict', message: expect.stringContaining('ann has denied it already') })
    expect(late.details).toMatchObject({ by: 'ann', allowed: false, reason: 'Not today.' })
    expect(late.details.at).toBeGreaterThanOrEqual(before)
  })

  test('to a question is bound to it, and the first one too', async () => {
    const curious = () => agent({ name: 'curious', instructions: '', model: scriptedModel(asks), tools: askTools() })
    const first = world.start()
    const run = first.runtime.run(curious(), 'go')
    await expect.poll(async () => (await first.runtime.questions()).length).toBe(1)
    const [{ nodeId = '', seen = '' } = {}] = await first.runtime.questions()
    expect(seen).toMatch(/^[0-9a-f]{64}$/)

    const wrong = await first.runtime.answer(nodeId, { text: '80', seen: OTHER }).catch((error) => error)
    expect(wrong).toMatchObject({ code: 'conflict', details: { request: { text: 'Which port?', to: 'person', seen } } })
    await first.runtime.answer(nodeId, { text: 'Port 80.', by: 'ann', seen })
    expect((await run.result).text).toBe('So: Port 80.')
    const runtime = await world.restart(first, [curious()])
    const late = await runtime.answer(nodeId, { text: 'Port 81.', by: 'ben', seen }).catch((error) => error)

    expect(late).toMatchObject({ code: 'conflict', message: expect.stringContaining('ann has answered it') })
    expect(late.details).toEqual({ state: 'finished', by: 'ann', text: 'Port 80.', at: expect.any(Number) })
  })
})

/** Asks a person, then says what came back. */
const asks: Script = ({ messages }) => {
  const result = messages.findLast(({ role }) => role === 'tool')
  return result === undefined
    ? { calls: [{ name: 'ask_person', input: { question: 'Which port?' } }] }
    : `So: ${result.content}`
}

describe.each(lasting)('an edit by people of three processes, on %s', (_, create) => {
  const world = useWorld(create)

  test('is checked before it is used up, asked for once, and who gave it is known', async () => {
    done.length = 0
    const first = world.start()
    const run = start(first.runtime, worker())
    const [ask] = await asked(first.runtime)
    const nodeId = ask?.nodeId ?? ''
    await first.runtime.close()

    const second = world.start({ agents: [worker()] })
    await second.runtime.resume()
    await expect(second.runtime.answer(nodeId, { allow: true, edit: { to: 7 } })).rejects.toThrow(
      'Nothing was answered',
    )
    const third = await world.restart(second, [worker()])
    expect((await asked(third)).map(({ nodeId: id }) => id)).toEqual([nodeId])
    await third.answer(nodeId, { allow: true, by: 'ann', edit: { to: 'staging' } })

    expect((await (await third.attach(run.id)).result).text).toBe('told: deployed to staging')
    expect(done).toEqual([{ to: 'staging' }])
    expect(await third.approvals()).toEqual([])
    await third.close()
    await expect(world.start().runtime.answer(nodeId, { allow: true })).rejects.toThrow(
      /ann has allowed it already, with other arguments\./,
    )
  })
})

describe('nobody answers', () => {
  test('a required one in 24 hours: what was called beside it has ended, nothing that follows runs, and the run is denied', async () => {
    const clock = fakeClock()
    const runtime = openRuntime({ clock, engine: { sweepMs: 600_000, leaseMs: 3 * HOUR } })
    const look = tool({ description: 'Looks', input: { type: 'object' }, execute: () => 'seen' })
    const model = scriptedModel([
      { calls: ['deploy', 'look'].map((name) => ({ name, input: {} })) },
      'This is never said.',
    ])
    const tools = { deploy: deployTool({ approval: 'required' }), look }
    done.length = 0
    const run = start(runtime, agent({ name: 'worker', instructions: '', model, tools }))
    await asked(runtime)

    await clock.advance(25 * HOUR)

    expect(await run.result).toMatchObject({ status: 'denied', error: { code: 'approval_denied' } })
    const states = localStore(runtime)
      .nodesOf(run.id)
      .map(({ kind, state }) => `${kind} ${state}`)
    expect(states.slice(-3)).toEqual(['task rejected', 'task finished', 'agent_message skipped'])
    expect(model.requests).toHaveLength(1)
    expect(done).toEqual([])
  })

  test('in 24 hours: that is a no, and the run goes on', async () => {
    const clock = fakeClock()
    const runtime = openRuntime({ clock, engine: { sweepMs: 600_000, leaseMs: 3 * HOUR } })
    const run = start(runtime, worker())
    const [approval] = await asked(runtime)

    await clock.advance(24 * HOUR - 1)
    expect(await runtime.approvals()).toHaveLength(1)
    await clock.advance(600_000)

    expect((await run.result).text).toContain('Nobody answered in time.')
    await expect(runtime.answer(approval?.nodeId ?? '', { allow: true })).rejects.toThrow(
      /does not await approval: it was denied because nobody answered in time\.$/,
    )
  })

  test('the clock of the run and of all above it stands still until somebody does', async () => {
    const clock = fakeClock()
    const runtime = openRuntime({ clock, engine: { sweepMs: 600_000, leaseMs: 3 * HOUR } })
    const slow = worker(deploys, { budget: { wallMs: 60_000 } })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel([{ calls: [{ name: 'ask', input: { message: 'go' } }] }, 'done']),
      subagents: { ask: slow },
      budget: { wallMs: 90_000 },
    })
    const run = start(runtime, host)
    const [ask] = await asked(runtime)

    await clock.advance(10 * HOUR)
    expect(localStore(runtime).turn(run.id)).toMatchObject({ state: 'running', deadline: null })
    await runtime.answer(ask?.nodeId ?? '', { allow: true })

    expect(await run.result).toMatchObject({ status: 'completed', text: 'done' })
  })

  test('and after the answer the time that was left is left', async () => {
    const clock = fakeClock()
    const runtime = openRuntime({ clock, engine: { sweepMs: 600_000, leaseMs: 3 * HOUR } })
    const stuck: Script = ({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? new Promise(() => undefined)
        : { calls: [{ name: 'deploy', input: { to: 'x' } }] }
    const run = start(runtime, worker(stuck, { budget: { wallMs: 60_000 } }))
    const [ask] = await asked(runtime)
    await clock.advance(5 * HOUR)

    await runtime.answer(ask?.nodeId ?? '', { allow: true })

    expect(localStore(runtime).turn(run.id)).toMatchObject({ deadline: clock.now() + 60_000, paused: null })
    await clock.advance(70_000)
    expect(await run.result).toMatchObject({ status: 'timed_out' })
  })
})

describe('a tool that wants a person', () => {
  test('is asked for whatever grants say', async () => {
    const runtime = openRuntime()
    const careful = worker(deploys, {
      tools: { deploy: deployTool({ approval: 'ask' }) },
      grant: { use: ['tool:*'] },
    })
    const run = start(runtime, careful)
    const [ask] = await asked(runtime)

    expect(ask).toMatchObject({ request: 'tool:deploy', reason: 'deploy asks for each call', required: false })
    await runtime.answer(ask?.nodeId ?? '', { allow: true })
    expect((await run.result).text).toBe('told: deployed to prod')
  })

  test.each([
    ['the tool alone', { use: ['tool:*'] }],
    ['a rule too', { ask: ['tool:*'] }],
  ])(
    'a required one that is denied holds back what follows, and the run ends denied (asked for by %s)',
    async (_name, grant) => {
      const runtime = openRuntime()
      const careful = worker(deploys, { tools: { deploy: deployTool({ approval: 'required' }) }, grant })
      const run = start(runtime, careful)
      const [ask] = await asked(runtime)
      expect(ask).toMatchObject({ required: true })

      await runtime.answer(ask?.nodeId ?? '', { allow: false, reason: 'no' })

      expect(await run.result).toMatchObject({ status: 'denied', error: { code: 'approval_denied' } })
      const [task, next] = localStore(runtime).nodesOf(run.id).slice(-2)
      expect(task).toMatchObject({ kind: 'task', state: 'rejected' })
      expect(next).toMatchObject({ kind: 'agent_message', state: 'skipped' })
    },
  )

  test('needs are decided before it runs: denied, asked for, allowed', async () => {
    done.length = 0
    const needy = (needs: (input: { to?: string }) => string[]) => deployTool({ needs })
    const runtime = openRuntime()
    const host = (grant: object, needs: (input: { to?: string }) => string[]) =>
      worker(deploys, { tools: { deploy: needy(needs) }, grant })
    const net = ({ to }: { to?: string }) => [`net:${to}.example.com`]

    const silent = await start(runtime, host({ use: ['tool:*'] }, net)).result
    expect(silent.text).toMatch(/not allowed here: no rule of worker allows net:prod.example.com/)
    const allowed = await start(runtime, host({ use: ['tool:*', 'net:*.example.com'] }, net)).result
    expect(allowed.text).toBe('told: deployed to prod')
    const run = start(runtime, host({ use: ['tool:*', 'net:*'], ask: ['net:prod*'] }, net))
    const [ask] = await asked(runtime)
    expect(ask).toMatchObject({ request: 'net:prod.example.com' })
    await runtime.answer(ask?.nodeId ?? '', { allow: true })
    expect((await run.result).text).toBe('told: deployed to prod')
    const broken = host({ use: ['tool:*', 'net:*'] }, () => {
      throw new Error('no idea')
    })
    expect((await start(runtime, broken).result).text).toMatch(/not allowed here/)
    expect(done).toHaveLength(2)
  })
})

test('a model can be asked for too', async () => {
  const runtime = openRuntime()
  const model = scriptedModel(['said'])
  const dear = agent({ name: 'dear', instructions: '', model, grant: { ask: [`model:${model.id}`] } })
  const run = runtime.run(dear, 'go')
  const [ask] = await asked(runtime)

  expect(ask).toMatchObject({ request: `model:${model.id}`, tool: null })
  expect(model.requests).toHaveLength(0)
  await runtime.answer(ask?.nodeId ?? '', { allow: true })

  expect(await run.result).toMatchObject({ status: 'completed', text: 'said' })
})

test('a delegation that must be asked for starts nothing before it is allowed', async () => {
  const runtime = openRuntime()
  const below = agent({ name: 'expert', instructions: '', model: scriptedModel(() => 'known') })
  const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'go' } }] }, 'done'])
  const host = agent({ name: 'host', instructions: '', model, subagents: { ask: below }, grant: { ask: ['agent:*'] } })
  const run = runtime.run(host, 'go')
  const [ask] = await asked(runtime)

  expect(ask).toMatchObject({ request: 'agent:expert', input: { message: 'go' } })
  expect(localStore(runtime).linksOf(run.id)).toEqual([])
  await runtime.answer(ask?.nodeId ?? '', { allow: true })

  await run.result
  expect(resultIn(model.requests[1])).toContain('known')
})
