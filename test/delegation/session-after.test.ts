import { type AnyAgent, agent, tool } from 'legate'
import type { Model, ModelRequest } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { openRuntime, resultsIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

/** The session a result names. */
function sessionIn(content: unknown): string {
  return /^session_id: (\S+)\n\n/.exec(String(content))?.[1] ?? 'none'
}

/** Starts a session, then asks `asked` in it one after the other, in runs of one conversation. */
function host(expert: AnyAgent) {
  let session = ''
  const model = scriptedModel((request) => {
    const last = request.messages.at(-1)
    if (last?.role === 'tool') {
      session = sessionIn(last.content) === 'none' ? session : sessionIn(last.content)
      return 'done'
    }
    const input = { message: String(last?.content), ...(session === '' ? {} : { session_id: session }) }
    return { calls: [{ name: 'ask', input }] }
  })
  return { model, agent: agent({ name: 'host', instructions: '', model, subagents: { ask: expert } }) }
}

/** Every call has one result right after the message that made it, and every result its call. */
function dangling({ messages }: ModelRequest): string[] {
  const open: string[] = []
  const wrong: string[] = []
  for (const message of messages) {
    if (message.role === 'tool') {
      const at = open.indexOf(message.callId)
      if (at < 0) wrong.push(`result ${message.callId} has no call`)
      else open.splice(at, 1)
      continue
    }
    wrong.push(...open.splice(0).map((id) => `call ${id} has no result`))
    if (message.role === 'assistant') open.push(...(message.calls ?? []).map(({ id }) => id))
  }
  return [...wrong, ...open.map((id) => `call ${id} has no result`)]
}

describe('after a call that came to nothing the session works, and no call without its result is shown', () => {
  test('after an error in the middle of two calls', async () => {
    const boom = tool({
      description: 'Boom',
      input: { type: 'object' },
      execute: () => Promise.reject(new Error('boom')),
    })
    const fine = tool({ description: 'Fine', input: { type: 'object' }, execute: () => 'fine' })
    const calls = [
      { name: 'boom', input: {} },
      { name: 'fine', input: {} },
      { name: 'unknown', input: {} },
    ]
    const childModel = scriptedModel(['hello', { calls }, { error: new Error('no quota') }, 'better now'])
    const expert = agent({ name: 'expert', instructions: '', model: childModel, tools: { boom, fine } })
    const boss = host(expert)
    const runtime = openRuntime()
    const first = runtime.run(boss.agent, 'one')
    await first.result

    for (const text of ['two', 'three'])
      await runtime.run(boss.agent, text, { conversationId: first.conversationId }).result

    const said = resultsIn(boss.model.requests.at(-1)).map(({ content }) => String(content).split('\n\n').at(-1))
    expect(said).toEqual(['hello', 'Error: Execution error: no quota', 'better now'])
    expect(childModel.requests.flatMap(dangling)).toEqual([])
    expect(resultsIn(childModel.requests.at(-1))).toHaveLength(3)
  })

  test.each(['cancelled', 'timed_out'] as const)('after it was %s while a tool ran', async (status) => {
    const entered = makeGate()
    const slow = tool({
      description: 'Slow',
      input: { type: 'object' },
      effect: 'idempotent',
      execute: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          entered.open()
          signal.addEventListener('abort', () => reject(signal.reason))
        }),
    })
    const childModel = scriptedModel([
      'hello',
      { text: 'Let me see.', calls: [{ name: 'slow', input: {} }] },
      'better now',
    ])
    const expert = agent({
      name: 'expert',
      instructions: '',
      model: childModel,
      tools: { slow },
      budget: status === 'timed_out' ? { wallMs: 150 } : {},
    })
    const boss = host(expert)
    const runtime = openRuntime({ engine: { graceMs: 50, sweepMs: 20 } })
    const first = runtime.run(boss.agent, 'one')
    await first.result

    const second = runtime.run(boss.agent, 'two', { conversationId: first.conversationId })
    await entered.opened
    const [link] = localStore(runtime).linksOf(second.id)
    if (status === 'cancelled') await runtime.cancel(link?.id ?? '')
    await second.result
    const third = await runtime.run(boss.agent, 'three', { conversationId: first.conversationId }).result

    expect(third.status).toBe('completed')
    const said = resultsIn(boss.model.requests.at(-1)).map(({ content }) => String(content))
    expect(said[1]).toMatch(
      status === 'cancelled' ? /^Error: Execution error: cancelled/ : /^session_id: .*\n\n\[timed_out\]/,
    )
    expect(said[2]).toBe(`session_id: ${sessionIn(said[0])}\n\nbetter now`)
    expect(childModel.requests.flatMap(dangling)).toEqual([])
    expect(childModel.requests.at(-1)?.messages.filter(({ role }) => role === 'user')).toHaveLength(3)
  })

  test('after its host was cancelled while the child spoke', async () => {
    const spoke = makeGate()
    let calls = 0
    const model: Model = {
      id: 'own/model',
      async *stream(request, { signal }) {
        requests.push(request)
        yield { type: 'text-delta', text: `answer ${calls}` }
        if (calls++ === 1) {
          spoke.open()
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        }
        yield { type: 'finish', reason: 'stop', usage: NO_USAGE }
      },
    }
    const requests: ModelRequest[] = []
    const boss = host(agent({ name: 'expert', instructions: '', model }))
    const runtime = openRuntime({ engine: { graceMs: 50 } })
    const first = runtime.run(boss.agent, 'one')
    await first.result

    const second = runtime.run(boss.agent, 'two', { conversationId: first.conversationId })
    await spoke.opened
    await second.cancel()
    expect((await second.result).status).toBe('cancelled')
    await runtime.run(boss.agent, 'three', { conversationId: first.conversationId }).result

    expect(String(resultsIn(boss.model.requests.at(-1)).at(-1)?.content)).toMatch(/^session_id: \S+\n\nanswer 2$/)
    expect(requests.flatMap(dangling)).toEqual([])
    expect(boss.model.requests.flatMap(dangling)).toEqual([])
  })
})

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

describe.each(stores)('a session whose process is killed in the middle of a call, on %s', (_, create) => {
  const { start } = useWorld(create)

  test('goes on, and no call without its result is shown', async () => {
    const entered = makeGate()
    const calls = [
      { name: 'quick', input: {} },
      { name: 'pay', input: {} },
    ]
    const childModel = scriptedModel(({ messages }) => {
      const said = messages.findLast(({ role }) => role === 'user')?.content
      return said === 'two' && messages.at(-1)?.role !== 'tool' ? { calls } : `heard ${said}`
    })
    const quick = tool({ description: 'Quick', input: { type: 'object' }, effect: 'pure', execute: () => 'ok' })
    const pay = tool({
      description: 'Pays',
      input: { type: 'object' },
      execute: () => {
        entered.open()
        return new Promise<never>(() => undefined)
      },
    })
    const expert = agent({ name: 'expert', instructions: '', model: childModel, tools: { quick, pay } })
    const boss = host(expert)
    const first = start()
    const { conversationId } = await first.runtime.run(boss.agent, 'one').result
    const second = first.runtime.run(boss.agent, 'two', { conversationId })
    second.result.catch(() => undefined)
    await entered.opened
    await first.kill()

    const { runtime } = start({ agents: [boss.agent] })
    await runtime.resume()
    await (await runtime.attach(second.id)).result
    await runtime.run(boss.agent, 'three', { conversationId }).result

    const said = resultsIn(boss.model.requests.at(-1)).map(({ content }) => String(content))
    expect(said[2]).toBe(`session_id: ${sessionIn(said[0])}\n\nheard three`)
    expect(resultsIn(childModel.requests.at(-1))).toHaveLength(2)
    expect([...childModel.requests, ...boss.model.requests].flatMap(dangling)).toEqual([])
  })
})
