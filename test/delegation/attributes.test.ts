import { agent, createRuntime, InputError, tool } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { scriptedModel } from 'legate/testing'
import { type Attribute, attribute } from 'legate/tools'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { callsThenSays, useWorld } from '../support/agents.ts'
import { openRuntime, resultsIn } from '../support/reading.ts'
import { stores } from '../support/stores.ts'

const tenant = attribute<{ readonly id: string; readonly plan: 'free' | 'pro' }>('tenant')
const acme = tenant.of({ id: 'acme', plan: 'pro' })

/** An agent whose tool says where it is and whose request it works for. */
function looking(name: string, seen: string[], extra: object = {}) {
  const look = tool({
    description: 'Look',
    input: { type: 'object' },
    effect: 'pure',
    execute: (_input, context) => {
      seen.push(`${context.path.join('/')}: ${tenant.in(context)?.id ?? 'nobody'}`)
      return 'seen'
    },
  })
  return agent({ name, instructions: '', model: alwaysLooks(), tools: { look }, ...extra })
}

describe('attributes of a request', () => {
  test('reach every child, whatever its contract, and no model', async () => {
    const seen: string[] = []
    const typed = looking('typed', seen, { input: { type: 'object', properties: { topic: { type: 'string' } } } })
    const calls = [
      { name: 'typed', input: { topic: 'x' } },
      { name: 'call_plain', input: { message: 'x' } },
      { name: 'inside', input: {} },
      { name: 'subagent_run', input: { name: 'spawned', prompt: 'x' } },
    ]
    const called = looking('called', seen)
    const inside = tool({
      description: 'Delegates in code',
      input: { type: 'object' },
      execute: async (_input, { delegate }) => (await delegate(called, 'x')).text,
    })
    const model = scriptedModel((request) => (resultsIn(request).length === 0 ? { calls } : 'done'))
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      tools: { inside, ...backgroundSubagents({ agent: looking('spawned', seen) }) },
      subagents: { typed, call_plain: looking('plain', seen) },
    })

    await openRuntime().run(host, 'go', { attributes: acme }).result

    expect(seen.sort()).toEqual(['called', 'plain', 'spawned', 'typed'].map((name) => `host/${name}: acme`))
    expect(JSON.stringify(model.requests)).not.toContain('acme')
  })

  test('are of one run: the next of its conversation has its own, or none', async () => {
    const seen: string[] = []
    const worker = looking('worker', seen)
    const runtime = openRuntime()
    const { conversationId } = await runtime.run(worker, 'go', { attributes: acme }).result
    await runtime.run(worker, 'go', { conversationId, attributes: tenant.of({ id: 'other', plan: 'free' }) }).result
    await runtime.run(worker, 'go', { conversationId }).result

    expect(seen).toEqual(['worker: acme', 'worker: other', 'worker: nobody'])
  })

  test('are known in the turn that tells of an end in the background', async () => {
    const seen: string[] = []
    const look = looking('x', seen).tools.get('look')
    const model = scriptedModel((request) => {
      const said = request.messages.at(-1)
      if (said?.role === 'user') return { calls: [said.content === 'go' ? SPAWN : { name: 'look', input: {} }] }
      return 'ok'
    })
    const worker = agent({ name: 'worker', instructions: '', model: scriptedModel(() => 'worked') })
    const tools = { look: look as never, ...backgroundSubagents({ agent: worker }) }
    const runtime = openRuntime()
    await runtime.run(agent({ name: 'host', instructions: '', model, tools }), 'go', { attributes: acme }).result
    await runtime.idle()

    expect(seen).toEqual(['host: acme'])
  })

  test('are given directly too, and cannot be changed on the way', async () => {
    const seen: string[] = []
    const given = { tenant: { id: 'acme', plan: 'pro' } }
    const run = looking('worker', seen).stream('go', { attributes: given })
    given.tenant.id = 'changed'
    await run.result
    expect(seen).toEqual(['worker: acme'])

    const error = await openRuntime()
      .run(changing(), 'go', { attributes: acme })
      .result.then(({ text }) => text)
    expect(error).toMatch(/only abortSignal, grant, budget, tools and repair can be given/)
  })

  test.each<[string, unknown, RegExp]>([
    ['a list', ['x'], /they are an object/],
    ['a text', 'x', /they are an object/],
    ['nothing', null, /they are an object/],
    ['a function', { log: () => undefined }, /not JSON/],
    ['a circle', circle(), /not JSON/],
  ])('attributes that are %s are refused', async (_name, attributes, words) => {
    const run = createRuntime().run(looking('worker', []), 'go', { attributes: attributes as never })

    await expect(run.result).rejects.toThrow(words)
    await expect(run.result).rejects.toBeInstanceOf(InputError)
  })

  test('a name like one of an object is a name', async () => {
    const odd: Attribute<string> = attribute('constructor')
    const values: (string | undefined)[] = []
    const look = tool({
      description: 'Look',
      input: { type: 'object' },
      execute: (_input, context) => values.push(odd.in(context)),
    })
    const worker = agent({ name: 'w', instructions: '', model: alwaysLooks(), tools: { look } })
    const runtime = openRuntime()
    await runtime.run(worker, 'go').result
    await runtime.run(worker, 'go', { attributes: odd.of('mine') }).result

    expect(values).toEqual([undefined, 'mine'])
    expect(() => attribute('')).toThrow(/needs a name/)
  })

  test('have the type they were named with', () => {
    expectTypeOf(tenant.in).returns.toEqualTypeOf<{ readonly id: string; readonly plan: 'free' | 'pro' } | undefined>()
    // @ts-expect-error: there is no such plan
    tenant.of({ id: 'x', plan: 'gold' })
  })
})

const SPAWN = { name: 'subagent_spawn', input: { name: 'worker', prompt: 'x' } }

describe.each(stores)('attributes on %s', (_, create) => {
  const world = useWorld(create)

  test('are there in the process that goes on', async () => {
    const seen: string[] = []
    const worker = looking('worker', seen)
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel((request) =>
        resultsIn(request).length === 0 ? { calls: [{ name: 'ask', input: { message: 'x' } }] } : 'done',
      ),
      subagents: { ask: worker },
      grant: { ask: ['agent:worker'] },
    })
    const first = world.start({ agents: [host] })
    const run = first.runtime.run(host, 'go', { attributes: acme })
    run.result.catch(() => undefined)
    while ((await first.runtime.approvals()).length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    await first.kill()

    const { runtime } = world.start({ agents: [host] })
    await runtime.resume()
    const [asked] = await runtime.approvals()
    await runtime.answer(asked?.nodeId ?? '', { allow: true })
    await (await runtime.attach(run.id)).result

    expect(seen).toEqual(['host/worker: acme'])
  })
})

function alwaysLooks() {
  return scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool' ? 'ok' : { calls: [{ name: 'look', input: {} }] },
  )
}

/** Tries to give its child attributes of its own. */
function changing() {
  const look = tool({
    description: 'Look',
    input: { type: 'object' },
    execute: async () =>
      (await looking('child', []).generate('x', { attributes: tenant.of({ id: 'evil', plan: 'free' }) })).text,
  })
  return agent({ name: 'w', instructions: '', model: scriptedModel(callsThenSays('look')), tools: { look } })
}

function circle(): unknown {
  const self: Record<string, unknown> = {}
  self['self'] = self
  return self
}
