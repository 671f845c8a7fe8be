import { DefinitionError, InputError } from 'legate'
import type { Mutation, NodeSpec } from 'legate/rows'
import { describe, expect, test } from 'vitest'
import { talkOf, useWorld } from '../../support/agents.ts'
import { lasting } from '../../support/stores.ts'
import { echo, expectLawful, say, shown } from './support.ts'

const cycle: { value?: unknown } = {}
cycle.value = cycle

/** Nodes that cannot be put in, and a word of each refusal. */
const WRONG: readonly (readonly [unknown, RegExp])[] = [
  [{ kind: 'user_message', state: 'done' }, /state must be one of "pending"/],
  [{ kind: 'task', state: 'done' }, /state must be one of "pending"/],
  [{ kind: 'user_message', content: 5 }, /content must be a text or a list of blocks, not 5/],
  [{ kind: 'user_message', content: [{ type: 'txt', text: 'x' }] }, /content must be a text or a list of blocks/],
  [{ kind: 'user_message', input: { content: 5 } }, /input }\): content must be a text/],
  [{ kind: 'user_message', input: { contnt: 'x' } }, /no option "contnt". Did you mean "content"/],
  [{ kind: 'user_message', input: 'text' }, /input must be an object, not "text"/],
  [{ kind: 'agent_message', state: 'finished', output: { content: 5 } }, /output }\): content must be/],
  [{ kind: 'agent_message', state: 'finished', output: { calls: [{ name: 'x' }] } }, /calls must be a list of/],
  [{ kind: 'task', input: { call: 'now' } }, /call must be \{ id, name, input }/],
  [{ kind: 'task', effect: 'none' }, /effect must be one of "pure"/],
  [{ kind: 'task', efect: 'pure' }, /no option "efect". Did you mean "effect"/],
  [{ kind: 'task', idempotencyKey: 5 }, /idempotencyKey must be a text, not 5/],
  [{ kind: 'task', input: { value: () => 1 } }, /JSON only: "input.value" is a function/],
  [{ kind: 'task', input: cycle }, /JSON only: .*cycle/],
  [{ kind: 'task', metadata: { at: 1n } }, /JSON only: "metadata.at" is a BigInt/],
  [{ kind: 5 }, /kind must be a text, not 5/],
  [{}, /There is no node kind/],
  ['task', /takes an object/],
  [undefined, /takes an object/],
]

describe.each(lasting)('a mutation, on %s', (_, create) => {
  const world = useWorld(create)

  test('refuses a node with a wrong or unknown field, and stores nothing', async () => {
    const { runtime, store } = world.start()
    const { echo: who, model } = echo()
    const { run } = await say(runtime, who, 'one')
    const talk = await runtime.conversation(run.conversationId)

    for (const [spec, words] of WRONG) {
      const refused = talk.mutate((graph) => graph.createNode(spec as NodeSpec).id)
      await expect(refused, JSON.stringify(words.source)).rejects.toThrow(words)
      expect(isRefusal(await refused.catch((error: unknown) => error)), words.source).toBe(true)
    }

    expect(store.turnsOf(talk.id, { limit: 10 })).toHaveLength(1)
    await say(runtime, who, 'two', talk.id)
    expect(shown(model)).toEqual(['one', 're: one', 'two'])
    expectLawful(store)
  })

  test('refuses an edge without a known type, or with nodes in place of ids; the rows can be opened again', async () => {
    const { echo: who } = echo()
    const process = world.start({ agents: [who] })
    const { run } = await say(process.runtime, who, 'one')
    const talk = await process.runtime.conversation(run.conversationId)
    const edge = (join: (graph: Mutation, ids: readonly [string, string]) => void) =>
      talk.mutate((graph) => {
        const [one, two] = [graph.createNode({ kind: 'user_message', content: 'a' }), graph.createNode(ANSWER)]
        join(graph, [one.id, two.id])
        return graph.runId
      })

    await expect(edge((graph, [a, b]) => graph.createEdge(a, b, 'dep' as 'dependency'))).rejects.toThrow(
      /type must be one of "sequence", "dependency", "branch", not "dep"/,
    )
    const untyped = (graph: Mutation, [a, b]: readonly string[]) => Reflect.apply(graph.createEdge, graph, [a, b])
    await expect(edge(untyped)).rejects.toThrow(/type must be one of/)
    const ofNodes = (graph: Mutation) => {
      const node = graph.createNode(ANSWER)
      Reflect.apply(graph.createEdge, graph, [node, node, 'sequence'])
    }
    await expect(edge(ofNodes)).rejects.toThrow(/from must be the id of a node \(node.id\), not an object/)

    const runtime = await world.restart(process, [who])
    expect((await runtime.audit({ verify: true })).findings).toEqual([])
    expect((await say(runtime, who, 'two', talk.id)).outcome.text).toBe('re: two')
  })

  test('is over when its callback returns or throws: what is put in later is refused', async () => {
    const { runtime, store } = world.start()
    const talk = await talkOf(runtime)
    const kept: Mutation[] = []

    const nodeId = await talk.mutate((graph) => {
      kept.push(graph)
      return graph.createNode({ kind: 'user_message', content: 'a' }).id
    })
    await runtime.idle()
    const failed = talk.mutate((graph) => {
      kept.push(graph)
      throw new Error('mine')
    })

    await expect(failed).rejects.toThrow('mine')
    expect(kept).toHaveLength(2)
    for (const graph of kept) {
      expect(() => graph.createNode(ANSWER)).toThrow(/mutation is over/)
      expect(() => graph.createEdge(nodeId, nodeId, 'sequence')).toThrow(InputError)
    }
    await runtime.idle()
    expect((await runtime.audit()).findings).toEqual([])
    expectLawful(store)
  })

  test('refuses an async callback, and stores nothing of it, before or after it waits', async () => {
    const { runtime, store } = world.start()
    const talk = await talkOf(runtime)
    const turns = store.turnsOf(talk.id, { limit: 10 })
    const late: unknown[] = []
    const change = async (graph: Mutation) => {
      graph.createNode({ kind: 'user_message', content: 'a' })
      await new Promise((resolve) => setImmediate(resolve))
      try {
        graph.createNode(ANSWER)
      } catch (error) {
        late.push(error)
        throw error
      }
    }

    // @ts-expect-error: a callback may not be async.
    await expect(talk.mutate(change)).rejects.toThrow(/may not be async/)
    await new Promise((resolve) => setTimeout(resolve, 20))

    expect(late).toMatchObject([{ code: 'invalid_input' }])
    expect(store.turnsOf(talk.id, { limit: 10 })).toEqual(turns)
    await expect(Reflect.apply(talk.mutate, talk, ['x'])).rejects.toThrow(/change must be a function/)
  })

  test('keeps what was given as it was, and names the running turn that it must go into', async () => {
    const hold = { execute: (_: unknown, { signal }: { signal: AbortSignal }) => once(signal) }
    const { runtime, store } = world.start({ kinds: { hold } })
    const talk = await talkOf(runtime)
    const value = { list: ['a'] }
    const { id, runId } = await talk.mutate((graph) => {
      const node = graph.createNode({ kind: 'hold', input: { value } })
      value.list.push('b')
      return { id: node.id, runId: graph.runId }
    })

    expect(store.node(id)?.input).toEqual({ value: { list: ['a'] } })
    const unnamed = talk.mutate((graph) => graph.createNode({ kind: 'user_message', content: 'x' }).id)
    await expect(unnamed).rejects.toThrow(`mutate(change, { runId: '${runId}' })`)
    const added = await talk.mutate((graph) => graph.createNode({ kind: 'user_message', content: 'x' }).id, { runId })
    expect(store.node(added)?.turnId).toBe(runId)
    await runtime.cancel(runId)
    await runtime.idle()
  })
})

const ANSWER: NodeSpec = { kind: 'agent_message', state: 'finished', content: 'b' }

function isRefusal(error: unknown): boolean {
  return DefinitionError.isInstance(error) || InputError.isInstance(error)
}

function once(signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped')))
}
