import { agent, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../../support/agents.ts'
import { eventsOfType, localStore } from '../../support/rows.ts'
import { stores } from '../../support/stores.ts'
import { echo, expectLawful, first, last, reasonOf, say, shown, textsOf } from './support.ts'

describe.each(stores)('versions, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('a rerun is another version of the last answer, and either can be adopted', async () => {
    let count = 0
    const who = agent({ name: 'who', instructions: '', model: scriptedModel(() => `answer ${++count}`) })
    const { runtime } = start()
    const one = await say(runtime, who, 'one')
    const two = await say(runtime, who, 'two', one.run.conversationId)
    const talk = await runtime.conversation(one.run.conversationId)

    const again = await talk.history.rerun(two.answer.id)

    expect(await again.result).toMatchObject({ status: 'completed', text: 'answer 3' })
    expect(await textsOf(talk)).toEqual(['one', 'answer 1', 'two', 'answer 3'])
    const versions = await talk.history.versions(two.answer.id)
    expect(versions.map(({ output, attempt }) => [output.content, attempt])).toEqual([
      ['answer 2', 1],
      ['answer 3', 2],
    ])
    expect(versions[1]).toMatchObject({ retryOf: two.answer.id, versionSet: two.answer.versionSet })
    expect(world.store.node(two.answer.id)).toEqual(two.answer)
    await talk.history.adopt(two.answer.id)
    expect(await textsOf(talk)).toEqual(['one', 'answer 1', 'two', 'answer 2'])
    await talk.history.adopt(two.answer.id)
    await talk.history.adopt(versions[1]?.id ?? '')
    expect(await textsOf(talk)).toEqual(['one', 'answer 1', 'two', 'answer 3'])
    const changes = eventsOfType(world.store, talk.id, 'graph-change').map(({ change }) => change)
    expect(changes).toEqual(['rerun', 'adopt', 'adopt'])
    expectLawful(world.store)
  })

  test('what is not the last answer, not finished or at work is not rerun or adopted, and the error says so', async () => {
    const { echo: who } = echo()
    const { runtime } = start()
    const one = await say(runtime, who, 'one')
    await say(runtime, who, 'two', one.run.conversationId)
    const talk = await runtime.conversation(one.run.conversationId)

    expect(await reasonOf(talk.history.rerun(one.answer.id))).toBe('later_turns')
    expect(await reasonOf(talk.history.rerun(one.user.id))).toBe('wrong_kind')
    expect(await reasonOf(talk.history.adopt(one.user.id))).toBe('has_followers')
    expect(await reasonOf(talk.history.adopt('nothing'))).toBe('not_found')
    expect(await reasonOf(talk.history.rerun(undefined as never))).toBe('not_found')
    expect(await reasonOf(talk.history.retry(one.answer.id))).toBe('wrong_state')
    expect(await reasonOf(talk.history.retry(one.user.id))).toBe('wrong_kind')
    expect(await reasonOf(talk.history.edit(one.answer.id, 'x'))).toBe('wrong_kind')
    expect(await reasonOf(talk.history.edit(one.user.id, ''))).toBe('no_text')
    expect(await reasonOf(talk.history.edit(one.user.id, 7 as never))).toBe('invalid_input')
  })

  test('an edit sets aside what came after it, answers anew, and can be taken back', async () => {
    const { echo: who, model } = echo()
    const { runtime } = start()
    const one = await say(runtime, who, 'one')
    const two = await say(runtime, who, 'two', one.run.conversationId)
    const three = await say(runtime, who, 'three', one.run.conversationId)
    const talk = await runtime.conversation(one.run.conversationId)

    const run = await talk.history.edit(two.user.id, 'deux')

    expect(await run.result).toMatchObject({ status: 'completed', text: 're: deux' })
    expect(shown(model)).toEqual(['one', 're: one', 'deux'])
    expect(await textsOf(talk)).toEqual(['one', 're: one', 'deux', 're: deux'])
    await say(runtime, who, 'four', talk.id)
    expect(shown(model)).toEqual(['one', 're: one', 'deux', 're: deux', 'four'])
    await talk.history.adopt(three.answer.id)
    expect(await textsOf(talk)).toEqual(['one', 're: one', 'two', 're: two', 'three', 're: three'])
    await say(runtime, who, 'five', talk.id)
    expect(shown(model)).toEqual(['one', 're: one', 'two', 're: two', 'three', 're: three', 'five'])
    expect(await reasonOf(talk.history.adopt(last(world.store.nodesOf(run.id), 'agent_message').id))).toBe(
      'has_followers',
    )
    const pages = await talk.transcriptPage({ limitTurns: 2 })
    expect(pages.transcript.map(({ text }) => text)).toEqual(['three', 're: three', 'five', 're: five'])
    const before = await talk.transcriptPage({ limitTurns: 2, beforeRunId: pages.beforeRunId ?? '' })
    expect(before.transcript.map(({ text }) => text)).toEqual(['one', 're: one', 'two', 're: two'])
    const after = await talk.transcriptPage({ limitTurns: 2, afterRunId: two.run.id })
    expect(after.transcript.map(({ text }) => text)).toEqual(['three', 're: three', 'five', 're: five'])
    expect((await talk.messagePage({ after: two.user.id })).map(({ text }) => text)).toEqual([
      're: two',
      'three',
      're: three',
      'five',
      're: five',
    ])
    expectLawful(world.store)
  })

  test('an edit waits for nobody: while a turn runs, is queued or awaits a person it is refused', async () => {
    const ask = tool({ description: 'x', input: { type: 'object' }, execute: () => 'done' })
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'user' && String(messages.at(-1)?.content) === 'ask'
        ? { calls: [{ name: 'ask', input: {} }] }
        : 'ok',
    )
    const who = agent({ name: 'who', instructions: '', model, tools: { ask }, grant: { ask: ['tool:ask'] } })
    const { runtime } = start()
    const one = await say(runtime, who, 'one')
    const talk = await runtime.conversation(one.run.conversationId)
    const run = runtime.run(who, 'ask', { conversationId: talk.id })
    for await (const event of run) if (event.type === 'approval-request') break

    expect(await reasonOf(talk.history.edit(one.user.id, 'uno'))).toBe('busy')
    expect(await reasonOf(talk.history.rerun(one.answer.id))).toBe('busy')
    const [asked] = await runtime.approvals()
    await runtime.answer(asked?.nodeId ?? '', { allow: true })
    await run.result
    await (await talk.history.edit(one.user.id, 'uno')).result
    expect(await textsOf(talk)).toEqual(['uno', 'ok'])
    expectLawful(world.store)
  })

  test('a failed call of a model is asked for again, and the results it read stay', async () => {
    let isDown = true
    let looked = 0
    const look = tool({ description: 'x', input: { type: 'object' }, execute: () => `look ${++looked}` })
    const usage = { inputTokens: 10, outputTokens: 5 }
    const model = scriptedModel(({ messages }) => {
      const result = messages.find(({ role }) => role === 'tool')
      if (result === undefined) return { calls: [{ name: 'look', input: {} }], usage }
      if (isDown) throw new Error('it is down')
      return { text: `I saw ${String(result.content)}`, usage }
    })
    const who = agent({ name: 'who', instructions: '', model, tools: { look } })
    const { runtime } = start()
    const run = runtime.run(who, 'go')
    expect((await run.result).status).toBe('failed')
    const failed = last(world.store.nodesOf(run.id), 'agent_message')
    const talk = await runtime.conversation(run.conversationId)

    isDown = false
    const again = await talk.history.retry(failed.id)

    expect(await again.result).toMatchObject({ status: 'completed', text: 'I saw look 1', modelCalls: 2, toolCalls: 1 })
    expect(looked).toBe(1)
    // What was kept is a copy, and is paid for once.
    const copies = world.store.nodesOf(again.id).filter(({ metadata }) => metadata['copyOf'] !== undefined)
    expect(copies.map(({ kind }) => kind)).toEqual(['user_message', 'agent_message', 'task'])
    expect((await again.result).usage).toMatchObject(usage)
    expect((await talk.usageStats()).total).toMatchObject({ calls: 2, usage: { inputTokens: 20, outputTokens: 10 } })
    expect(await textsOf(talk)).toEqual(['go', 'I saw look 1'])
    expect(last(world.store.nodesOf(again.id), 'agent_message')).toMatchObject({
      retryOf: failed.id,
      attempt: failed.attempt + 1,
      failure: null,
    })
    expect(world.store.node(failed.id)).toEqual(failed)
    expect(await reasonOf(talk.history.retry(failed.id))).toBe('replaced')
    expectLawful(world.store)
  })

  test('a failed child is retried, and its siblings keep their results', async () => {
    const calls: string[] = []
    let isBroken = true
    const child = agent({
      name: 'child',
      instructions: '',
      model: scriptedModel(({ messages }) => {
        const task = String(messages.findLast(({ role }) => role === 'user')?.content)
        calls.push(task)
        if (task.includes('b') && isBroken) throw new Error('no luck')
        return `did ${task}`
      }),
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(({ messages }) => {
        const results = messages
          .filter(({ role }) => role === 'tool')
          .map(({ content }) => String(content).split('\n').at(-1))
        if (results.length > 0) return results.join(', ')
        return { calls: ['a', 'b', 'c'].map((message) => ({ name: 'ask', input: { message } })) }
      }),
      subagents: { ask: child },
    })
    const { runtime } = start()
    const run = runtime.run(host, 'go')
    expect(await run.result).toMatchObject({ status: 'completed', children: 3 })
    const task = world.store.nodesOf(run.id).find(({ output }) => output.isError === true)
    const talk = await runtime.conversation(run.conversationId)
    const links = world.store.linksOf(run.id)

    isBroken = false
    const again = await talk.history.retry(task?.id ?? '')
    const outcome = await again.result

    expect(outcome).toMatchObject({ status: 'completed', text: 'did a, did b, did c', children: 1 })
    expect(calls.sort()).toEqual(['a', 'b', 'b', 'c'])
    expect(world.store.linksOf(run.id)).toEqual(links)
    expectLawful(world.store)
  })
})

test('the newest versions are found among hundreds of reruns, and the lane stays short', async () => {
  const { echo: who } = echo()
  const { runtime } = (await import('../../support/process.ts')).startProcess(
    (await import('../../support/stores.ts')).memoryRows(),
  )
  const one = await say(runtime, who, 'one')
  const talk = await runtime.conversation(one.run.conversationId)
  let answer = one.answer
  for (let count = 0; count < 200; count++) {
    const run = await talk.history.rerun(answer.id)
    await run.result
    answer = first(
      localStore(runtime)
        .nodesOf(run.id)
        .filter(({ retryOf }) => retryOf !== null),
      'agent_message',
    )
  }

  expect(await talk.history.versions(one.answer.id)).toHaveLength(201)
  expect(localStore(runtime).conversation(talk.id)?.lane?.skips).toEqual([[0, 199]])
  expect(await textsOf(talk)).toEqual(['one', 're: one'])
  await runtime.close()
})
