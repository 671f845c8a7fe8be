import { agent, tool } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'
import { until } from '../../support/process.ts'
import { eventsOfType } from '../../support/rows.ts'
import { stores } from '../../support/stores.ts'
import { echo, expectLawful, first, last, reasonOf, say, shown } from './support.ts'

/** One change of history after another: what the second finds is what the first has made, and nothing older. */
describe.each(stores)('changes on top of changes, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  async function rounds(count: number) {
    const { echo: who, model } = echo()
    const { runtime } = start()
    const said = [await say(runtime, who, '1')]
    const id = said[0]?.run.conversationId ?? ''
    for (let at = 2; at <= count; at++) said.push(await say(runtime, who, String(at), id))
    const turns = said.map(({ run }) => run.id)
    const go = (text: string, lane = id) => say(runtime, who, text, lane)
    return { talk: await runtime.conversation(id), model, said, turns, go }
  }

  test('a message that was stopped before its calls had ended waits for them when it is retried', async () => {
    const gate = makeGate()
    const slow = tool({
      description: 'x',
      input: { type: 'object' },
      effect: 'pure',
      execute: async () => {
        await gate.opened
        return 'slow'
      },
    })
    const calls: Script = ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? `got ${String(messages.at(-1)?.content)}`
        : { calls: [{ name: 'slow', input: {} }] }
    const who = agent({ name: 'who', instructions: '', model: scriptedModel(calls), tools: { slow } })
    const { runtime } = start()
    const run = runtime.run(who, 'go')
    await until('a task', () =>
      world.store.nodesOf(run.id).some(({ kind, state }) => kind === 'task' && state === 'running'),
    )
    const talk = await runtime.conversation(run.conversationId)
    const reader = last(world.store.nodesOf(run.id), 'agent_message')
    await talk.history.stop(reader.id)

    await talk.history.retry(reader.id)

    expect(last(world.store.nodesOf(run.id), 'agent_message')).toMatchObject({ state: 'pending', blockers: 1 })
    gate.open()
    expect(await run.result).toMatchObject({ status: 'completed', text: 'got slow' })
    expectLawful(world.store)
  })

  test('a fork keeps a call that was retried, and its result where the call was made', async () => {
    const hold = makeGate()
    const look = (says: string, until?: Promise<void>) =>
      tool({
        description: 'x',
        input: { type: 'object' },
        effect: 'pure',
        execute: async () => {
          await until
          return says
        },
      })
    const script: Script = ({ messages }) => {
      const results = messages.filter(({ role }) => role === 'tool').length
      if (results === 0) return { calls: ['risky', 'slow'].map((name) => ({ name, input: {} })) }
      return results < 3 ? { calls: [{ name: 'look', input: {} }] } : 'done'
    }
    const model = scriptedModel(script)
    const tools = { look: look('saw'), risky: look('dared'), slow: look('waited', hold.opened) }
    const grant = { use: ['tool:*', 'model:*'], ask: ['tool:risky'] }
    const who = agent({ name: 'who', instructions: '', model, tools, grant })
    const { runtime } = start()
    const run = runtime.run(who, 'go')
    const asked = async () => {
      await until('an approval', () => world.store.nodesOf(run.id).some(({ state }) => state === 'awaiting_approval'))
      return (await runtime.approvals())[0]?.nodeId ?? ''
    }
    const denied = await asked()
    await runtime.answer(denied, { allow: false })
    const talk = await runtime.conversation(run.conversationId)
    await talk.history.retry(denied)
    await runtime.answer(await asked(), { allow: true })
    hold.open()
    await run.result

    const lane = await talk.history.fork(last(world.store.nodesOf(run.id), 'task').id)

    expect((await lane.run?.result)?.text).not.toBe('')
    const roles = (model.requests.at(-1)?.messages ?? []).map(({ role, content }) => `${role} ${String(content)}`)
    expect(roles).toEqual(['user go', 'assistant ', 'tool dared', 'tool waited', 'assistant ', 'tool saw'])
    expectLawful(world.store)
  })

  test('what is edited takes no summary along that knew what was said before', async () => {
    const { talk, model, said, turns } = await rounds(3)
    await talk.history.compress({ toRunId: turns[1] ?? '', summary: 'sum 1-2' })

    await (await talk.history.edit(said[1]?.user.id ?? '', 'two')).result

    expect(shown(model)).toEqual(['1', 're: 1', 'two'])
    expectLawful(world.store)
  })

  test('an edit behind a summary brings back the older one that it had folded', async () => {
    const { talk, model, said, turns, go } = await rounds(5)
    const older = await talk.history.compress({ toRunId: turns[1] ?? '', summary: 'sum 1-2' })
    await talk.history.compress({ toRunId: turns[3] ?? '', summary: 'sum 1-4' })
    expect(await reasonOf(talk.history.uncompress(older))).toBe('inside_summary')

    await (await talk.history.edit(said[2]?.user.id ?? '', 'three')).result

    expect(shown(model)).toEqual(['sum 1-2', 'three'])
    await go('4')
    expect(
      await reasonOf(talk.history.compress({ fromRunId: turns[1] ?? '', toRunId: turns[1] ?? '', summary: 'x' })),
    ).toBe('inside_summary')
    await talk.history.uncompress(older)
    await go('5')
    expect(shown(model)).toEqual(['1', 're: 1', '2', 're: 2', 'three', 're: three', '4', 're: 4', '5'])
    expectLawful(world.store)
  })

  test('a summary may begin where the first turn was made anew, and a larger one take it in', async () => {
    const { talk, model, said, go } = await rounds(1)
    const edited = await talk.history.edit(said[0]?.user.id ?? '', 'one')
    await edited.result
    const { run } = await go('2')
    await go('3')
    await talk.history.compress({ toRunId: edited.id, summary: 'sum 1' })

    await talk.history.compress({ toRunId: run.id, summary: 'sum 1-2' })

    await go('4')
    expect(shown(model)).toEqual(['sum 1-2', '3', 're: 3', '4'])
    expectLawful(world.store)
  })

  test('what merged lanes have in common is shown once', async () => {
    const { talk, model, said, go } = await rounds(1)
    const left = await talk.history.fork(said[0]?.answer.id ?? '')
    const inLeft = await go('left', left.id)
    const right = await (await world.start().runtime.conversation(left.id)).history.fork(inLeft.answer.id)
    await go('right', right.id)

    await (await talk.history.merge([left.id, right.id])).result

    const heard = shown(model).filter((text) => ['1', 'left', 'right'].includes(text))
    expect(heard).toEqual(['1', 'left', 'right'])
    await (await (await world.start().runtime.conversation(left.id)).history.merge([talk.id])).result
    expect(shown(model).filter((text) => ['1', 'left', 'right'].includes(text))).toEqual(['1', 'left', 'right'])
    expectLawful(world.store)
  })

  test('a summary that was made by itself for a later turn can be taken back', async () => {
    const big = 'y'.repeat(600)
    const model = scriptedModel(({ messages }) =>
      String(messages.at(-1)?.content).startsWith('Sum up the conversation') ? 'SUMMARY' : big,
    )
    const who = agent({ name: 'who', instructions: '', model })
    const { runtime } = start({ compaction: { windowTokens: 1_300 } })
    const one = await say(runtime, who, '1')
    const id = one.run.conversationId
    for (let at = 2; eventsOfType(world.store, id, 'compaction').length === 0 && at < 20; at++) {
      await say(runtime, who, String(at), id)
    }
    const talk = await runtime.conversation(id)
    const [made] = eventsOfType(world.store, id, 'compaction')
    const answer = first(world.store.nodesOf(world.store.turnsOf(id, { limit: 1 })[0]?.id ?? ''), 'agent_message')
    const texts = async () =>
      (await talk.contextFor(answer.id)).map(({ input, output }) => input.content ?? output.content)
    expect(await texts()).toContain('SUMMARY')

    await talk.history.uncompress(made?.summaryId ?? '')

    expect(await texts()).not.toContain('SUMMARY')
    expect((await texts())[0]).toBe('1')
    expect(eventsOfType(world.store, id, 'compaction').map(({ change }) => change)).toEqual(['automatic', 'undone'])
    expectLawful(world.store)
  })
})
