import { agent, createRuntime, type Runtime, type RuntimeOptions, tool } from 'legate'
import { askTools } from 'legate/background'
import { memoryStore } from 'legate/store/memory'
import { type ScriptedModel, scriptedModel } from 'legate/testing'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { type Gate, makeGate } from '../support/gate.ts'
import { Planted } from '../support/planted.ts'
import { markDead, until } from '../support/process.ts'
import { localStore } from '../support/rows.ts'
import { memoryRows } from '../support/stores.ts'

const open: Runtime[] = []

afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime.close()
})

describe('why a run does not go on', () => {
  test('a subagent of it waits for a person: whose call, since when, and how to answer', async () => {
    const runtime = runtimeOf()
    const run = runtime.run(hostOf(asker('tool:deploy')), 'go')
    await until('somebody is asked', () => localStore(runtime).awaiting({ limit: 1 }).length > 0)

    const { goesOn, reasons, text } = await runtime.why(run.id)

    expect(goesOn).toBe(false)
    expect(reasons.map(({ code }) => code)).toEqual(['children', 'approval'])
    expect(text).toMatch(/^host: It waits for "worker", the run [\w-]+\.\nhost > worker: the call of "deploy" waits/)
    expect(reasons[1]?.advice).toMatch(/^legate approvals \w{8}$/)
    expect((await runtime.why(reasons[1]?.nodeId ?? '')).reasons.map(({ code }) => code)).toEqual(['approval'])
    expect((await runtime.why(run.conversationId)).reasons).toEqual(reasons)
    await run.cancel()
    expect((await run.result).status).toBe('cancelled')
    expect(await runtime.why(run.id)).toMatchObject({ goesOn: false, reasons: [{ code: 'ended' }] })
  })

  test('the run has asked a person a question', async () => {
    const runtime = runtimeOf()
    const asks = agent({
      name: 'asks',
      instructions: 'Ask.',
      tools: { ...askTools() },
      model: scriptedModel(({ tools = [] }) => {
        const name = tools.find((one) => one.name.includes('ask'))?.name ?? ''
        return { calls: [{ name, input: { question: 'Which colour?' } }] }
      }),
    })
    const run = runtime.run(asks, 'go')
    await until('it has asked', () =>
      localStore(runtime)
        .openNodes(run.id)
        .some(({ state }) => state === 'waiting'),
    )

    expect(await runtime.why(run.id)).toMatchObject({ goesOn: false, reasons: [{ code: 'question' }] })
    expect((await runtime.why(run.id)).text).toContain('Which colour?')
    await run.cancel()
  })

  test('a process works on it, and others of its conversation come after it', async () => {
    const gate = makeGate()
    const runtime = runtimeOf()
    const slow = agent({
      name: 'slow',
      instructions: 'Wait.',
      model: gated(gate),
    })
    const first = runtime.run(slow, 'one')
    await until('it runs', () => localStore(runtime).turn(first.id)?.state === 'running')
    const second = runtime.run(slow, 'two', { conversationId: first.conversationId })
    await until('it is queued', () => localStore(runtime).turn(second.id)?.state === 'queued')

    expect(await runtime.why(first.id)).toMatchObject({ goesOn: true, reasons: [{ code: 'running' }] })
    expect((await runtime.why(first.id)).text).toMatch(/Process \d+ works on a model call \(answer\) for \d+ s\./)
    expect(await runtime.why(second.id)).toMatchObject({
      goesOn: true,
      reasons: [{ code: 'queued' }, { code: 'running' }],
    })
    gate.open()
    await second.result
  })

  test('the host of the run lets only so many run at once', async () => {
    const gate = makeGate()
    const runtime = runtimeOf()
    const worker = agent({
      name: 'worker',
      description: 'w',
      instructions: 'Wait.',
      model: gated(gate),
    })
    const host = agent({
      name: 'host',
      instructions: 'Host.',
      subagents: { ask: worker },
      budget: { concurrency: 1 },
      model: scriptedModel(({ messages }) => {
        if (messages.at(-1)?.role === 'tool') return 'all'
        return { calls: ['a', 'b'].map((message) => ({ name: 'ask', input: { message } })) }
      }),
    })
    const run = runtime.run(host, 'go')
    await until('one waits', () =>
      localStore(runtime)
        .linksOf(run.id)
        .some(({ released }) => !released),
    )

    const { reasons } = await runtime.why(run.id)

    expect(reasons.map(({ code }) => code).sort()).toEqual(['children', 'children', 'place', 'running'])
    expect(reasons.find(({ code }) => code === 'place')?.text).toContain('the limit of 1')
    gate.open()
    await run.result
  })

  test('the process that worked on it is gone, and the agent it needs is not known here', async () => {
    const rows = memoryRows()
    const gate = makeGate()
    const slow = agent({
      name: 'slow',
      instructions: 'Wait.',
      model: gated(gate),
    })
    const first = runtimeOf({ store: rows.open(), agents: [slow] })
    const run = first.run(slow, 'go')
    await until('it runs', () =>
      localStore(first)
        .openNodes(run.id)
        .some(({ state }) => state === 'running'),
    )
    const other = runtimeOf({ store: rows.open() })
    await markDead(localStore(other), localStore(first).engines()[0])

    expect(await other.why(run.id)).toMatchObject({ goesOn: false, reasons: [{ code: 'process_gone' }] })
    expect((await other.why(run.id)).text).toMatch(/The process \d+ that worked on a model call \(answer\) is gone/)
    gate.open()
    await run.result
  })

  test('no process has the code of its agent', async () => {
    const rows = memoryRows()
    const worker = asker('tool:deploy')
    const first = runtimeOf({ store: rows.open(), agents: [worker] })
    const run = first.run(worker, 'go')
    await until('somebody is asked', () => localStore(first).awaiting({ limit: 1 }).length > 0)
    await first.close()
    const other = runtimeOf({ store: rows.open() })
    const [asked] = await other.approvals()
    await other.answer(asked?.nodeId ?? '', { allow: true })

    const { goesOn, reasons } = await other.why(run.id)

    expect(goesOn).toBe(false)
    expect(reasons).toMatchObject([{ code: 'agent_missing', advice: expect.stringContaining('"worker"') }])
    expect(reasons[0]?.text).toContain('No process works on this store.')
    const third = runtimeOf({ store: rows.open(), agents: [worker] })
    expect(await third.why(run.id)).toMatchObject({ goesOn: true, reasons: [{ code: 'worker' }] })
  })

  test('the run tries again later, and was asked to stop', async () => {
    const runtime = runtimeOf()
    const failing = agent({
      name: 'failing',
      instructions: 'Fail.',
      model: scriptedModel(() => {
        throw Object.assign(new Error('overloaded'), { statusCode: 529, isRetryable: true })
      }),
    })
    const run = runtime.run(failing, 'go')
    await until('it waits', () =>
      localStore(runtime)
        .openNodes(run.id)
        .some(({ wakeAt }) => wakeAt !== null),
    )

    expect(await runtime.why(run.id)).toMatchObject({ goesOn: true, reasons: [{ code: 'timer' }] })
    await run.cancel('enough')
    expect((await runtime.why(run.id)).reasons[0]?.code).toBe('ended')
  })

  test('little is left of its budget', async () => {
    const runtime = runtimeOf()
    const usage = { inputTokens: 95_000, outputTokens: 1 }
    const worker = agent({
      name: 'worker',
      instructions: 'Deploy.',
      budget: { tokens: 100_000 },
      grant: { ask: ['tool:deploy'] },
      tools: { deploy },
      model: scriptedModel(() => ({ calls: [{ name: 'deploy', input: {} }], usage })),
    })
    const run = runtime.run(worker, 'go')
    await until('somebody is asked', () => localStore(runtime).awaiting({ limit: 1 }).length > 0)

    expect((await runtime.why(run.id)).reasons.map(({ code }) => code)).toEqual(['approval', 'budget'])
    await run.cancel()
  })

  test('the run is stuck: nothing would make it go on', async () => {
    const world = await Planted.in('memory')
    onTestFinished(() => world.close())
    const turn = await world.graph.say('go')
    const [, answer] = world.store.nodesOf(turn.id)
    if (answer) await world.change(answer, { state: 'finished', endedAt: 1, output: { content: 'done' } })

    const { goesOn, reasons } = await world.runtime.why(turn.id)

    expect(goesOn).toBe(false)
    expect(reasons).toMatchObject([{ code: 'stuck', advice: expect.stringContaining('audit') }])
  })

  test('an id that is nowhere is refused', async () => {
    await expect(runtimeOf().why('nowhere')).rejects.toThrow(/no run, node or conversation/)
  })
})

describe('pictures', () => {
  test('of the tree and of the graph, for Mermaid and for Graphviz; what was said stays in its box', async () => {
    const runtime = runtimeOf()
    const hostile = 'a"]; x --> y; click n0 "http://x" %%{init}%% \\" ]] <b>'
    const worker = agent({ name: 'worker', description: 'w', instructions: 'x', model: scriptedModel(() => hostile) })
    const { conversationId } = await runtime.run(hostOf(worker), hostile).result

    const tree = await runtime.picture(conversationId)
    const graph = await runtime.picture(conversationId, { of: 'graph' })
    const dot = await runtime.picture(conversationId, { of: 'graph', format: 'dot' })

    expect(tree).toMatch(/^flowchart TD\n {2}n0\["host<br\/>completed, \d+ tokens"\]\n {2}n1\["worker<br/)
    expect(tree).toContain('n0 ==>|"ask"| n1')
    const shown = graph.split('\n').filter((line) => line.includes('click'))
    expect(shown.length).toBeGreaterThan(1)
    for (const line of shown) expect(line).toMatch(/^ {4}n\d+\["[^"\][{}();|`\\%<>]*(?:<br\/>[^"\][{}()|`\\%<>]*)*"\]$/)
    expect(graph.match(/subgraph /g)).toHaveLength(2)
    expect(graph.match(/\|"delegates"\|/g)).toHaveLength(1)
    const boxes = dot.split('\n').filter((line) => line.includes('click'))
    for (const line of boxes) expect(line).toMatch(/^ {4}n\d+ \[label="(?:[^"\\]|\\.)*", fillcolor="#\w{6}"\];$/)
    expect(dot.startsWith('digraph legate {')).toBe(true)
    const child = localStore(runtime)
      .conversations({ rootId: conversationId, limit: 9 })
      .find(({ depth }) => depth === 1)
    expect((await runtime.picture(child?.id ?? '', { of: 'graph' })).match(/subgraph /g)).toHaveLength(1)
    await expect(runtime.picture('nowhere')).rejects.toThrow(/no conversation/)
  })
})

test('a name of a tool that nobody has stays in its line, whatever a model puts into it', async () => {
  const runtime = runtimeOf()
  const name = 'one\ntwo\u2028three\u001b[31m\u202efour'
  const model = scriptedModel([{ calls: [{ name, input: {} }] }, 'Done.'])
  const { conversationId } = await runtime.run(agent({ name: 'a', instructions: 'x', model }), 'go').result
  const mermaid = await runtime.picture(conversationId, { of: 'graph' })
  const dot = await runtime.picture(conversationId, { of: 'graph', format: 'dot' })

  expect(mermaid).toMatch(/one two three #91;31m four/)
  expect(dot).toMatch(/one two three \[31m four/)
})

describe('two runs', () => {
  test('of the same are the same, whatever their ids; and differ node by node where they do', async () => {
    const runtime = runtimeOf()
    let answer = 'blue'
    const worker = agent({ name: 'worker', description: 'w', instructions: 'x', model: scriptedModel(() => answer) })
    const host = hostOf(worker)
    const [one, two] = [await runtime.run(host, 'go').result, await runtime.run(host, 'go').result]
    answer = 'red'
    const three = await runtime.run(host, 'go').result
    const four = await runtime.run(worker, 'go').result

    expect(await runtime.diff(one.runId, two.runId)).toMatchObject({ changes: [], same: 6 })
    const { changes, same, first, second } = await runtime.diff(one.runId, three.runId)
    expect(changes.map(({ place, fields }) => [place, fields])).toEqual([
      ['host/2', ['output']],
      ['host > worker#1/1', ['output']],
    ])
    expect(changes[1]).toMatchObject({ change: 'changed', first: { output: 'blue' }, second: { output: 'red' } })
    expect([same, first.status, second.nodes]).toEqual([4, 'completed', 6])
    const other = await runtime.diff(one.runId, four.runId)
    expect(new Set(other.changes.map(({ change }) => change))).toEqual(new Set(['only_first', 'only_second']))
    await expect(runtime.diff(one.runId, 'nowhere')).rejects.toThrow(/no run/)
  })
})

const deploy = tool({ description: 'Deploys.', input: { type: 'object' }, execute: () => 'ok' })

function asker(rule: string) {
  return agent({
    name: 'worker',
    description: 'w',
    instructions: 'Deploy.',
    tools: { deploy },
    grant: { ask: [rule] },
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'deployed' : { calls: [{ name: 'deploy', input: {} }] },
    ),
  })
}

function hostOf(worker: ReturnType<typeof asker>) {
  return agent({
    name: 'host',
    instructions: 'Host.',
    subagents: { ask: worker },
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'all done' : { calls: [{ name: 'ask', input: { message: 'go' } }] },
    ),
  })
}

/** Answers when the gate is opened. */
function gated(gate: Gate): ScriptedModel {
  return scriptedModel(async () => {
    await gate.opened
    return 'done'
  })
}

function runtimeOf(options: RuntimeOptions = {}): Runtime {
  const runtime = createRuntime({ store: memoryStore(), ...options })
  open.push(runtime)
  return runtime
}
