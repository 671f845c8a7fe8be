import { agent, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'

import { eventsOfType, tasksOf } from '../../support/rows.ts'
import { stores } from '../../support/stores.ts'
import { echo, expectLawful, first, last, reasonOf, rowsOf, say, shown, textsOf } from './support.ts'

/** Rounds `1`, `2`, ... of one conversation. */
async function rounds(runtime: Parameters<typeof say>[0], who: Parameters<typeof say>[1], count: number) {
  const said = [await say(runtime, who, '1')]
  for (let at = 2; at <= count; at++) said.push(await say(runtime, who, String(at), said[0]?.run.conversationId))
  return said as [Awaited<ReturnType<typeof say>>, ...Awaited<ReturnType<typeof say>>[]]
}

describe.each(stores)('what models are shown, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('a summary stands for turns in contexts; people see what they saw; it can be taken back', async () => {
    const { echo: who, model } = echo()
    const { runtime } = start()
    const said = await rounds(runtime, who, 4)
    const talk = await runtime.conversation(said[0].run.conversationId)
    const before = await textsOf(talk)

    const summary = await talk.history.compress({ toRunId: said[1]?.run.id ?? '', summary: 'sum 1-2' })

    await say(runtime, who, '5', talk.id)
    expect(shown(model)).toEqual(['sum 1-2', '3', 're: 3', '4', 're: 4', '5'])
    expect((await textsOf(talk)).slice(0, before.length)).toEqual(before)
    expect(await talk.history.compress({ toRunId: said[1]?.run.id ?? '', summary: 'sum 1-2' })).toBe(summary)
    const more = await talk.history.compress({ toRunId: said[3]?.run.id ?? '', summary: 'sum 1-4' })
    await say(runtime, who, '6', talk.id)
    expect(shown(model)).toEqual(['sum 1-4', '5', 're: 5', '6'])
    await talk.history.uncompress(more)
    await say(runtime, who, '7', talk.id)
    expect(shown(model)).toEqual(['sum 1-2', '3', 're: 3', '4', 're: 4', '5', 're: 5', '6', 're: 6', '7'])
    await talk.history.uncompress(summary)
    await talk.history.uncompress(summary)
    await say(runtime, who, '8', talk.id)
    expect(shown(model)).toHaveLength(15)
    expect(await textsOf(talk)).toHaveLength(16)
    const told = eventsOfType(world.store, talk.id, 'compaction').map(({ change, turns }) => [change, turns])
    expect(told).toEqual([
      ['by_hand', 2],
      ['by_hand', 4],
      ['undone', 4],
      ['undone', 2],
    ])
    expectLawful(world.store)
  })

  test('a summary is not dropped for being old: it stays before the window, however many came after', async () => {
    const model = scriptedModel(
      ({ messages }) => `re: ${String(messages.findLast(({ role }) => role === 'user')?.content)}`,
    )
    const who = agent({ name: 'who', instructions: '', model, contextTurns: 3 })
    const { runtime } = start()
    const said = await rounds(runtime, who, 8)
    const talk = await runtime.conversation(said[0].run.conversationId)
    await talk.history.compress({ toRunId: said[1]?.run.id ?? '', summary: 'sum 1-2' })
    await talk.history.compress({
      fromRunId: said[3]?.run.id ?? '',
      toRunId: said[4]?.run.id ?? '',
      summary: 'sum 4-5',
    })

    await say(runtime, who, '9', talk.id)

    expect(shown(model)).toEqual(['sum 1-2', 'sum 4-5', '7', 're: 7', '8', 're: 8', '9'])
    const { id } = await talk.history.fork(said[5]?.answer.id ?? '')
    await say(runtime, who, 'x', id)
    expect(shown(model)).toEqual(['sum 1-2', 'sum 4-5', '6', 're: 6', 'x'])
    const early = await talk.history.fork(said[2]?.answer.id ?? '')
    await say(runtime, who, 'y', early.id)
    expect(shown(model)).toEqual(['sum 1-2', '3', 're: 3', 'y'])
    expectLawful(world.store)
  })

  test('what cannot be summed up is refused: the last turn, an open one, another lane, half of a summary', async () => {
    const gate = makeGate()
    const model = scriptedModel(async ({ messages }) => {
      if (String(messages.at(-1)?.content) === 'slow') await gate.opened
      return 'ok'
    })
    const who = agent({ name: 'who', instructions: '', model })
    const { runtime } = start()
    const said = await rounds(runtime, who, 5)
    const [a, b, c, d, e] = said.map(({ run }) => run.id) as [string, string, string, string, string]
    const other = await say(runtime, who, 'other')
    const talk = await runtime.conversation(said[0].run.conversationId)
    await talk.history.compress({ fromRunId: b, toRunId: c, summary: 'sum' })
    const slow = runtime.run(who, 'slow', { conversationId: talk.id })
    for await (const event of slow) if (event.type === 'run-start') break

    expect(await reasonOf(talk.history.compress({ toRunId: slow.id, summary: 'x' }))).toBe('wrong_state')
    expect(await reasonOf(talk.history.compress({ toRunId: other.run.id, summary: 'x' }))).toBe('not_found')
    expect(await reasonOf(talk.history.compress({ fromRunId: c, toRunId: d, summary: 'x' }))).toBe('inside_summary')
    expect(await reasonOf(talk.history.compress({ fromRunId: a, toRunId: b, summary: 'x' }))).toBe('inside_summary')
    expect(await reasonOf(talk.history.compress({ fromRunId: d, toRunId: a, summary: 'x' }))).toBe('not_related')
    expect(await reasonOf(talk.history.compress({ toRunId: d, summary: ' ' }))).toBe('no_text')
    expect(await reasonOf(talk.history.compress({ toRunId: d, summary: 1 as never }))).toBe('invalid_input')
    expect(await reasonOf(talk.history.uncompress(said[0].answer.id))).toBe('wrong_kind')
    gate.open()
    await slow.result
    expect(await reasonOf(talk.history.compress({ toRunId: slow.id, summary: 'x' }))).toBe('is_last')
    const whole = await talk.history.compress({ fromRunId: a, toRunId: e, summary: 'all' })
    await talk.history.edit(said[1]?.user.id ?? '', 'zwei').then((run) => run.result)
    expect(await reasonOf(talk.history.compress({ toRunId: e, summary: 'x' }))).toBe('replaced')
    expect(whole).toBeTypeOf('string')
    await say(runtime, who, 'end', talk.id)
    expect(shown(model)).toEqual(['1', 'ok', 'zwei', 'ok', 'end'])
    expectLawful(world.store)
  })

  test('exclude hides from models, delete from people too, both are taken back, at any time', async () => {
    const gate = makeGate()
    const model = scriptedModel(async ({ messages }) => {
      if (String(messages.at(-1)?.content) === 'slow') await gate.opened
      return `re: ${String(messages.at(-1)?.content)}`
    })
    const who = agent({ name: 'who', instructions: '', model })
    const { runtime } = start()
    const said = await rounds(runtime, who, 3)
    const talk = await runtime.conversation(said[0].run.conversationId)
    const slow = runtime.run(who, 'slow', { conversationId: talk.id })
    for await (const event of slow) if (event.type === 'run-start') break

    await talk.history.exclude(said[0].user.id)
    await talk.history.exclude(said[0].user.id)
    await talk.history.softDelete(said[0].answer.id)
    await talk.history.softDelete(said[1]?.user.id ?? '')
    await talk.history.softDelete(said[1]?.answer.id ?? '')

    expect(await reasonOf(talk.history.exclude(last(world.store.nodesOf(slow.id), 'agent_message').id))).toBe(
      'wrong_state',
    )
    gate.open()
    await slow.result
    expect(await textsOf(talk)).toEqual(['1', '3', 're: 3', 'slow', 're: slow'])
    expect((await talk.transcript({ includeDeleted: true })).map(({ text }) => text)).toHaveLength(8)
    await say(runtime, who, '4', talk.id)
    expect(shown(model)).toEqual(['3', 're: 3', 'slow', 're: slow', '4'])
    await talk.history.include(said[0].user.id)
    await talk.history.restore(said[0].answer.id)
    await talk.history.restore(said[0].answer.id)
    await say(runtime, who, '5', talk.id)
    expect(shown(model).slice(0, 3)).toEqual(['1', 're: 1', '3'])
    const changes = eventsOfType(world.store, talk.id, 'graph-change').map(({ change }) => change)
    expect(changes).toEqual(['exclude', 'delete', 'delete', 'delete', 'include', 'restore'])
    expect(world.store.node(said[0].user.id)?.marks).toBeNull()
    expectLawful(world.store)
  })

  test('a call and its result stay together: a hidden result leaves a word, a hidden message takes its results along', async () => {
    const look = tool({ description: 'x', input: { type: 'object' }, execute: () => 'found' })
    const model = scriptedModel(({ messages }) => {
      const lastMessage = messages.at(-1)
      return lastMessage?.role === 'user' && lastMessage.content === 'look'
        ? {
            calls: [
              { name: 'look', input: {} },
              { name: 'look', input: {} },
            ],
          }
        : 'ok'
    })
    const who = agent({ name: 'who', instructions: '', model, tools: { look } })
    const { runtime } = start()
    const one = await say(runtime, who, 'look')
    const talk = await runtime.conversation(one.run.conversationId)
    const [task] = tasksOf(world.store, one.run.id)

    await talk.history.exclude(task?.id ?? '')
    await say(runtime, who, 'a', talk.id)
    expect(shown(model)).toEqual(['look', '', 'This result was left out of the conversation.', 'found', 'ok', 'a'])
    await talk.history.softDelete(first(one.nodes, 'agent_message').id)
    await say(runtime, who, 'b', talk.id)
    expect(shown(model)).toEqual(['look', 'ok', 'a', 'ok', 'b'])
    const hidden = await talk.history.compact(one.run.id, { keep: [one.answer.id] })
    expect(hidden).not.toContain(one.answer.id)
    expect(await talk.history.compact(one.run.id, { keep: [one.answer.id] })).toEqual([])
    await say(runtime, who, 'c', talk.id)
    expect(shown(model)).toEqual(['ok', 'a', 'ok', 'b', 'ok', 'c'])
    expect((await textsOf(talk)).slice(0, 2)).toEqual(['look', 'ok'])
    expect(await reasonOf(talk.history.compact(one.run.id, { keep: ['x'] }))).toBe('not_related')
    expect(await reasonOf(talk.history.compact('x'))).toBe('not_found')
    expectLawful(world.store)
  })

  test('an input while a run goes on waits its turn, or takes its place: what was begun is not shown', async () => {
    const gate = makeGate()
    const model = scriptedModel(async ({ messages }) => {
      if (String(messages.at(-1)?.content) === 'slow') await gate.opened
      return `re: ${String(messages.at(-1)?.content)}`
    })
    const who = agent({ name: 'who', instructions: '', model })
    const { runtime } = start()
    const one = await say(runtime, who, 'one')
    const slow = runtime.run(who, 'slow', { conversationId: one.run.conversationId })
    for await (const event of slow) if (event.type === 'run-start') break

    const queued = runtime.run(who, 'queued', { conversationId: one.run.conversationId })
    const instead = runtime.run(who, 'instead', { conversationId: one.run.conversationId, whileRunning: 'restart' })

    expect((await slow.result).status).toBe('cancelled')
    gate.open()
    expect((await queued.result).text).toBe('re: queued')
    expect((await instead.result).text).toBe('re: instead')
    expect(shown(model)).toEqual(['one', 're: one', 'slow', 'queued', 're: queued', 'instead'])
    expect(world.store.turn(slow.id)?.cancel).toMatchObject({ cause: 'restarted' })
    expect((await say(runtime, who, 'idle', one.run.conversationId)).outcome.status).toBe('completed')
    expect(() => runtime.run(who, 'x', { whileRunning: 'never' as never })).toThrow(/must be one of "queue", "restart"/)
    expectLawful(world.store)
  })

  test('a context that nears the end of the window is summed up by itself, between two rounds of calls', async () => {
    const look = tool({ description: 'x', input: { type: 'object' }, execute: () => 'x'.repeat(400) })
    const requests: string[][] = []
    const model = scriptedModel(({ messages }) => {
      requests.push(messages.map(({ role, content }) => `${role}:${String(content).slice(0, 20)}`))
      const asked = String(messages.at(-1)?.content)
      if (asked.startsWith('Sum up the conversation')) return `SUMMARY ${requests.length}`
      const calls = requests.length
      return calls < 12 ? { calls: [{ name: 'look', input: { n: calls } }] } : 'done'
    })
    const who = agent({ name: 'who', instructions: '', model, tools: { look } })
    const { runtime } = start({ compaction: { windowTokens: 1_200, at: 0.8, keep: 0.3 } })

    const one = await say(runtime, who, 'go')

    expect(one.outcome).toMatchObject({ status: 'completed', text: 'done' })
    const summaries = one.nodes.filter(({ purpose }) => purpose === 'summarize')
    expect(summaries.length).toBeGreaterThan(1)
    const told = eventsOfType(world.store, one.run.conversationId, 'compaction')
    expect(told.map(({ change }) => change)).toEqual(summaries.map(() => 'automatic'))
    const final = requests.at(-1) ?? []
    expect(final[0]).toContain('user:What was said before')
    expect(final[1]).toBe('user:go')
    expect(final.filter((line) => line.startsWith('system:'))).toEqual([])
    // No result without its call.
    for (const [at, line] of final.entries())
      if (line.startsWith('tool:')) expect(final[at - 1]).toMatch(/^(assistant|tool):/)
    expect(one.outcome.modelCalls).toBe(12 - summaries.length)
    const talk = await runtime.conversation(one.run.conversationId)
    expect(await textsOf(talk)).toEqual(['go', 'done'])
    await talk.history.uncompress(summaries.at(-1)?.id ?? '')
    expectLawful(world.store)
  })

  test('earlier turns are summed up first; in a fork, without touching where it comes from', async () => {
    const big = 'y'.repeat(600)
    const model = scriptedModel(({ messages }) =>
      String(messages.at(-1)?.content).startsWith('Sum up the conversation') ? 'SUMMARY' : big,
    )
    const who = agent({ name: 'who', instructions: '', model })
    const { runtime } = start({ compaction: { windowTokens: 1_300 } })
    const said = await rounds(runtime, who, 4)
    const talk = await runtime.conversation(said[0].run.conversationId)
    const fork = await talk.history.fork(said[3]?.answer.id ?? '')
    const before = rowsOf(world.store, talk.id)

    await say(runtime, who, 'left', fork.id)

    expect(shown(model).slice(-1)).toEqual(['left'])
    expect(shown(model)[0]).toContain('SUMMARY')
    expect(rowsOf(world.store, talk.id)).toEqual(before)
    await say(runtime, who, '5', talk.id)
    expect(shown(model)[0]).toContain('SUMMARY')
    expect(shown(model).length).toBeGreaterThan(2)
    await say(runtime, who, '6', talk.id)
    await say(runtime, who, '7', talk.id)
    await say(runtime, who, '8', talk.id)
    expect(shown(model).filter((text) => text.includes('SUMMARY'))).toHaveLength(1)
    expect(await textsOf(talk)).toHaveLength(16)
    const summaries = eventsOfType(world.store, talk.id, 'compaction').filter(
      ({ conversationId }) => conversationId === talk.id,
    )
    await talk.history.uncompress(summaries.at(-1)?.summaryId ?? '')
    expectLawful(world.store)
  })

  test('a summary that fails costs nothing but itself: the call is made without', async () => {
    const model = scriptedModel(({ messages }) => {
      if (String(messages.at(-1)?.content).startsWith('Sum up the conversation')) throw new Error('no')
      return 'z'.repeat(3_000)
    })
    const who = agent({ name: 'who', instructions: '', model })
    const { runtime } = start({ compaction: { windowTokens: 1_000 } })
    const one = await say(runtime, who, 'one')
    const two = await say(runtime, who, 'two', one.run.conversationId)

    expect(two.outcome.status).toBe('completed')
    expect(two.nodes.map(({ purpose, state }) => [purpose, state])).toContainEqual(['summarize', 'errored'])
    expect(shown(model)).toEqual(['one', 'z'.repeat(3_000), 'two'])
    expectLawful(world.store)
  })
})
