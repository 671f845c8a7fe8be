import { agent, createRuntime, type Json } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { type Script, scriptedModel } from 'legate/testing'
import { toolkit } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { inheritedTurns } from '../../../src/core/delegation/background/read.ts'
import { emptyCommit } from '../../../src/core/graph/commit.ts'
import { readTrees } from '../../../src/core/graph/reader.ts'
import { brokenGraph } from '../../../src/testing/crash/aftermath.ts'
import { localStore } from '../../support/rows.ts'
import { data, hostOf, idIn, lastSaid, playing, spawnCall, tasksIn, workerOf } from './support.ts'

describe('subagent_spawn', () => {
  test('makes a child with a conversation of its own, and says so in the words of its contract', async () => {
    const { runtime, run, task, child } = await spawned('My Agent', 'hello')

    const said = data(String(task?.output.content))
    expect((await run.result).status).toBe('completed')
    expect(said).toEqual({
      ok: true,
      child_conversation_id: child?.id,
      child_graph_id: child?.id,
      agent_key: 'subagent:my_agent',
      policy_profile: 'full',
      status: 'spawned',
    })
    expect(task?.output.metadata?.['subagent']).toEqual(said)
    expect(task?.metadata['subagent']).toEqual({ child_conversation_id: child?.id, child_graph_id: child?.id })
    expect(child?.metadata).toEqual({
      agent: { key: 'subagent:my_agent', policy_profile: 'full', context_turns: 50 },
      subagent: {
        name: 'My Agent',
        parent_conversation_id: run.conversationId,
        parent_graph_id: run.conversationId,
        spawned_from_node_id: task?.id,
      },
    })
    expect(child).toMatchObject({ type: 'sub_agent', title: 'subagent:my_agent', depth: 1 })
    await runtime.close()
  })

  test('seeds developer, user and agent messages in one turn, joined by two edges, and nothing else', async () => {
    const { runtime, child } = await spawned('My Agent', 'hello')
    const store = localStore(runtime)

    const [turn] = store.turnsOf(child?.id ?? '', { limit: 9 })
    const nodes = store.nodesOf(turn?.id ?? '')
    expect(nodes.map(({ kind, laneId }) => [kind, laneId])).toEqual([
      ['developer_message', child?.id],
      ['user_message', child?.id],
      ['agent_message', child?.id],
    ])
    expect(nodes[1]?.input.content).toBe('hello')
    expect(nodes.flatMap(({ id }) => store.edgesFrom(id)).map(({ type }) => type)).toEqual(['sequence', 'sequence'])
    expect(readTrees(store).flatMap(brokenGraph)).toEqual([])
    await runtime.close()
  })

  test.each([
    ['  Ünïcode--Name!! ', 'subagent:n_code_name'],
    ['!!!', 'subagent'],
  ])('%j has the key %s, which is its title', async (name, key) => {
    const { runtime, task, child } = await spawned(name, 'hello')

    expect(data(String(task?.output.content))['agent_key']).toBe(key)
    expect(child?.title).toBe(key)
    expect(child?.metadata['subagent']).toMatchObject({ name })
    await runtime.close()
  })

  test('a title that was given wins', async () => {
    const { runtime, child } = await spawned('x', 'hello', { title: 'Reads the logs' })

    expect(child?.title).toBe('Reads the logs')
    await runtime.close()
  })

  test("the profile is the one that was asked for, else the host conversation's, else full", async () => {
    const worker = workerOf()
    const { host } = hostOf(
      (request) => {
        const said = request.messages.findLast(({ role }) => role === 'user')?.content
        const isSpawned = request.messages.at(-1)?.role === 'tool'
        if (isSpawned || String(said).startsWith('[background]')) return 'done'
        return { calls: [spawnCall('a'), spawnCall('b', 'x', { policy_profile: 'minimal' })] }
      },
      { agent: worker },
    )
    const runtime = createRuntime()
    const first = runtime.run(host, 'go')
    await first.result
    const talk = await runtime.conversation(first.conversationId)
    await talk.configure({ policyProfile: 'full' })
    const profilesOf = (runId: string) =>
      tasksIn(localStore(runtime), runId).map(({ output }) => data(String(output.content))['policy_profile'])

    expect(profilesOf(first.id)).toEqual(['full', 'minimal'])
    await runtime.idle()
    await talk.configure({ policyProfile: 'skills_only' })
    const second = runtime.run(host, 'again', { conversationId: first.conversationId })
    await second.result
    // Under skills_only the host itself may not start anything any more.
    expect(tasksIn(localStore(runtime), second.id).map(({ output }) => output.isError)).toEqual([true, true])
    await runtime.close()
  })

  test.each<[unknown[], number]>([
    [[77, 88], 77],
    [[0, 88], 88],
    [['x', 88], 88],
    [[0, 'abc'], 50],
    [[undefined, undefined], 50],
    [[12.5, 1001], 50],
  ])('context_turns of %j is %i', (said, turns) => {
    expect(inheritedTurns(...said)).toBe(turns)
  })

  test.each<[{ readonly [key: string]: Json }, string, object]>([
    [{ name: ' ', prompt: 'x' }, 'name_is_required', {}],
    [{ prompt: 'x' }, 'name_is_required', {}],
    [{ name: 5, prompt: 'x' }, 'name_is_required', {}],
    [{ name: 'x', prompt: '\n' }, 'prompt_is_required', {}],
    [{ name: 'x', prompt: 'x', policy_profile: 'admin' }, 'invalid_policy_profile', { policy_profile: 'admin' }],
    [{ name: 'x', prompt: 'x', policy_profile: ['full'] }, 'invalid_policy_profile', { policy_profile: 'array' }],
    [{ name: 'x', prompt: 'x', agent_profile: 'toString' }, 'invalid_policy_profile', { policy_profile: 'toString' }],
    [{ name: 'x', prompt: 'x', context_turns: 'abc' }, 'context_turns_must_be_an_integer', { value_class: 'string' }],
    [{ name: 'x', prompt: 'x', context_turns: '5' }, 'context_turns_must_be_an_integer', { value_class: 'string' }],
    [{ name: 'x', prompt: 'x', context_turns: 12.5 }, 'context_turns_must_be_an_integer', { value_class: 'number' }],
    [{ name: 'x', prompt: 'x', context_turns: true }, 'context_turns_must_be_an_integer', { value_class: 'boolean' }],
    [{ name: 'x', prompt: 'x', context_turns: '0x10' }, 'context_turns_must_be_an_integer', { value_class: 'string' }],
    [{ name: 'x', prompt: 'x', context_turns: '1_000' }, 'context_turns_must_be_an_integer', { value_class: 'string' }],
    [{ name: 'x', prompt: 'x', context_turns: 0 }, 'context_turns_out_of_range', { context_turns: 0 }],
    [{ name: 'x', prompt: 'x', context_turns: 1001 }, 'context_turns_out_of_range', { context_turns: 1001 }],
  ])('%j is refused with its code, and makes no child', async (input, code, details) => {
    const { runtime, run, task } = await called({ name: 'subagent_spawn', input })

    expect(task?.output.isError).toBe(true)
    expect(String(task?.output.content)).toContain("Tool 'subagent_spawn' validation failed: ")
    expect(task?.output.metadata?.['validation_error']).toEqual({
      class: 'ValidationError',
      code: `cybros.subagent_spawn.${code}`,
      details,
    })
    expect(localStore(runtime).linksOf(run.id)).toEqual([])
    await runtime.close()
  })

  test('a child may not start one, and its words say which key it has', async () => {
    const inner: unknown[] = []
    const offered = new Map<number, string[]>()
    const { host } = hostOf(({ messages, path, tools }) => {
      offered.set(
        path.length,
        tools.map(({ name }) => name).filter((name) => /_spawn$|_run$|_wait$/.test(name)),
      )
      if (path.length > 1) {
        inner.push(...messages.filter(({ role }) => role === 'tool').map(({ content }) => content))
        return inner.length === 0 ? { calls: [spawnCall('deeper')] } : 'child done'
      }
      return messages.some(({ role }) => role === 'tool') ? 'done' : { calls: [spawnCall('x')] }
    })
    const runtime = createRuntime()
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()
    const [link] = localStore(runtime).linksOf(run.id)
    const [task] = tasksIn(localStore(runtime), link?.id ?? '')

    expect(task?.output.metadata?.['validation_error']).toMatchObject({
      code: 'cybros.subagent_spawn.nested_spawn_not_allowed',
      details: { agent_key: 'subagent:x' },
    })
    expect(inner).toEqual(["Tool 'subagent_spawn' validation failed: nested subagent_spawn is not allowed"])
    expect(localStore(runtime).linksOf(link?.id ?? '')).toEqual([])
    expect([...offered]).toEqual([
      [1, ['subagent_spawn', 'subagent_run', 'subagent_wait']],
      [2, ['subagent_wait']],
    ])
    await runtime.close()
  })

  test.each([
    ['subagent', true],
    ['subagent:x', true],
    ['subagentx', false],
  ])('a conversation whose key is %s is refused: %s', async (key, isRefused) => {
    const worker = workerOf()
    const script: Script = (request) =>
      request.messages.at(-1)?.role === 'user' && !lastSaid(request).startsWith('[background]')
        ? { calls: [spawnCall('x')] }
        : 'done'
    const { host } = hostOf(script, { agent: worker })
    const runtime = createRuntime()
    const first = runtime.run(host, 'go')
    await first.result
    const row = localStore(runtime).conversation(first.conversationId)
    if (row === undefined) throw new Error('no conversation')
    await runtime.idle()
    const current = localStore(runtime).conversation(row.id) ?? row
    await runtime.store.commit({
      ...emptyCommit('note', 1, row.rootId),
      conversations: [{ ...current, version: current.version + 1, metadata: { agent: { key } } }],
    })
    const second = runtime.run(host, 'again', { conversationId: row.id })
    await second.result
    const [task] = tasksIn(localStore(runtime), second.id)

    expect(task?.output.isError === true).toBe(isRefused)
    await runtime.close()
  })

  test('outside of a run there is no conversation to start it from, and it says so', () => {
    const { subagent_spawn } = backgroundSubagents()

    expect(() => subagent_spawn.execute({ name: 'x', prompt: 'x' }, undefined as never)).toThrow('missing_dag_context')
  })

  test('an unknown property is refused before anything is looked at', async () => {
    const { runtime, run, task } = await called(spawnCall('x', 'y', { colour: 'red' }))

    expect(String(task?.output.content)).toMatch(/arguments of subagent_spawn are wrong/)
    expect(localStore(runtime).linksOf(run.id)).toEqual([])
    await runtime.close()
  })

  test('the model is shown exactly these fields', async () => {
    const { model, runtime } = await called(spawnCall())

    const shown = model.requests[0]?.tools.find(({ name }) => name === 'subagent_spawn')?.inputSchema as {
      properties: object
      required: string[]
      additionalProperties: boolean
    }
    expect(Object.keys(shown.properties)).toEqual(['name', 'prompt', 'policy_profile', 'context_turns', 'title'])
    expect(shown.required).toEqual(['name', 'prompt'])
    expect(shown.additionalProperties).toBe(false)
    await runtime.close()
  })

  test('a name says which agent it is, where there are several', async () => {
    const runtime = createRuntime()
    const { host } = hostOf(
      playing(() => ({ calls: [spawnCall('Fact Checker'), spawnCall('nobody')] })),
      {
        agents: { 'fact-checker': workerOf(() => 'checked', 'checker'), writer: workerOf(() => 'written', 'writer') },
      },
    )
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()
    const [known, unknown] = tasksIn(localStore(runtime), run.id)

    expect(localStore(runtime).conversation(idIn(String(known?.output.content)))?.agent.name).toBe('checker')
    expect(unknown?.output.metadata?.['validation_error']).toMatchObject({
      code: 'cybros.subagent_spawn.unknown_agent',
    })
    await runtime.close()
  })

  test('a grant that does not let its host use the agent refuses it, and nothing is made', async () => {
    const worker = workerOf()
    const model = scriptedModel(playing(() => ({ calls: [spawnCall()] })))
    const tools = { ...backgroundSubagents({ agent: worker }) }
    const host = agent({ name: 'host', instructions: 'x', model, tools, grant: { use: ['tool:*', 'model:*'] } })
    const runtime = createRuntime()
    const run = runtime.run(host, 'go')
    await run.result
    const [task] = tasksIn(localStore(runtime), run.id)

    expect(task?.output.isError).toBe(true)
    expect(String(task?.output.content)).toContain('agent:worker')
    expect(localStore(runtime).linksOf(run.id)).toEqual([])
    await runtime.close()
  })
})

describe('what cannot work is refused when it is written', () => {
  const typed = agent({ name: 'typed', instructions: 'x', input: { type: 'object' } })

  test.each<[object, RegExp]>([
    [{ agent: 5 }, /agent is not an agent/],
    [{ agent: typed }, /has an input schema/],
    [{ agents: { '!!': workerOf() } }, /no letter or digit/],
    [{ agents: { a: workerOf(), A: workerOf() } }, /two of them/],
    [{ wake: 'later' }, /wake must be one of "auto", "passive"/],
    [{ contextTurns: 0 }, /contextTurns/],
    [{ profile: 'root' }, /the profile "root"/],
    [{ colour: 'red' }, /has no option "colour"/],
    [{ nested: 'yes' }, /nested/],
  ])('%o', (options, message) => {
    expect(() => backgroundSubagents(options as never)).toThrow(message)
  })
})

async function called(...calls: readonly { readonly name: string; readonly input: Json }[]) {
  const { host, model } = hostOf(
    playing(() => ({ calls })),
    { agent: workerOf() },
  )
  const runtime = createRuntime()
  const run = runtime.run(host, 'go')
  await run.result
  await runtime.idle()
  return { runtime, run, model, task: tasksIn(localStore(runtime), run.id)[0] }
}

async function spawned(name: string, prompt: string, more: { readonly [key: string]: Json } = {}) {
  const found = await called(spawnCall(name, prompt, more))
  return { ...found, child: localStore(found.runtime).conversation(idIn(String(found.task?.output.content))) }
}

describe('background: true', () => {
  test('lets the model start a subagent and go on; the others are called and waited for', async () => {
    const reader = workerOf(() => 'read', 'reader')
    const expert = workerOf(() => 'known', 'expert')
    const model = scriptedModel(playing(() => ({ calls: [spawnCall('reader', 'the log')] })))
    const subagents = { expert, reader: { agent: reader, background: { wake: 'passive' } } } as const
    const host = agent({ name: 'host', instructions: 'Host.', model, subagents })
    const runtime = createRuntime()
    const run = runtime.run(host, 'go')
    expect((await run.result).status).toBe('completed')
    await runtime.idle()

    const shown = model.requests[0]?.tools.map(({ name }) => name) ?? []
    expect(shown).toEqual(expect.arrayContaining(['expert', 'subagent_spawn', 'subagent_wait']))
    expect(shown).not.toContain('reader')
    const [link] = localStore(runtime).linksOf(run.id)
    expect(localStore(runtime).conversation(link?.childConversationId ?? '')?.agent.name).toBe('reader')
    expect(link?.outcome?.status).toBe('completed')
    await runtime.close()
  })

  test('works in a list, under the name of the agent', () => {
    const reader = workerOf(() => 'read', 'reader')
    const host = agent({ name: 'host', instructions: '', subagents: [workerOf(), { agent: reader, background: true }] })

    expect([...host.subagents.keys()]).toEqual(['call_worker'])
    expect([...host.tools.keys()]).toContain('subagent_spawn')
  })

  const reader = workerOf(() => 'read', 'reader')
  const typed = agent({ name: 'typed', instructions: '', input: { type: 'object', properties: {} } })
  test.each([
    ['another setting', { a: { agent: reader, background: true, presets: {} } }, /a\.background and presets do not go/],
    ['false', { a: { agent: reader, background: false } }, /is true, or an object of settings/],
    ['a wrong setting', { a: { agent: reader, background: { wake: 'never' } } }, /wake must be one of/],
    ['a function', { a: { agent: () => reader, background: true } }, /not a function/],
    ['an agent with an input', { a: { agent: typed, background: true } }, /has an input schema/],
    [
      'settings that differ',
      { a: { agent: reader, background: true }, b: { agent: workerOf(), background: { nested: true } } },
      /b\.background has other settings/,
    ],
  ])('is refused with %s', (_name, subagents, words) => {
    expect(() => agent({ name: 'host', instructions: '', subagents: subagents as never })).toThrow(words)
  })

  test('is refused beside the tools that it brings, and in a group', () => {
    const subagents = { reader: { agent: reader, background: true } } as const
    const groups = { more: { description: 'More', active: true, subagents } }

    expect(() => agent({ name: 'h', instructions: '', subagents, tools: { ...backgroundSubagents() } })).toThrow(
      /bring the tool "subagent_spawn", which is among its tools/,
    )
    expect(() => agent({ name: 'h', instructions: '', toolkit: toolkit({ groups }) })).toThrow(
      /only the subagents of agent\(\{ subagents \}\)/,
    )
  })
})
