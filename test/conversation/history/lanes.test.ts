import { agent, tool } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'

import { eventsOfType } from '../../support/rows.ts'
import { lasting, stores } from '../../support/stores.ts'
import { echo, expectLawful, first, last, reasonOf, rowsOf, say, shown, textsOf } from './support.ts'

describe.each(stores)('lanes, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('a fork knows what was said up to it, and each lane goes its own way', async () => {
    const { echo: who, model } = echo()
    const { runtime } = start()
    const one = await say(runtime, who, 'one')
    const two = await say(runtime, who, 'two', one.run.conversationId)
    const talk = await runtime.conversation(one.run.conversationId)
    const before = rowsOf(world.store, talk.id)

    const { id, run } = await talk.history.fork(one.answer.id)

    expect(run).toBeNull()
    await say(runtime, who, 'left', id)
    expect(shown(model)).toEqual(['one', 're: one', 'left'])
    await say(runtime, who, 'three', talk.id)
    expect(shown(model)).toEqual(['one', 're: one', 'two', 're: two', 'three'])
    await say(runtime, who, 'more', id)
    expect(shown(model)).toEqual(['one', 're: one', 'left', 're: left', 'more'])
    const lane = await runtime.conversation(id)
    expect(await textsOf(lane)).toEqual(['left', 're: left', 'more', 're: more'])
    expect(await textsOf(talk)).toEqual(['one', 're: one', 'two', 're: two', 'three', 're: three'])
    expect((rowsOf(world.store, talk.id) as unknown[]).slice(0, 2)).toEqual(before)
    expect(await talk.history.lanes()).toMatchObject([{ id, forkedAt: one.answer.id, turns: 2 }])
    // The head can still be rerun: a fork is no follower.
    const head = await lane.history.fork(
      last(world.store.nodesOf(world.store.turnsOf(id, { limit: 1 })[0]?.id ?? ''), 'agent_message').id,
    )
    await say(runtime, who, 'deep', head.id)
    expect(shown(model)).toEqual(['one', 're: one', 'left', 're: left', 'more', 're: more', 'deep'])
    const again = await lane.history.rerun(
      last(world.store.nodesOf(world.store.turnsOf(id, { limit: 1 })[0]?.id ?? ''), 'agent_message').id,
    )
    expect((await again.result).status).toBe('completed')
    expect(two.answer).toEqual(world.store.node(two.answer.id))
    expectLawful(world.store)
  })

  test('a fork with the same key is the same lane; without one each is new', async () => {
    const { echo: who } = echo()
    const { runtime } = start()
    const one = await say(runtime, who, 'one')
    const talk = await runtime.conversation(one.run.conversationId)

    const [a, b, c] = [
      await talk.history.fork(one.answer.id, { key: 'x' }),
      await talk.history.fork(one.answer.id, { key: 'x' }),
      await talk.history.fork(one.answer.id),
    ]

    expect(b.id).toBe(a.id)
    expect(c.id).not.toBe(a.id)
    expect((await talk.history.lanes()).map(({ id }) => id)).toEqual([c.id, a.id])
    expect(eventsOfType(world.store, talk.id, 'graph-change').map(({ change }) => change)).toEqual(['fork', 'fork'])
    expectLawful(world.store)
  })

  test('a merge knows both lanes, and so does what comes after it', async () => {
    const { echo: who, model } = echo()
    const { runtime } = start()
    const one = await say(runtime, who, 'one')
    const talk = await runtime.conversation(one.run.conversationId)
    const { id: left } = await talk.history.fork(one.answer.id)
    const { id: right } = await talk.history.fork(one.answer.id)
    await say(runtime, who, 'left', left)
    await say(runtime, who, 'right', right)
    await say(runtime, who, 'two', talk.id)

    const run = await talk.history.merge([right, left], { prompt: 'join' })

    expect((await run.result).text).toBe('re: join')
    // As they were named: the order of ids means nothing.
    const both = ['right', 're: right', 'left', 're: left']
    expect(shown(model)).toEqual(['one', 're: one', 'two', 're: two', ...both, 'join'])
    expect((await talk.history.merge([left, right], { prompt: 'join' })).id).toBe(run.id)
    await say(runtime, who, 'three', talk.id)
    expect(shown(model)).toEqual(['one', 're: one', 'two', 're: two', ...both, 'join', 're: join', 'three'])
    expect(await textsOf(talk)).toEqual(['one', 're: one', 'two', 're: two', 're: join', 'three', 're: three'])
    expect(
      (await talk.contextFor(last(world.store.nodesOf(run.id), 'agent_message').id, { limitTurns: 2 })).length,
    ).toBeGreaterThan(1)
    expectLawful(world.store)
  })

  test('merges that make no sense are refused in words', async () => {
    const { echo: who } = echo()
    const { runtime } = start()
    const one = await say(runtime, who, 'one')
    const other = await say(runtime, who, 'other')
    const talk = await runtime.conversation(one.run.conversationId)
    const { id: empty } = await talk.history.fork(one.answer.id)

    expect(await reasonOf(talk.history.merge([]))).toBe('not_related')
    expect(await reasonOf(talk.history.merge([talk.id]))).toBe('not_related')
    expect(await reasonOf(talk.history.merge([empty]))).toBe('not_related')
    expect(await reasonOf(talk.history.merge([other.run.conversationId]))).toBe('not_found')
    expect(await reasonOf(talk.history.merge(['x']))).toBe('not_found')
    expect(await reasonOf(talk.history.merge([null as never]))).toBe('not_found')
  })

  test('an archived lane begins no turn and finishes its own; with cancel nothing in it goes on', async () => {
    const gate = makeGate()
    const model = scriptedModel(async ({ messages }) => {
      if (String(messages.at(-1)?.content) === 'slow') await gate.opened
      return 'ok'
    })
    const who = agent({ name: 'who', instructions: '', model })
    const { runtime } = start()
    const one = await say(runtime, who, 'one')
    const talk = await runtime.conversation(one.run.conversationId)
    const slow = runtime.run(who, 'slow', { conversationId: talk.id })
    const queued = runtime.run(who, 'queued', { conversationId: talk.id })
    for await (const event of queued) if (event.type === 'run-queued') break

    await talk.history.archive()
    await talk.history.archive()

    expect(await reasonOf(runtime.run(who, 'new', { conversationId: talk.id }).result)).toBe('archived')
    expect(await reasonOf(talk.mutate((m) => m.createNode({ kind: 'user_message', content: 'x' })))).toBe('busy')
    await talk.history.archive({ mode: 'cancel' })
    expect((await slow.result).status).toBe('cancelled')
    expect((await queued.result).status).toBe('cancelled')
    gate.open()
    expect(await reasonOf(talk.observe('x'))).toBe('archived')
    const { id } = await talk.history.fork(one.answer.id)
    expect((await say(runtime, who, 'goes on', id)).outcome.status).toBe('completed')
    expect(eventsOfType(world.store, talk.id, 'graph-change').map(({ change }) => change)).toEqual(['archive', 'fork'])
    expectLawful(world.store)
  })

  test('a fork in the middle of a turn goes on from there; children are kept or run again; the original stays', async () => {
    let asked = 0
    const child = agent({ name: 'child', instructions: '', model: scriptedModel(() => `child ${++asked}`) })
    let said = 0
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(({ messages }) => {
        const results = messages
          .filter(({ role }) => role === 'tool')
          .map(({ content }) => String(content).split('\n').at(-1))
        if (results.length === 0)
          return {
            calls: [
              { name: 'ask', input: { message: 'a' } },
              { name: 'ask', input: { message: 'b' } },
            ],
          }
        return `${++said}: ${results.join(', ')}`
      }),
      subagents: { ask: child },
    })
    const { runtime } = start()
    const { run, nodes, user, answer } = await say(runtime, host, 'go')
    const talk = await runtime.conversation(run.conversationId)
    const before = rowsOf(world.store, talk.id)
    const results = (await run.result).text.slice(3)

    const atTask = await talk.history.fork(first(nodes, 'task').id)
    const again = await talk.history.fork(first(nodes, 'task').id, { children: 'rerun' })
    const atLeaf = await talk.history.fork(answer.id, { children: 'rerun' })
    const atUser = await talk.history.fork(user.id)

    expect((await atTask.run?.result)?.text.slice(3)).toBe(results)
    expect((await atTask.run?.result)?.children).toBe(0)
    expect((await again.run?.result)?.children).toBe(2)
    expect((await atLeaf.run?.result)?.text.slice(3)).not.toBe(results)
    expect((await atUser.run?.result)?.children).toBe(2)
    expect(asked).toBe(8)
    expect(rowsOf(world.store, talk.id)).toEqual(before)
    expect((await textsOf(await runtime.conversation(atTask.id)))[0]).toBe('go')
    expect(eventsOfType(world.store, talk.id, 'graph-change').filter(({ change }) => change === 'fork')).toHaveLength(4)
    expectLawful(world.store)
  })

  test('a session opened before the fork is forked when the lane first uses it, and the original goes on alone', async () => {
    const expert = echo('expert')
    const sessions = new Map<string, string>()
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(({ messages }) => {
        const lastMessage = messages.at(-1)
        if (lastMessage?.role === 'tool') return String(lastMessage.content)
        const known = messages.findLast(({ role }) => role === 'tool')
        const id = /session_id: (\S+)/.exec(String(known?.content ?? ''))?.[1]
        const message = String(lastMessage?.content)
        return { calls: [{ name: 'call_expert', input: { message, ...(id === undefined ? {} : { session_id: id }) } }] }
      }),
      subagents: [expert.echo],
    })
    const { runtime } = start()
    const one = await say(runtime, host, 'one')
    const talk = await runtime.conversation(one.run.conversationId)
    const opened = world.store.linksOf(one.run.id)[0]?.childConversationId ?? ''
    sessions.set('main', opened)
    const { id: lane } = await talk.history.fork(one.answer.id)
    await say(runtime, host, 'two', talk.id)
    expect(shown(expert.model)).toEqual(['one', 're: one', 'two'])
    const before = rowsOf(world.store, opened)

    const left = await say(runtime, host, 'left', lane)

    expect(left.outcome.text).toContain('re: left')
    expect(shown(expert.model)).toEqual(['one', 're: one', 'left'])
    const forked = world.store.linksOf(left.run.id)[0]?.childConversationId ?? ''
    expect(forked).not.toBe(opened)
    expect(rowsOf(world.store, opened)).toEqual(before)
    await say(runtime, host, 'more', lane)
    expect(shown(expert.model)).toEqual(['one', 're: one', 'left', 're: left', 'more'])
    await say(runtime, host, 'three', talk.id)
    expect(shown(expert.model)).toEqual(['one', 're: one', 'two', 're: two', 'three'])
    expect(world.store.conversation(forked)).toMatchObject({ parentConversationId: lane, type: 'sub_agent' })
    expectLawful(world.store)
  })

  test('a session that heard what an edit took back is forked before it', async () => {
    const expert = echo('expert')
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(({ messages }) => {
        const lastMessage = messages.at(-1)
        if (lastMessage?.role === 'tool') return 'done'
        const known = messages.findLast(({ role }) => role === 'tool')
        const id = /session_id: (\S+)/.exec(String(known?.content ?? ''))?.[1]
        const message = String(lastMessage?.content)
        return { calls: [{ name: 'call_expert', input: { message, ...(id === undefined ? {} : { session_id: id }) } }] }
      }),
      subagents: [expert.echo],
    })
    const { runtime } = start()
    const one = await say(runtime, host, 'one')
    const two = await say(runtime, host, 'two', one.run.conversationId)
    const talk = await runtime.conversation(one.run.conversationId)

    const run = await talk.history.edit(two.user.id, 'deux')
    await run.result

    expect(shown(expert.model)).toEqual(['one', 're: one', 'deux'])
    await say(runtime, host, 'three', talk.id)
    expect(shown(expert.model)).toEqual(['one', 're: one', 'deux', 're: deux', 'three'])
    expectLawful(world.store)
  })

  test('I9: a lane that was not forked from a host has no sessions of it', async () => {
    const expert = echo('expert')
    let wanted: string | undefined
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(({ messages }) => {
        if (messages.at(-1)?.role === 'tool') return String(messages.at(-1)?.content)
        return {
          calls: [
            { name: 'call_expert', input: { message: 'x', ...(wanted === undefined ? {} : { session_id: wanted }) } },
          ],
        }
      }),
      subagents: [expert.echo],
    })
    const { runtime } = start()
    const one = await say(runtime, host, 'one')
    const talk = await runtime.conversation(one.run.conversationId)
    const { id: early } = await talk.history.fork(one.user.id).then(async ({ id, run }) => {
      await run?.result
      return { id }
    })
    const two = await say(runtime, host, 'two', talk.id)
    const other = await say(runtime, host, 'other')
    const later = world.store.linksOf(two.run.id)[0]?.childConversationId ?? ''
    const foreign = world.store.linksOf(other.run.id)[0]?.childConversationId ?? ''

    const answers: string[] = []
    for (const id of [later, foreign, '01890000-0000-7000-8000-000000000000']) {
      wanted = id
      answers.push((await say(runtime, host, 'try', early)).outcome.text.replaceAll(id, 'ID'))
    }

    expect(new Set(answers).size).toBe(1)
    expect(answers[0]).toContain('there is no session ID')
  })

  test('I1: a lane of a child stays under what bound the child, whoever goes on in it', async () => {
    const child = agent({ name: 'child', instructions: '', model: scriptedModel(() => 'ok') })
    const host = agent({
      name: 'host',
      instructions: '',
      grant: { use: ['agent:*', 'model:*'], delegate: ['model:*'] },
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name: 'ask', input: { message: 'x' } }] },
      ),
      subagents: { ask: child },
    })
    const { runtime } = start()
    const one = await say(runtime, host, 'one')
    const link = world.store.linksOf(one.run.id)[0]
    const childTalk = await runtime.conversation(link?.childConversationId ?? '')
    const answer = last(world.store.nodesOf(link?.id ?? ''), 'agent_message')
    expect(await reasonOf(childTalk.history.rerun(answer.id))).toBe('delegated')
    expect(await reasonOf(runtime.run(child, 'x', { conversationId: childTalk.id }).result)).toBe('conflict')
    const ceiling = world.store.conversation(childTalk.id)?.ceiling ?? []

    const { id } = await childTalk.history.fork(answer.id)
    const more = await say(runtime, child, 'more', id)

    expect(more.outcome.status).toBe('completed')
    expect(ceiling.length).toBeGreaterThan(0)
    for (const layer of ceiling) expect(world.store.conversation(id)?.ceiling).toContainEqual(layer)
    expect((await runtime.explain(more.run.id, 'tool:anything')).verdict).toBe('deny')
    const told = eventsOfType(world.store, one.run.conversationId, 'run-start').find(
      ({ runId }) => runId === more.run.id,
    )
    expect(told?.parentId).toBeNull()
    expectLawful(world.store)
  })

  test('I9: a fork reads on in results that were cut before it, and not in what the original got later', async () => {
    const long = tool({
      description: 'x',
      input: { type: 'object' },
      effect: 'pure',
      execute: () => 'x'.repeat(200_000),
    })
    const who = agent({ name: 'who', instructions: '', model: scriptedModel(puppet), tools: { long } })
    const { runtime } = start()
    const one = await say(runtime, who, callOf('long', {}))
    const talk = await runtime.conversation(one.run.conversationId)
    const early = first(one.nodes, 'task').id
    const atEnd = await talk.history.fork(one.answer.id)
    const inside = await talk.history.fork(early)
    await inside.run?.result
    const two = await say(runtime, who, callOf('long', {}), talk.id)
    const late = first(two.nodes, 'task').id

    const read = async (lane: string, id: string) =>
      (await say(runtime, who, callOf('read_result', { id, offset: 100 }), lane)).outcome.text.slice(0, 60)

    expect(await read(atEnd.id, early)).toMatch(/^x+$/)
    expect(await read(inside.id, early)).toMatch(/^x+$/)
    expect(await read(atEnd.id, late)).toContain('there is no cut result')
    expect(await read(inside.id, late)).toContain('there is no cut result')
    expect(await read(talk.id, late)).toMatch(/^x+$/)
  })

  test('a child in the background is read by a fork as it was, and forked when the fork tells it something', async () => {
    const child = echo('child')
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(puppet),
      tools: backgroundSubagents({ agent: child.echo }),
    })
    const { runtime } = start()
    const one = await say(runtime, host, callOf('subagent_run', { name: 'child', prompt: 'hello' }))
    const talk = await runtime.conversation(one.run.conversationId)
    const id = world.store.linksOf(one.run.id)[0]?.childConversationId ?? ''
    const { id: lane } = await talk.history.fork(one.answer.id)
    const before = rowsOf(world.store, id)

    const polled = await say(runtime, host, callOf('subagent_poll', { child_conversation_id: id }), lane)
    await say(runtime, host, callOf('subagent_send', { child_conversation_id: id, message: 'left' }), lane)
    await runtime.idle()

    expect(JSON.parse(polled.outcome.text)).toMatchObject({
      status: 'idle',
      transcript_lines: ['U:hello', 'A:re: hello'],
    })
    expect(shown(child.model).slice(1)).toEqual(['hello', 're: hello', 'left'])
    expect(rowsOf(world.store, id)).toEqual(before)
    const again = await say(runtime, host, callOf('subagent_poll', { child_conversation_id: id }), lane)
    expect(JSON.parse(again.outcome.text)).toMatchObject({ transcript_lines: ['U:left', 'A:re: left'] })
    await say(runtime, host, callOf('subagent_send', { child_conversation_id: id, message: 'right' }), talk.id)
    await runtime.idle()
    expect(shown(child.model).slice(1)).toEqual(['hello', 're: hello', 'right'])
    const { id: late } = await talk.history.fork(one.answer.id)
    const missing = await say(runtime, host, callOf('subagent_poll', { child_conversation_id: id }), late)
    expect(JSON.parse(missing.outcome.text)).toMatchObject({ status: 'missing' })
    expectLawful(world.store)
  })
})

/** Makes the call that it is told, and says what came back. */
const puppet: Script = ({ messages }) => {
  const lastMessage = messages.at(-1)
  if (lastMessage?.role === 'tool') return String(lastMessage.content)
  const text = String(lastMessage?.content)
  return text.startsWith('{') ? { calls: [JSON.parse(text)] } : `re: ${text}`
}

function callOf(name: string, input: object): string {
  return JSON.stringify({ name, input })
}

describe.each(lasting)('merged lanes, on %s', (_, create) => {
  const { start } = useWorld(create)

  test('an answer that merged lanes still knows them when it is rerun or retried, and so do later turns', async () => {
    let isDown = false
    const model = scriptedModel(({ messages }) => {
      if (isDown) throw new Error('down')
      return `re: ${String(messages.findLast(({ role }) => role === 'user')?.content)}`
    })
    const who = agent({ name: 'echo', instructions: '', model })
    const { runtime, store } = start()
    const one = await say(runtime, who, 'one')
    const talk = await runtime.conversation(one.run.conversationId)
    const left = (await talk.history.fork(one.answer.id)).id
    await say(runtime, who, 'R', talk.id)
    await say(runtime, who, 'L', left)
    const known = ['one', 're: one', 'R', 're: R', 'L', 're: L']
    isDown = true
    const failed = await talk.history.merge([left], { prompt: 'both' })
    expect((await failed.result).status).toBe('failed')
    isDown = false

    const retried = await talk.history.retry(last(store.nodesOf(failed.id), 'agent_message').id)
    await retried.result
    expect(shown(model)).toEqual([...known, 'both'])
    const again = await talk.history.rerun(last(store.nodesOf(retried.id), 'agent_message').id)
    await again.result
    expect(shown(model)).toEqual([...known, 'both'])

    expect((await talk.history.merge([left], { prompt: 'both' })).id).toBe(again.id)
    await say(runtime, who, 'next', talk.id)
    expect(shown(model)).toEqual([...known, 'both', 're: both', 'next'])
    expectLawful(store)
  })

  test('a second merge of a lane shows what is new in it, and the rest where it was read first', async () => {
    const { echo: who, model } = echo()
    const { runtime, store } = start()
    const one = await say(runtime, who, 'one')
    const talk = await runtime.conversation(one.run.conversationId)
    const left = (await talk.history.fork(one.answer.id)).id
    await say(runtime, who, 'R', talk.id)
    await say(runtime, who, 'L', left)
    await (await talk.history.merge([left], { prompt: 'both' })).result
    await say(runtime, who, 'L2', left)
    await say(runtime, who, 'R2', talk.id)

    const second = await talk.history.merge([left], { prompt: 'both2' })
    await second.result

    const early = ['one', 're: one', 'R', 're: R', 'L', 're: L', 'both', 're: both', 'R2', 're: R2']
    expect(shown(model)).toEqual([...early, 'L2', 're: L2', 'both2'])
    await say(runtime, who, 'next', talk.id)
    expect(shown(model)).toEqual([...early, 'L2', 're: L2', 'both2', 're: both2', 'next'])
    const node = last(store.nodesOf(second.id), 'agent_message')
    // A short window begins after the first merge: then all of the lane is new.
    const short = (await talk.contextFor(node.id, { limitTurns: 4 })).map(({ preview }) => preview)
    expect(short.filter((text) => text !== '')).toEqual(['R2', 're: R2', 'L', 're: L', 'L2', 're: L2', 're: both2'])
    expectLawful(store)
  })
})
