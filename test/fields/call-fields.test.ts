import { agent, tool } from 'legate'
import type { Part } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { openRuntime } from '../support/reading.ts'

const USAGE = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 }
const ran: unknown[] = []
const write = tool({
  description: 'Writes.',
  input: { type: 'object' },
  execute: (input) => {
    ran.push(input)
    return 'written'
  },
})

const ARGUMENTS = { path: 'a.txt', lines: ['one', 'two é'] }
const text = JSON.stringify(ARGUMENTS)

/** Streams the arguments of two calls, mixed, in pieces of one size; then ends. */
function streaming(size: number, fails = 0) {
  let calls = 0
  return {
    id: 'streaming/model',
    async *stream(): AsyncGenerator<Part> {
      calls++
      if (calls > fails + 1) {
        yield { type: 'text-delta', text: 'done' }
        yield { type: 'finish', reason: 'stop', usage: USAGE }
        return
      }
      const pieces = text.match(new RegExp(`.{1,${size}}`, 'gsu')) ?? []
      for (const [at, piece] of pieces.entries()) {
        yield { type: 'tool-input-delta', id: 'w1', name: 'write', text: piece }
        yield { type: 'tool-input-delta', id: 'w2', name: 'write', text: piece }
        if (calls <= fails && at === 2) throw Object.assign(new Error('busy'), { statusCode: 503, retryAfterMs: 0 })
      }
      for (const id of ['w1', 'w2']) yield { type: 'tool-call', id, name: 'write', input: text }
      yield { type: 'finish', reason: 'tool-calls', usage: USAGE }
    },
  }
}

const writer = (model: ReturnType<typeof streaming>) =>
  agent({ name: 'writer', instructions: '', model, tools: { write } })

describe('arguments of calls are read like answers, under the id of their call', () => {
  test.each([1, 3, 100])('in pieces of %i: each value once, complete, children before parents', async (size) => {
    const run = openRuntime().run(writer(streaming(size)), 'go')
    const told: string[] = []
    for await (const { dot, value, call, isComplete } of run.fields(undefined, { tool: 'write' })) {
      if (call?.id === 'w1' && isComplete) told.push(`${dot}=${JSON.stringify(value)}`)
    }
    expect(told).toEqual(['path="a.txt"', 'lines[0]="one"', 'lines[1]="two é"', 'lines=["one","two é"]', `=${text}`])
  })

  test('a field is there before the call is complete, and before it runs', async () => {
    ran.length = 0
    const run = openRuntime().run(writer(streaming(1)), 'go')
    for await (const { value, call } of run.fields('path', { tool: '*' })) {
      expect([value, call, ran.length]).toEqual(['a.txt', { id: 'w1', tool: 'write' }, 0])
      break
    }
    await run.result
  })

  test('deltas join to the value; a call that is begun again says so', async () => {
    const run = openRuntime().run(writer(streaming(4, 1)), 'go')
    const kinds: string[] = []
    let joined = ''
    for await (const field of run.fields('lines[1]', { tool: 'write', partial: true })) {
      if (field.kind === 'reset') kinds.push(`reset ${field.attempt}`)
      if (field.call?.id === 'w2') joined += field.delta ?? ''
    }
    expect([kinds, joined]).toEqual([['reset 2'], 'two é'])
  })

  test('late readers, and calls that were not streamed, are told at once', async () => {
    const model = scriptedModel([{ calls: [{ id: 'c', name: 'write', input: ARGUMENTS }] }, 'done'])
    const runtime = openRuntime()
    const run = runtime.run(agent({ name: 'writer', instructions: '', model, tools: { write } }), 'go')
    await run.result
    const told: unknown[] = []
    for await (const { value, call } of (await runtime.attach(run.id)).fields('/lines/0', { tool: 'write' })) {
      told.push([value, call?.id])
    }
    expect(told).toEqual([['one', 'c']])
    for await (const field of run.fields(undefined, { tool: 'other' })) told.push(field)
    expect(told).toHaveLength(1)
  })

  test('of a child, with its path', async () => {
    const host = agent({
      name: 'host',
      instructions: '',
      subagents: { ask: writer(streaming(5)) },
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === 'tool' ? 'ok' : { calls: [{ id: 'h', name: 'ask', input: { message: 'write' } }] },
      ),
    })
    const run = openRuntime().run(host, 'go')
    const told: string[] = []
    for await (const { value, agentPath, call } of run.fields('path', { tool: 'write', agent: 'writer' })) {
      told.push(`${agentPath.join('/')} ${call?.id} ${String(value)}`)
    }
    expect(told).toEqual(['host/writer w1 a.txt', 'host/writer w2 a.txt'])
  })
})
