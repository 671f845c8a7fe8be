import { agent, type ModelRequest, tool } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime, rolesIn, taskOf } from '../support/reading.ts'

interface Snapshot {
  readonly input_payload: unknown
  readonly recent_events: readonly {
    readonly id: string
    readonly role: string
    readonly name: string
    readonly preview: string
    readonly timestamp: string
  }[]
  readonly long_term_refs: unknown
  readonly workspace_pointers: unknown
  readonly safety_flags: unknown
  readonly input_preview: string
}

/** The snapshot as the child's model reads it. */
function snapshotIn(request: ModelRequest | undefined): Snapshot {
  const briefing = request?.messages.filter(({ role }) => role === 'system').at(-1)?.content
  return JSON.parse(String(briefing).split('\n').slice(1).join('\n')) as Snapshot
}

const Topic = z.object({ topic: z.string() })
const note = tool({
  description: 'Note',
  inputSchema: z.object({ text: z.string() }),
  execute: ({ text }) => `noted ${text}`,
})

/** A host that follows `script`; its expert always says ok. */
async function brief(script: Script, briefing?: 'none' | 'snapshot') {
  const childModel = scriptedModel(() => 'ok')
  const expert = agent({ name: 'expert', instructions: 'You know.', model: childModel, input: Topic })
  const model = scriptedModel(script)
  const host = agent({
    name: 'host',
    instructions: '',
    model,
    tools: { note },
    subagents: { ask: briefing === undefined ? expert : { agent: expert, briefing } },
  })
  const runtime = openRuntime()
  const run = runtime.run(host, 'Tell me about QUIC.')
  expect((await run.result).status).toBe('completed')
  return { childModel, model, runtime, run }
}

const ask = (topic = 'QUIC') => ({ name: 'ask', input: { topic } })
const write = (text: string) => ({ name: 'note', input: { text } })

describe('agentscope 8.3: the briefing', () => {
  test('48 and 49: is a message before the child’s first user message, which is the input and nothing else', async () => {
    const { childModel, runtime, run } = await brief((_request, call) => (call === 0 ? { calls: [ask()] } : 'done'))

    expect(childModel.requests[0]?.messages.at(-1)).toEqual({ role: 'user', content: '{"topic":"QUIC"}' })
    expect(rolesIn(childModel.requests[0])).toEqual(['system', 'system', 'user'])
    const [link] = runtime.store.linksOf(run.id)
    const kinds = runtime.store.nodesOf(link?.id ?? '').map(({ kind }) => kind)
    expect(kinds).toEqual(['developer_message', 'user_message', 'agent_message'])
    expect(runtime.store.nodesOf(link?.id ?? '')[1]?.input.content).toBe('{"topic":"QUIC"}')
  })

  test('44 to 46: has every field of the contract, and the same is in the result’s metadata', async () => {
    const { childModel, runtime, run } = await brief((_request, call) =>
      call === 0 ? { text: 'I will ask.', calls: [ask()] } : 'done',
    )

    const snapshot = snapshotIn(childModel.requests[0])
    expect(snapshot).toEqual({
      input_payload: { topic: 'QUIC' },
      recent_events: [
        {
          id: expect.any(String),
          role: 'assistant',
          name: '',
          preview: 'I will ask.',
          timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        },
      ],
      long_term_refs: [],
      workspace_pointers: [],
      safety_flags: {},
      input_preview: '{"topic":"QUIC"}',
    })
    expect(taskOf(runtime, run).output.metadata?.['delegation_context']).toEqual(snapshot)
    expect(String(childModel.requests[0]?.messages[1]?.content)).toContain('"host"')
  })

  test('43: without a tool result it holds the last thing that was said, not a message that only called', async () => {
    const { childModel } = await brief((_request, call) => (call === 0 ? { calls: [ask()] } : 'done'))

    expect(snapshotIn(childModel.requests[0]).recent_events).toMatchObject([
      { role: 'user', preview: 'Tell me about QUIC.' },
    ])
  })

  test('43: with tool results it holds the newest four, oldest first, with what they said', async () => {
    const { childModel } = await brief((_request, call) => {
      if (call === 0) return { calls: ['1', '2', '3'].map(write) }
      if (call === 1) return { calls: ['4', '5', '6'].map(write) }
      return call === 2 ? { calls: [ask()] } : 'done'
    })

    expect(snapshotIn(childModel.requests[0]).recent_events).toMatchObject(
      ['3', '4', '5', '6'].map((text) => ({ role: 'tool', name: 'note', preview: `noted ${text}` })),
    )
  })

  test('44: previews and the input are cut at 200 characters', async () => {
    const long = 'x'.repeat(5_000)
    const { childModel } = await brief((_request, call) => {
      if (call === 0) return { calls: [write(long)] }
      return call === 1 ? { calls: [ask(long)] } : 'done'
    })

    const snapshot = snapshotIn(childModel.requests[0])
    expect(snapshot.recent_events[0]?.preview).toHaveLength(200)
    expect(snapshot.input_preview).toHaveLength(200)
    expect(snapshot.input_payload).toEqual({ topic: long })
  })

  test('42: is made once per call, from what the host knows then', async () => {
    const { childModel } = await brief((_request, call) => {
      if (call === 0) return { calls: [ask('first')] }
      if (call === 1) return { calls: [ask('second')] }
      return 'done'
    })

    const [first, second] = childModel.requests.map(snapshotIn)
    expect(childModel.requests).toHaveLength(2)
    expect(first?.input_payload).toEqual({ topic: 'first' })
    expect(second?.recent_events).toMatchObject([{ role: 'tool', name: 'ask', preview: 'ok' }])
  })

  test('a child that takes many turns reads the same briefing in each', async () => {
    const childModel = scriptedModel([{ calls: [write('a')] }, 'ok'])
    const expert = agent({ name: 'expert', instructions: '', model: childModel, input: Topic, tools: { note } })
    const model = scriptedModel([{ calls: [ask()] }, 'done'])

    await openRuntime().run(agent({ name: 'host', instructions: '', model, subagents: { ask: expert } }), 'go').result

    const [first, second] = childModel.requests.map(({ messages }) => messages.filter(({ role }) => role === 'system'))
    expect(first).toHaveLength(1)
    expect(second).toEqual(first)
  })

  test('none tells nothing, and the metadata still names the input', async () => {
    const { childModel, runtime, run } = await brief(
      (_request, call) => (call === 0 ? { calls: [ask()] } : 'done'),
      'none',
    )

    expect(rolesIn(childModel.requests[0])).toEqual(['system', 'user'])
    expect(taskOf(runtime, run).output.metadata?.['delegation_context']).toEqual({ input_payload: { topic: 'QUIC' } })
  })

  test('is none by the message contract unless the host asks for one', async () => {
    const childModel = scriptedModel(() => 'ok')
    const expert = agent({ name: 'expert', instructions: '', model: childModel })
    const calls = ['plain', 'told'].map((name) => ({ name, input: { message: 'hi' } }))
    const model = scriptedModel([{ calls }, 'done'])
    const subagents = { plain: expert, told: { agent: expert, briefing: 'snapshot' as const } }

    await openRuntime({ engine: { workers: 1 } }).run(agent({ name: 'host', instructions: '', model, subagents }), 'go')
      .result

    expect(childModel.requests.map(rolesIn)).toEqual([['user'], ['system', 'user']])
    expect(childModel.requests.map(({ messages }) => messages.at(-1)?.content)).toEqual(['hi', 'hi'])
  })

  test('of parallel children holds only what had ended: a sibling that runs is never shown', async () => {
    const { childModel } = await brief((_request, call) => {
      if (call === 0) return { calls: [write('before')] }
      return call === 1 ? { calls: [ask('a'), ask('b'), ask('c')] } : 'done'
    })

    for (const request of childModel.requests) {
      expect(snapshotIn(request).recent_events[0]).toMatchObject({ preview: 'noted before' })
      expect(JSON.stringify(snapshotIn(request).recent_events)).not.toContain('no result yet')
    }
  })
})
