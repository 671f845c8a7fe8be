import { type AnyAgent, agent, type PendingApproval, type Runtime, tool } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../support/agents.ts'
import { localStore } from '../support/rows.ts'
import { lasting } from '../support/stores.ts'

const deploy = tool({ description: 'Deploys.', input: { type: 'object' }, execute: () => 'deployed' })

/** Deploys once for each input, and says what came back. */
const deploys: Script = ({ messages }) => {
  const last = messages.at(-1)
  return last?.role === 'tool' ? String(last.content) : { calls: [{ name: 'deploy', input: {} }] }
}

const worker = agent({
  name: 'worker',
  instructions: '',
  model: scriptedModel(deploys),
  tools: { deploy },
  grant: { ask: ['tool:deploy'] },
})

/** Goes on with the session it knows. */
const host: AnyAgent = agent({
  name: 'host',
  instructions: '',
  subagents: { ask: worker },
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return String(last.content)
    const [, session_id] = /session_id: (\S+)/.exec(JSON.stringify(messages).replaceAll('\\n', ' ')) ?? []
    return { calls: [{ name: 'ask', input: { message: 'go', ...(session_id === undefined ? {} : { session_id }) } }] }
  }),
})

async function pending(runtime: Runtime): Promise<PendingApproval> {
  for (const giveUpAt = Date.now() + 3_000; Date.now() < giveUpAt; ) {
    const [first] = await runtime.approvals()
    if (first !== undefined) return first
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  throw new Error('Nobody was asked.')
}

/** A run that is asked for once, and allowed always. */
async function allowed(runtime: Runtime, who: AnyAgent): Promise<string> {
  const run = runtime.run(who, 'first' as never)
  const { nodeId } = await pending(runtime)
  await runtime.answer(nodeId, { allow: true, always: true, by: 'ann' })
  const { conversationId, status } = await run.result
  expect(status).toBe('completed')
  return conversationId
}

function lastWord(runtime: Runtime, conversationId: string): string {
  const [turn] = localStore(runtime).turnsOf(conversationId, { limit: 1 })
  return (
    localStore(runtime)
      .nodesOf(turn?.id ?? '')
      .findLast(({ kind }) => kind === 'agent_message')?.id ?? ''
  )
}

describe.each(lasting)('"allow always" holds for one conversation, on %s', (_, create) => {
  const world = useWorld(create)

  /** The same rows in a process that did not hear the answer. */
  const open = () => world.start({ agents: [worker, host] }).runtime

  test('the conversation itself is not asked again, in this process or the next', async () => {
    const first = open()
    const conversationId = await allowed(first, worker)
    await first.close()
    const next = open()

    expect(await next.run(worker, 'again', { conversationId }).result).toMatchObject({ text: 'deployed' })
    const talk = await next.conversation(conversationId)
    expect(await (await talk.history.rerun(lastWord(next, conversationId))).result).toMatchObject({
      status: 'completed',
    })
  })

  test('a fork of it is asked', async () => {
    const first = open()
    const conversationId = await allowed(first, worker)
    const lane = await (await first.conversation(conversationId)).history.fork(lastWord(first, conversationId))
    await first.close()
    const next = open()

    const run = next.run(worker, 'again', { conversationId: lane.id })

    const { nodeId, request } = await pending(next)
    expect(request).toBe('tool:deploy')
    await next.answer(nodeId, { allow: false })
    expect((await run.result).text).toContain('denied')
    expect(await next.run(worker, 'again', { conversationId }).result).toMatchObject({ text: 'deployed' })
  })

  test('a session that a fork goes on with is asked', async () => {
    const first = open()
    const conversationId = await allowed(first, host)
    expect((await first.run(host, 'again' as never, { conversationId }).result).text).toContain('deployed')
    const lane = await (await first.conversation(conversationId)).history.fork(lastWord(first, conversationId))
    await first.close()
    const next = open()

    const run = next.run(host, 'again' as never, { conversationId: lane.id })

    const { nodeId, path } = await pending(next)
    expect(path).toEqual(['host', 'worker'])
    await next.answer(nodeId, { allow: false })
    expect((await run.result).text).toContain('denied')
  })

  test('the next try of a child that failed is asked', async () => {
    let tries = 0
    const failing = agent({
      name: 'failing',
      instructions: '',
      input: { type: 'object' },
      tools: { deploy },
      grant: { ask: ['tool:deploy'] },
      model: scriptedModel(({ messages }) => {
        if (messages.at(-1)?.role !== 'tool') return { calls: [{ name: 'deploy', input: {} }] }
        if (++tries === 1) throw new Error('broken')
        return 'done'
      }),
    })
    const boss = agent({
      name: 'boss',
      instructions: '',
      subagents: { ask: { agent: failing, retries: 1, retryDelayMs: 1 } },
      model: scriptedModel([{ calls: [{ name: 'ask', input: {} }] }, 'done']),
    })
    const runtime = open()
    const run = runtime.run(boss, 'go')
    const first = await pending(runtime)
    await runtime.answer(first.nodeId, { allow: true, always: true })
    const second = await pending(runtime)
    expect(second.runId).not.toBe(first.runId)
    await runtime.answer(second.nodeId, { allow: true })
    expect((await run.result).status).toBe('completed')
  })

  test('a yes for one call stays with its node: a copy of it carries none', async () => {
    const runtime = open()
    const run = runtime.run(worker, 'go')
    const { nodeId } = await pending(runtime)
    await runtime.answer(nodeId, { allow: true })
    const { conversationId } = await run.result

    const lane = await (await runtime.conversation(conversationId)).history.fork(nodeId)
    await lane.run?.result

    const [turn] = localStore(runtime).turnsOf(lane.id, { limit: 1 })
    const copy = localStore(runtime)
      .nodesOf(turn?.id ?? '')
      .find(({ metadata }) => metadata['copyOf'] === nodeId)
    expect(localStore(runtime).node(nodeId)?.metadata).toHaveProperty('approved')
    expect(copy?.metadata).toMatchObject({ approvedBy: 'user' })
    expect(copy?.metadata).not.toHaveProperty('approved')
  })
})
