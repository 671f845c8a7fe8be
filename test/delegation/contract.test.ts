import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import { type AnyAgent, agent, type Schema, type Subagents, tool } from 'legate'
import type { ToolSchema } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime, rolesIn, toolNamesIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

/** What a host's model is offered for its subagents. */
async function offered(subagents: Subagents): Promise<readonly ToolSchema[]> {
  const model = scriptedModel(['done'])
  await openRuntime().run(agent({ name: 'host', instructions: '', model, subagents }), 'go').result
  return model.requests[0]?.tools ?? []
}

const plain = agent({ name: 'plain', instructions: '' })

describe('the typed contract shows the fields of the input schema and nothing else', () => {
  test.each<[string, Schema]>([
    ['zod 4', z.object({ topic: z.string(), depth: z.number().optional(), tags: z.array(z.string()) })],
    [
      'valibot',
      toStandardJsonSchema(v.object({ topic: v.string(), depth: v.optional(v.number()), tags: v.array(v.string()) })),
    ],
    ['arktype', type({ topic: 'string', 'depth?': 'number', tags: 'string[]' })],
    [
      'JSON Schema',
      {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        title: 'Research',
        type: 'object',
        properties: {
          topic: { type: 'string', title: 'Topic' },
          depth: { type: 'number' },
          tags: { type: 'array', items: { type: 'string', title: 'Tag' } },
        },
        required: ['topic', 'tags'],
      },
    ],
  ])('with %s', async (_name, input) => {
    const [ask] = await offered({ ask: agent({ name: 'expert', instructions: '', input }) })

    expect(ask?.inputSchema).toMatchObject({ type: 'object' })
    expect(Object.keys(ask?.inputSchema['properties'] as object).sort()).toEqual(['depth', 'tags', 'topic'])
    expect(new Set(ask?.inputSchema['required'] as string[])).toEqual(new Set(['tags', 'topic']))
    expect(JSON.stringify(ask)).not.toMatch(/title|\$schema|session_id|message/i)
  })

  test('nested, with defaults, and a field that is itself named title', async () => {
    const input = z.object({ title: z.string(), range: z.object({ from: z.number(), to: z.number().default(9) }) })

    const [ask] = await offered({ ask: agent({ name: 'expert', instructions: '', input }) })

    expect(ask?.inputSchema).toMatchObject({
      properties: { title: { type: 'string' }, range: { type: 'object', required: ['from'] } },
      required: ['title', 'range'],
    })
  })

  test('an input without fields is an object without properties', async () => {
    const [ask] = await offered({ ask: agent({ name: 'expert', instructions: '', input: { type: 'object' } }) })

    expect(ask?.inputSchema).toMatchObject({ type: 'object', properties: {} })
  })
})

test('the message contract has exactly its two fields, to the letter', async () => {
  const [ask] = await offered({ ask: plain })

  expect(ask?.inputSchema).toEqual({
    type: 'object',
    properties: {
      session_id: {
        type: 'string',
        description:
          'Session ID for multi-turn dialogue. Omit to start a NEW session. To CONTINUE an existing session and retain memory, you MUST extract the session_id from the previous response and pass it here.',
      },
      message: { type: 'string', description: 'Message to send to the agent' },
    },
    required: ['message'],
  })
})

describe('the description a host reads', () => {
  const expert = agent({ name: 'expert', description: 'Knows protocols.', instructions: '' })

  test.each<[string, Subagents[string & keyof Subagents] | object, string]>([
    ['is the setting of the host', { agent: expert, description: 'Ask about QUIC.' }, 'Ask about QUIC.'],
    ['else the agent’s own', expert, 'Knows protocols.'],
    ['also when the setting is blank', { agent: expert, description: '  ' }, 'Knows protocols.'],
    ['else its name in a sentence', plain, 'Call plain to complete tasks'],
    ['of a provider comes from the agent it gives', () => expert, 'Knows protocols.'],
  ])('%s', async (_name, value, description) => {
    const [ask] = await offered({ ask: value as AnyAgent })

    expect(ask?.description).toBe(description)
  })
})

describe('the name of the tool', () => {
  test('is the key, or is derived from the agent', async () => {
    const names = (subagents: Subagents) => offered(subagents).then((tools) => tools.map(({ name }) => name))
    const teacher = agent({ name: '数学老师', instructions: '' })
    const home = agent({ name: 'Agent@Home', instructions: '' })

    expect(await names({ ask_plain: plain })).toEqual(['ask_plain'])
    expect(await names([plain, teacher, home])).toEqual([
      ...['call_plain', 'call_agent_18a24e01', 'call_agent_home_8d8bba8e'],
    ])
  })

  test('a derived one can be called', async () => {
    const model = scriptedModel([{ calls: [{ name: 'call_plain', input: { message: 'hi' } }] }, 'done'])
    const worker = agent({ name: 'plain', instructions: '', model: scriptedModel(['hello']) })

    const outcome = await openRuntime().run(agent({ name: 'host', instructions: '', model, subagents: [worker] }), 'go')
      .result

    expect(outcome).toMatchObject({ status: 'completed', children: 1 })
  })
})

describe('a child is its own', () => {
  const shout = tool({ description: 'Shout', input: { type: 'object' }, execute: () => 'LOUD' })
  const look = tool({ description: 'Look', input: { type: 'object' }, execute: () => 'seen' })

  test('a child sees its own tools, instructions and input; nothing of its host’s', async () => {
    const childModel = scriptedModel(['ok'])
    const expert = agent({
      name: 'expert',
      instructions: 'You are the expert.',
      model: childModel,
      tools: { look },
      input: z.object({ topic: z.string() }),
    })
    const model = scriptedModel([{ calls: [{ name: 'ask', input: { topic: 'QUIC' } }] }, 'done'])
    const host = agent({
      name: 'host',
      instructions: 'SECRET of the host',
      model,
      tools: { shout },
      subagents: { ask: { agent: expert, briefing: 'none' } },
    })

    await openRuntime().run(host, 'the SECRET question').result

    expect(toolNamesIn(childModel.requests[0])).toEqual(['look'])
    expect(childModel.requests[0]?.messages).toEqual([
      { role: 'system', content: 'You are the expert.' },
      { role: 'user', content: '{"topic":"QUIC"}' },
    ])
    expect(childModel.requests[0]?.path).toEqual(['host', 'expert'])
  })

  test('two calls share nothing', async () => {
    const childModel = scriptedModel(['first', 'second'])
    const expert = agent({ name: 'expert', instructions: '', model: childModel, input: z.object({ n: z.number() }) })
    const model = scriptedModel([
      { calls: [{ name: 'ask', input: { n: 1 } }] },
      { calls: [{ name: 'ask', input: { n: 2 } }] },
      'done',
    ])
    const runtime = openRuntime()

    const run = runtime.run(
      agent({ name: 'host', instructions: '', model, subagents: { ask: { agent: expert, briefing: 'none' } } }),
      'go',
    )
    await run.result

    expect(childModel.requests.map(rolesIn)).toEqual([['user'], ['user']])
    const [first, second] = localStore(runtime).linksOf(run.id)
    expect(first?.childConversationId).not.toBe(second?.childConversationId)
  })

  test('the host’s messages are the same before and after any number of delegations', async () => {
    const expert = agent({
      name: 'expert',
      instructions: '',
      model: scriptedModel(() => 'ok'),
      input: z.object({ n: z.number() }),
    })
    const calls = Array.from({ length: 5 }, (_, n) => ({ name: 'ask', input: { n } }))
    const model = scriptedModel([{ text: 'Asking.', calls }, { calls: calls.slice(0, 1) }, 'done'])

    await openRuntime().run(agent({ name: 'host', instructions: 'I', model, subagents: { ask: expert } }), 'go').result

    const [first, second, third] = model.requests.map(({ messages }) =>
      messages.map((message) => JSON.stringify(message)),
    )
    expect(second?.slice(0, first?.length)).toEqual(first)
    expect(third?.slice(0, second?.length)).toEqual(second)
    expect(second).toHaveLength((first?.length ?? 0) + 1 + calls.length)
  })

  test('the row of a child says whose child it is', async () => {
    const expert = agent({ name: 'expert', instructions: '', model: scriptedModel(['ok']), input: z.object({}) })
    const model = scriptedModel([{ calls: [{ name: 'ask', input: {} }] }, 'done'])
    const runtime = openRuntime()

    const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents: { ask: expert } }), 'go')
    await run.result

    const [link] = localStore(runtime).linksOf(run.id)
    expect(link).toMatchObject({ contract: 'typed', toolName: 'ask', agentName: 'expert', hostName: 'host', depth: 1 })
    expect(link?.deliveredTo).toBe(link?.taskId)
    expect(localStore(runtime).conversation(link?.childConversationId ?? '')).toMatchObject({
      type: 'sub_agent',
      depth: 1,
      rootId: run.conversationId,
      path: ['host', 'expert'],
      parentConversationId: run.conversationId,
      parentTurnId: run.id,
      parentTaskId: link?.taskId,
      metadata: {
        subagent: {
          name: 'expert',
          parent_conversation_id: run.conversationId,
          parent_graph_id: run.conversationId,
          spawned_from_node_id: link?.taskId,
        },
      },
    })
  })
})

test('extra arguments are ignored or refused as the schema says', async () => {
  const childModel = scriptedModel(['ok'])
  const loose = agent({ name: 'loose', instructions: '', model: childModel, input: z.object({ q: z.string() }) })
  const strict = agent({
    name: 'strict',
    instructions: '',
    model: childModel,
    input: z.strictObject({ q: z.string() }),
  })
  const input = { q: 'a', _host: 'x', constructor: 'y' }
  const calls = ['loose', 'strict'].map((name) => ({ name, input }))
  const model = scriptedModel([{ calls }, 'done'])

  const outcome = await openRuntime().run(
    agent({ name: 'host', instructions: '', model, subagents: { loose, strict } }),
    'go',
  ).result

  expect(outcome.children).toBe(1)
  expect(childModel.requests[0]?.messages.at(-1)?.content).toBe('{"q":"a"}')
})

test('dates and defaults of an input reach the child as JSON', async () => {
  const childModel = scriptedModel(['ok'])
  const input = z.object({ at: z.iso.date().transform((text) => new Date(text)), n: z.number().default(3) })
  const expert = agent({ name: 'expert', instructions: '', model: childModel, input })
  const model = scriptedModel([{ calls: [{ name: 'ask', input: { at: '2030-01-02' } }] }, 'done'])

  await openRuntime().run(agent({ name: 'host', instructions: '', model, subagents: { ask: expert } }), 'go').result

  expect(childModel.requests[0]?.messages.at(-1)?.content).toBe('{"at":"2030-01-02T00:00:00.000Z","n":3}')
})
