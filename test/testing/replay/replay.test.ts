import { agent, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { both, deltasOf, linesOf, storyOf } from './support.ts'

const Topic = z.object({ topic: z.string() })

function researcher(calls: string[] = []) {
  const look = tool({
    description: 'Looks it up.',
    input: Topic,
    effect: 'pure',
    execute: async ({ topic }, { progress }) => {
      calls.push(topic)
      progress(`looking up ${topic}`)
      await new Promise((resolve) => setTimeout(resolve, topic === 'slow' ? 30 : 1))
      if (topic === 'bad') throw new Error('the library is closed')
      return { found: `all about ${topic}` }
    },
  })
  return agent({
    name: 'researcher',
    description: 'Researches.',
    instructions: 'You research.',
    input: Topic,
    tools: { look },
    model: scriptedModel(({ messages }) => {
      calls.push('model')
      const last = messages.at(-1)
      if (last?.role === 'tool') return { chunks: ['I ', 'found: ', String(last.content)] }
      const { topic } = JSON.parse(String(last?.content)) as { topic: string }
      return { calls: [{ id: 'c1', name: 'look', input: { topic } }] }
    }),
  })
}

const host = (topics: readonly string[], calls: string[] = []) =>
  agent({
    name: 'editor',
    instructions: 'You edit.',
    subagents: { research: researcher(calls) },
    model: scriptedModel(({ messages }) => {
      calls.push('model')
      const results = messages.filter(({ role }) => role === 'tool')
      if (results.length > 0) return { chunks: ['Done: ', `${results.length} results.`] }
      return { calls: topics.map((topic, at) => ({ id: `r${at}`, name: 'research', input: { topic } })) }
    }),
  })

describe('a recorded tree is played back', () => {
  test('typed delegation, parallel children: the same graph, events, deltas and outcome; nothing is called', async () => {
    const calls: string[] = []
    const { first, second, runtime } = await both((at) => at.run(host(['slow', 'fast', 'bad'], calls), 'Write.'))

    expect(calls.filter((call) => call === 'model')).toHaveLength(8)
    expect(second.outcome).toMatchObject({ status: 'completed', text: 'Done: 3 results.', children: 3 })
    expect(second.outcome.usage).toEqual(first.outcome.usage)
    expect(second.graph).toEqual(first.graph)
    expect(storyOf(second)).toEqual(storyOf(first))
    expect(deltasOf(second)).toEqual(deltasOf(first))
    runtime.assertComplete()
  })

  test('the file is lines of JSON that people can read', async () => {
    const { file } = await both((at) => at.run(host(['fast']), 'Write.'))

    const [first, run, ...others] = linesOf(file)
    expect(first).toEqual({ legate: 'recording', version: 1 })
    expect(run).toMatchObject({ run: 'editor', agent: 'editor', input: 'Write.' })
    expect(others.map(({ at, tool: name }) => `${String(at)} ${String(name ?? 'model')}`)).toEqual([
      'editor.1 model',
      'editor.2/researcher.1 model',
      'editor.2/researcher.2 look',
      'editor.2/researcher.3 model',
      'editor.3 model',
    ])
    expect(others[3]).toMatchObject({ answer: ['I ', 'found: ', '{"found":"all about fast"}', { finish: 'stop' }] })
  })

  test('whoever was first to end is first again, ten times over', async () => {
    const Input = z.object({ n: z.number() })
    const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
    const step = tool({
      description: '',
      input: Input,
      effect: 'pure',
      execute: async ({ n }) => {
        await pause(Math.random() * 6)
        return n
      },
    })
    const child = agent({
      name: 'child',
      instructions: '',
      input: Input,
      tools: { step },
      model: scriptedModel(async ({ messages }) => {
        await pause(Math.random() * 6)
        const { n } = JSON.parse(String(messages.find(({ role }) => role === 'user')?.content)) as { n: number }
        const done = messages.filter(({ role }) => role === 'tool').length
        return done === n % 3 ? `child ${n}` : { calls: [{ id: `s${done}`, name: 'step', input: { n: done } }] }
      }),
    })
    const many = agent({
      name: 'many',
      instructions: '',
      subagents: { child },
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === 'tool'
          ? 'all'
          : { calls: [0, 1, 2, 3, 4, 5].map((n) => ({ id: `c${n}`, name: 'child', input: { n } })) },
      ),
    })
    for (let round = 0; round < 10; round++) {
      const { first, second, runtime } = await both((at) => at.run(many, 'go'))
      expect(storyOf(second)).toEqual(storyOf(first))
      runtime.assertComplete()
    }
  })
})
