import { agent, type ToolContext } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
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

  const childThat = (answer: Script) => agent({ name: 'child', instructions: '', model: scriptedModel(answer) })
  const neverAfter =
    (entered: { open: () => void }): Script =>
    () => {
      entered.open()
      return makeGate().opened.then(() => 'never')
    }

  test('the task of a tool, whose process ends while its child works', async () => {
    const entered = makeGate()
    const family = (answer: Script) => {
      const child = childThat(answer)
      const work = simpleTool(async (_input, { delegate }) => (await delegate(child, 'x')).text, { effect: 'pure' })
      return agent({
        name: 'host',
        instructions: '',
        tools: { work },
        subagents: { child },
        model: scriptedModel(callsThenSays('work')),
      })
    }
    const first = start()
    const run = first.runtime.run(family(neverAfter(entered)), 'go')
    await entered.opened
    const [before] = tasksOf(first.store, run.id)
    const [link] = first.store.linksOf(run.id)
    expect(before?.metadata['subagent']).toEqual(reference(link?.childConversationId))
    const runtime = await restart(first, [family(() => 'late')])

    expect(await (await runtime.attach(run.id)).result).toMatchObject({ status: 'completed', text: 'late' })
    const [task] = tasksOf(localStore(runtime), run.id)
    expect(task?.metadata['subagent']).toEqual(
      reference(localStore(runtime).linksOf(run.id).at(-1)?.childConversationId),
    )
  })

  test('a node of a kind of one’s own, whose process ends while its child works', async () => {
    const entered = makeGate()
    const options = (answer: Script) => {
      const child = childThat(answer)
      return {
        agents: [child, speaker('speaker')],
        kinds: {
          work: {
            execute: async (_node: unknown, { delegate }: ToolContext) => (await delegate(child, 'x')).text,
          },
        },
      }
    }
    const first = start(options(neverAfter(entered)))
    const talk = await talkOf(first.runtime)
    const nodeId = await talk.mutate((m) => m.createNode({ kind: 'work', effect: 'pure' }).id)
    await entered.opened
    const turnId = first.store.node(nodeId)?.turnId ?? ''
    const newest = ({ linksOf }: LocalStore) => reference(linksOf(turnId).at(-1)?.childConversationId)
    expect(first.store.node(nodeId)?.metadata['subagent']).toEqual(newest(first.store))
    await first.runtime.close()

    const { runtime, store } = start(options(() => 'late'))
    await runtime.resume()
    await runtime.idle()
    expect(store.node(nodeId)).toMatchObject({ state: 'finished', output: { content: 'late' } })
    expect(store.node(nodeId)?.metadata['subagent']).toEqual(newest(store))
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
