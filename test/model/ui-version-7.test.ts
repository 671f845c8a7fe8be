import { setTimeout } from 'node:timers/promises'
import { agent, createRuntime, type Run, tool } from 'legate'
import { toUIMessageStream, type UiMessageChunk7 } from 'legate/ai-sdk'
import { backgroundSubagents } from 'legate/background'
import type { Model } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'

async function chunksOf(run: Run, ui: 6 | 7 = 7): Promise<UiMessageChunk7[]> {
  const chunks: UiMessageChunk7[] = []
  for await (const chunk of toUIMessageStream(run, { ui })) chunks.push(chunk)
  return chunks
}

/** The parts that version 7 of the AI SDK holds: `reset-step` drops those after the last `start-step`. */
function partsOf(chunks: readonly UiMessageChunk7[]): string[] {
  const parts: string[] = []
  for (const chunk of chunks) {
    if (chunk.type === 'start-step') parts.push('step')
    else if (chunk.type === 'reset-step') parts.splice(parts.lastIndexOf('step') + 1)
    else {
      const name = nameOf(chunk)
      const isBegin = /-start$|-input-available$|^data-/.test(chunk.type)
      if (name !== undefined && isBegin && !parts.includes(name)) parts.push(name)
      if (name !== undefined) expect(parts, JSON.stringify(chunk)).toContain(name)
    }
  }
  return parts
}

function nameOf(chunk: UiMessageChunk7): string | undefined {
  if ('toolCallId' in chunk) return `tool ${chunk.toolCallId}`
  if (chunk.type.startsWith('data-') && 'data' in chunk) return `${chunk.type} ${'id' in chunk ? chunk.id : ''}`
  return 'id' in chunk ? `${chunk.type.split('-')[0]} ${chunk.id}` : undefined
}

/** A host that starts a child beside it, and whose second answer is cut after the child has called a tool. */
function interrupted() {
  const doing = { called: false }
  const note = tool({
    description: 'x',
    input: z.object({}),
    effect: 'pure',
    execute: async () => {
      doing.called = true
      await setTimeout(100)
      return 'noted'
    },
  })
  const child = agent({
    name: 'child',
    instructions: 'x',
    tools: { note },
    model: scriptedModel([{ delayMs: 30, calls: [{ name: 'note', input: {} }] }, 'Done.']),
  })
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 }
  let call = 0
  const model: Model = {
    id: 'test/cut',
    async *stream(_, { signal }) {
      call++
      if (call === 1) {
        const input = { name: 'child', prompt: 'go' }
        yield { type: 'tool-call', id: 'a', name: 'subagent_spawn', input }
      } else if (call === 2) {
        yield { type: 'text-delta', text: 'Half' }
        while (!doing.called) await setTimeout(5, undefined, { signal })
        await setTimeout(30)
        return
      } else {
        await setTimeout(200)
        yield { type: 'text-delta', text: 'Whole.' }
      }
      yield { type: 'finish', reason: 'stop', usage }
    },
  }
  const tools = backgroundSubagents({ agents: { child } })
  return agent({ name: 'host', instructions: 'x', tools, model })
}

test('version 7 takes a cut answer back by itself, and every part that still counts is begun anew', async () => {
  const runtime = createRuntime()
  onTestFinished(() => runtime.close())

  const chunks = await chunksOf(runtime.run(interrupted(), 'go'))

  const types = chunks.map(({ type }) => type)
  const at = types.indexOf('reset-step')
  expect(types).not.toContain('data-reset')
  expect(types.slice(at, at + 2)).toEqual(['reset-step', 'data-subagent-call'])
  expect(partsOf(chunks).map((name) => name.split(' ')[0])).toEqual([
    'step',
    'tool',
    'data-subagent',
    'step',
    'data-subagent-call',
    'text',
  ])
})

test('version 7 is told why a person is asked, and what he answered', async () => {
  const deploy = tool({ description: 'x', input: z.object({}), execute: () => 'deployed' })
  const calls = [
    { name: 'deploy', input: {} },
    { name: 'deploy', input: {} },
  ]
  const host = agent({
    name: 'host',
    instructions: 'x',
    tools: { deploy },
    grant: { ask: ['tool:deploy'] },
    model: scriptedModel([{ calls }, 'Out.']),
  })
  const runtime = createRuntime()
  onTestFinished(() => runtime.close())
  const run = runtime.run(host, 'go')
  for (const allow of [true, false]) {
    let [asked] = await runtime.approvals()
    for (; asked === undefined; [asked] = await runtime.approvals()) await setTimeout(5)
    await runtime.answer(asked.nodeId, { allow, reason: 'I say so.' })
  }
  await run.result

  const chunks = await chunksOf(await runtime.attach(run.id))
  const older = await chunksOf(await runtime.attach(run.id), 6)

  expect(chunks.filter(({ type }) => type === 'tool-approval-request')).toMatchObject([
    { reason: expect.stringContaining('tool:deploy') },
    { reason: expect.stringContaining('tool:deploy') },
  ])
  expect(chunks.filter(({ type }) => type === 'tool-approval-response')).toMatchObject([
    { approved: true, reason: 'I say so.' },
    { approved: false, reason: 'I say so.' },
  ])
  expect(older.filter(({ type }) => type === 'tool-approval-response')).toEqual([])
  expect(older.find(({ type }) => type === 'tool-approval-request')).not.toHaveProperty('reason')
})
