import { agent } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { callsThenSays, simpleTool, speaker, talkOf, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { localStore, tasksOf } from '../support/rows.ts'
import { lasting } from '../support/stores.ts'

describe.each(lasting)('a node whose code delegates names its newest child, on %s', (_, create) => {
  const { start, restart } = useWorld(create)
  const reference = (id: string | undefined) => ({ child_conversation_id: id, child_graph_id: id })

  test('the task of a tool', async () => {
    const child = speaker('child')
    const work = simpleTool(async (_input, { delegate }) => {
      await delegate(child, 'one')
      return (await delegate(child, 'two')).text
    })
    const host = agent({ name: 'host', instructions: '', tools: { work }, model: scriptedModel(callsThenSays('work')) })
    const { runtime, store } = start()
    const run = runtime.run(host, 'go')
    expect(await run.result).toMatchObject({ status: 'completed', text: 'ok', children: 2 })
    const [task] = tasksOf(store, run.id)
    expect(task?.metadata['subagent']).toEqual(reference(store.linksOf(run.id).at(-1)?.childConversationId))
  })

  test('a node of a kind of one’s own', async () => {
    const child = speaker('child')
    const { runtime, store } = start({
      kinds: { work: { execute: async (_node, { delegate }) => (await delegate(child, 'x')).text } },
    })
    const talk = await talkOf(runtime)
    const nodeId = await talk.mutate((m) => m.createNode({ kind: 'work' }).id)
    await runtime.idle()
    const [link] = store.linksOf(store.node(nodeId)?.turnId ?? '')
    expect(store.node(nodeId)?.metadata['subagent']).toEqual(reference(link?.childConversationId))
  })

  test('the message of an agent that is code', async () => {
    const child = speaker('child')
    const lead = agent({ name: 'lead', reply: async (_message, { delegate }) => (await delegate(child, 'x')).text })
    const { runtime, store } = start()
    const run = runtime.run(lead, 'go')
    await run.result
    const [link] = store.linksOf(run.id)
    expect(store.nodesOf(run.id).at(-1)?.metadata['subagent']).toEqual(reference(link?.childConversationId))
  })
  test('the message of an agent that is code, whose process ends while its child works', async () => {
    const entered = makeGate()
    const family = (answer: Script) => {
      const child = agent({ name: 'child', instructions: '', model: scriptedModel(answer) })
      return agent({
        name: 'lead',
        effect: 'pure',
        subagents: { child },
        reply: async (_message, { delegate }) => (await delegate('child', 'x')).text,
      })
    }
    const first = start()
    const run = first.runtime.run(
      family(() => {
        entered.open()
        return makeGate().opened.then(() => 'never')
      }),
      'go',
    )
    await entered.opened
    const runtime = await restart(first, [family(() => 'late')])
    expect(await (await runtime.attach(run.id)).result).toMatchObject({
      status: 'completed',
      text: 'late',
      children: 1,
    })

    const [link, ...others] = localStore(runtime).linksOf(run.id)
    expect(others).toEqual([])
    expect(localStore(runtime).nodesOf(run.id).at(-1)?.metadata['subagent']).toEqual(
      reference(link?.childConversationId),
    )
  })
})
