import { agent, type Outcome } from 'legate'
import type { KindDefinition } from 'legate/rows'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { asksThenSays, callsThenSays, simpleTool, speaker, talkOf, useWorld } from '../support/agents.ts'
import { until } from '../support/process.ts'
import { eventsOf, eventsOfType } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

const child = agent({
  name: 'child',
  instructions: 'You are a child.',
  model: scriptedModel(() => 'child: world'),
})

/** Starts a child, waits for it and keeps its reference. */
const research: KindDefinition = {
  execute: async (_, { delegate }) => {
    const outcome = (await delegate(child, 'child: hello')) as Outcome
    return { child_conversation_id: outcome.conversationId, text: outcome.text }
  },
}

/** Says what the child of the node before it said, read through a bounded read. */
const report: KindDefinition = {
  leaf: true,
  transcript: true,
  anchor: true,
  execute: (node, { graph }) => {
    const before = graph.edgesTo(node.id).map(({ from }) => graph.node(from)?.output.value)
    const { child_conversation_id: id } = before.find((value) => value !== undefined) as {
      child_conversation_id: string
    }
    const lines = graph.turnsOf(id, { limit: 10 }).flatMap((turn) => graph.nodesOf(turn.id))
    return lines.map(({ input, output }) => input.content ?? output.content).join(' / ')
  },
}

describe.each(stores)('a conversation put together by hand, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('a task starts a child, and the node that depends on it folds in what the child said', async () => {
    const { runtime } = start({ kinds: { research, report } })
    const talk = await talkOf(runtime)

    const { turnId, ids } = await talk.mutate((m) => {
      const user = m.createNode({ kind: 'user_message', content: 'go' }).id
      const task = m.createNode({ kind: 'research' }).id
      const answer = m.createNode({ kind: 'report' }).id
      m.createEdge(user, task, 'sequence')
      m.createEdge(task, answer, 'dependency')
      m.createEdge(user, answer, 'sequence')
      return { turnId: m.runId, ids: { user, task, answer } }
    })
    const run = await runtime.attach(turnId)
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'completed', children: 1 })
    const answer = world.store.node(ids.answer)
    expect(answer?.output.content).toBe('child: hello / child: world')
    expect(world.store.node(ids.task)?.endedAt).toBeLessThanOrEqual(answer?.startedAt ?? 0)
    const [link] = world.store.linksOf(turnId)
    expect(world.store.node(ids.task)?.output.value).toMatchObject({ child_conversation_id: link?.childConversationId })
    const lines = (await talk.transcript()).filter((line) => line.runId === turnId)
    expect(lines.map(({ role, nodeId }) => [role, nodeId])).toEqual([
      ['user', ids.user],
      ['agent', ids.answer],
    ])
  })

  test('a task that delegates gets the final text inline, and nobody polls', async () => {
    const model = scriptedModel(callsThenSays('ask'))
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      tools: {
        ask: simpleTool(async (_, { delegate }) => ((await delegate(child, 'hello')) as Outcome).text),
      },
    })
    const { runtime } = start()
    const run = runtime.run(host, 'go')

    expect(await run.result).toMatchObject({ text: 'child: world', modelCalls: 2, toolCalls: 1, children: 1 })
    expect(world.store.nodesOf(run.id).filter(({ kind }) => kind === 'task')).toHaveLength(1)
  })

  test('a later turn reads a child by its reference, and a reader of its events can go on from its end', async () => {
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(asksThenSays('started it', 'hello')),
      subagents: { ask: child },
    })
    const { runtime } = start({ kinds: { report } })
    const run = runtime.run(host, 'go')
    await run.result
    const [link] = world.store.linksOf(run.id)
    const childRun = await runtime.attach(link?.id ?? '')

    const ends: string[] = []
    for await (const event of childRun) if (event.type === 'run-end') ends.push(event.outcome.status)
    const talk = await runtime.conversation(run.conversationId)
    const { turnId, answer } = await talk.mutate((m) => {
      const note = m.createNode({
        kind: 'summary',
        output: { value: { child_conversation_id: link?.childConversationId ?? '' } },
      })
      const answer = m.createNode({ kind: 'report' })
      m.createEdge(note.id, answer.id, 'sequence')
      return { turnId: m.runId, answer: answer.id }
    })
    await (await runtime.attach(turnId)).result

    expect(ends).toEqual(['completed'])
    expect(world.store.node(answer)?.output.content).toBe('hello / child: world')
  })

  test('what a child tells is in its own part of the log, and a host sees it by its path', async () => {
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(asksThenSays('done', 'hello')),
      subagents: { ask: child },
    })
    const { runtime } = start()
    const run = runtime.run(host, 'go')
    await run.result
    const [link] = world.store.linksOf(run.id)

    const events = eventsOf(world.store, run.conversationId)

    const ofChild = events.filter(({ runId }) => runId === link?.id)
    expect(ofChild.map(({ type }) => type)).toEqual(['run-start', 'message', 'usage', 'message', 'run-end'])
    for (const event of ofChild) expect(event).toMatchObject({ path: ['host', 'child'], parentId: run.id })
    for (const event of events) {
      if (event.runId === run.id) expect(event).toMatchObject({ path: ['host'], parentId: null })
    }
  })

  test('from a task to its child, and from a child to its parent and the node that started it', async () => {
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(asksThenSays('done', 'hello')),
      subagents: { ask: child },
    })
    const { runtime } = start()
    const run = runtime.run(host, 'go')
    await run.result

    const task = world.store.nodesOf(run.id).find(({ kind }) => kind === 'task')
    const reference = task?.output.subagent
    const conversation = world.store.conversation(reference?.child_conversation_id ?? '')

    expect(reference?.child_graph_id).toBe(reference?.child_conversation_id)
    expect(conversation).toMatchObject({
      type: 'sub_agent',
      depth: 1,
      rootId: run.conversationId,
      parentConversationId: run.conversationId,
      parentTurnId: run.id,
      parentTaskId: task?.id,
      metadata: {
        subagent: {
          name: 'child',
          parent_conversation_id: run.conversationId,
          parent_graph_id: run.conversationId,
          spawned_from_node_id: task?.id,
        },
      },
    })
    expect(world.store.linksOf(run.id)).toMatchObject([
      { taskId: task?.id, childConversationId: conversation?.id, deliveredTo: task?.id },
    ])
  })

  test('an answer grown behind nodes of a user has what they gave in its context', async () => {
    const model = scriptedModel(({ messages }) => JSON.stringify(messages.map(({ content }) => content)))
    const { runtime } = start({ kinds: { lookup: { execute: () => 'the sky is blue' } } })
    const talk = await talkOf(runtime, agent({ name: 'speaker', instructions: '', model }))

    const turnId = await talk.mutate((m) => {
      const user = m.createNode({ kind: 'user_message', content: 'what colour?' }).id
      const lookup = m.createNode({ kind: 'lookup' }).id
      m.createEdge(user, lookup, 'sequence')
      return m.runId
    })
    const outcome = await (await runtime.attach(turnId)).result

    expect(outcome.status).toBe('completed')
    expect(outcome.text).toContain('the sky is blue')
  })

  test('a node that comes after another has it in its context, in whatever order they were made', async () => {
    const model = scriptedModel(({ messages }) => JSON.stringify(messages.map(({ content }) => content)))
    const { runtime } = start({ kinds: { lookup: { execute: () => 'the sky is blue' } } })
    const talk = await talkOf(runtime, agent({ name: 'speaker', instructions: '', model }))

    const turnId = await talk.mutate((m) => {
      const answer = m.createNode({ kind: 'agent_message' }).id
      const lookup = m.createNode({ kind: 'lookup' }).id
      m.createEdge(lookup, answer, 'dependency')
      return m.runId
    })

    expect((await (await runtime.attach(turnId)).result).text).toContain('the sky is blue')
  })

  test('a kind that throws is errored with its reason, and the turn goes on', async () => {
    const { runtime } = start({
      kinds: {
        broken: {
          execute: () => {
            throw new Error('no such thing')
          },
        },
      },
    })
    const talk = await talkOf(runtime)

    const { turnId, nodeId } = await talk.mutate((m) => {
      return { nodeId: m.createNode({ kind: 'broken' }).id, turnId: m.runId }
    })
    const outcome = await (await runtime.attach(turnId)).result

    expect(world.store.node(nodeId)).toMatchObject({
      state: 'errored',
      failure: { code: 'kind', message: 'no such thing' },
    })
    expect(outcome.status).toBe('completed')
  })

  test('nodes put in while a turn runs belong to it, and the turn ends after them', async () => {
    const { runtime } = start({
      kinds: {
        quick: { execute: () => 'quick' },
        slow: { execute: () => new Promise((done) => setTimeout(done, 30)) },
      },
    })
    const talk = await talkOf(runtime)
    const runId = await talk.mutate((m) => {
      m.createNode({ kind: 'slow' })
      return m.runId
    })

    const added = await talk.mutate((m) => m.createNode({ kind: 'quick' }).id, { runId })
    await (await runtime.attach(runId)).result

    expect(world.store.node(added)).toMatchObject({ state: 'finished', turnId: runId })
    const second = talk.mutate((m) => m.createNode({ kind: 'quick' }), { runId })
    await expect(second).rejects.toThrow(/no running turn/)
    expect(eventsOfType(world.store, talk.id, 'run-end').filter((event) => event.runId === runId)).toHaveLength(1)
  })

  test('a message while a turn made by hand runs is queued behind it', async () => {
    const talker = speaker('speaker', 'later')
    const { runtime } = start({ kinds: { slow: { execute: () => new Promise((done) => setTimeout(done, 20)) } } })
    const talk = await talkOf(runtime, talker)
    const turnId = await talk.mutate((m) => {
      m.createNode({ kind: 'slow' })
      return m.runId
    })

    const run = runtime.run(talker, 'next', { conversationId: talk.id })
    await until('the queue', () => world.store.turn(run.id)?.state === 'queued')

    expect((await run.result).text).toBe('later')
    expect(world.store.turn(turnId)?.endedAt).toBeLessThanOrEqual(world.store.turn(run.id)?.startedAt ?? 0)
  })
})
