import { readdirSync, readlinkSync } from 'node:fs'
import { type AnyAgent, agent, type Run, type Runtime, type SubagentConfig, tool } from 'legate'
import type { Part } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { runProcess } from 'legate/tools'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { makeGate } from '../support/gate.ts'
import { PROMPTLY_MS } from '../support/pace.ts'
import { eventsOf, only, openRuntime, resultIn, taskOf } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { tempFolder } from '../support/temp-folder.ts'

const Input = z.object({ n: z.number() })
const ask = { calls: [{ name: 'ask', input: { n: 1 } }] }
const INTERRUPTED = '<system-info>The tool call has been interrupted by the user.</system-info>'

/** Says something, tells of it, and then waits to be stopped. */
function speaker() {
  const [spoken, stopped] = [makeGate(), makeGate<unknown>()]
  let calls = 0
  const model = {
    id: 'own/speaker',
    async *stream(_request: unknown, { signal }: { signal: AbortSignal }): AsyncGenerator<Part> {
      calls++
      yield { type: 'text-delta', text: 'So far: ' }
      yield { type: 'text-delta', text: 'one finding.' }
      spoken.open()
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))).catch(
        stopped.open,
      )
    },
  }
  return { model, spoken: spoken.opened, stopped: stopped.opened, calls: () => calls }
}

function below(levels: number, leaf: AnyAgent): AnyAgent {
  let agentBelow = leaf
  for (let level = levels; level > 0; level--) {
    const model = scriptedModel([{ text: `Level ${level} asks.`, ...ask }])
    const input = level === 1 ? {} : { input: Input }
    agentBelow = agent({ name: `level${level}`, instructions: '', model, ...input, subagents: { ask: agentBelow } })
  }
  return agentBelow
}

describe('cancelling a host', () => {
  test.each([1, 2, 3])(
    'stops the child %i levels down at once, and keeps at each level what it had',
    async (levels) => {
      const { model, spoken, stopped, calls } = speaker()
      const leaf = agent({ name: 'leaf', instructions: '', model, input: Input })
      const runtime = openRuntime()
      const run = runtime.run(below(levels, leaf), 'go' as never)
      await spoken
      const start = Date.now()

      await run.cancel('enough')
      const outcome = await run.result

      expect(outcome).toMatchObject({ status: 'cancelled', text: 'Level 1 asks.', error: { message: 'enough' } })
      expect(await stopped).toMatchObject({ code: 'aborted' })
      expect(Date.now() - start).toBeLessThan(PROMPTLY_MS)
      expect(calls()).toBe(1)
      const statuses = runsBelow(runtime, run).map(({ id }) => localStore(runtime).turn(id)?.outcome?.status)
      expect(statuses).toEqual(Array(levels + 1).fill('cancelled'))
      const partial = levels === 1 ? 'So far: one finding.' : 'Level 2 asks.'
      expect(taskOf(runtime, run)).toMatchObject({
        state: 'stopped',
        output: { content: `${INTERRUPTED}\n\n${partial}` },
      })
    },
  )

  test('ends the child before itself, in the events too', async () => {
    const { model, spoken } = speaker()
    const leaf = agent({ name: 'leaf', instructions: '', model, input: Input })
    const run = openRuntime().run(below(2, leaf), 'go' as never)
    const reading = eventsOf(run)
    await spoken

    await run.cancel()
    const events = await reading

    expect(only(events, 'run-end').map(({ path, outcome }) => `${path.at(-1)} ${outcome.status}`)).toEqual([
      'leaf cancelled',
      'level2 cancelled',
      'level1 cancelled',
    ])
  })

  test('leaves the conversation fit to go on: the call has a result that says it was interrupted', async () => {
    const { model: slow, spoken } = speaker()
    const leaf = agent({ name: 'leaf', instructions: '', model: slow, input: Input })
    const model = scriptedModel([ask, 'Fine.'])
    const host = agent({ name: 'host', instructions: '', model, subagents: { ask: leaf } })
    const runtime = openRuntime()
    const first = runtime.run(host, 'go')
    await spoken
    await first.cancel()
    await first.result

    const second = await runtime.run(host, 'go on', { conversationId: first.conversationId }).result

    expect(second).toMatchObject({ status: 'completed', text: 'Fine.' })
    expect(resultIn(model.requests[1])).toBe(`${INTERRUPTED}\n\nSo far: one finding.`)
  })

  test('stops children that wait for their turn too: none of them starts', async () => {
    const { model, spoken, calls } = speaker()
    const leaf = agent({ name: 'leaf', instructions: '', model, input: Input })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel([{ calls: Array(4).fill(ask.calls[0]) }]),
      subagents: { ask: leaf },
      budget: { concurrency: 1 },
    })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    await spoken
    await new Promise((resolve) => setTimeout(resolve, 20))

    await run.cancel()
    await run.result

    expect(calls()).toBe(1)
    expect(
      localStore(runtime)
        .linksOf(run.id)
        .map(({ outcome }) => outcome?.status),
    ).toEqual(Array(4).fill('cancelled'))
  })
})

describe('what a cancelled child had', () => {
  test('is what its last call gave, when it has said nothing', async () => {
    const entered = makeGate()
    const look = tool({
      description: 'Look',
      input: { type: 'object' },
      effect: 'pure',
      execute: () => 'A finding.',
    })
    const fail = tool({
      description: 'Fail',
      input: { type: 'object' },
      effect: 'pure',
      execute: () => Promise.reject(new Error('no')),
    })
    const wait = tool({
      description: 'Wait',
      input: { type: 'object' },
      effect: 'pure',
      execute: () => {
        entered.open()
        return new Promise(() => undefined)
      },
    })
    const model = scriptedModel([
      { calls: ['look', 'fail'].map((name) => ({ name, input: {} })) },
      { calls: [{ name: 'wait', input: {} }] },
    ])
    const leaf = agent({ name: 'leaf', instructions: '', input: Input, model, tools: { look, fail, wait } })
    const runtime = openRuntime()
    const run = runtime.run(
      agent({ name: 'host', instructions: '', model: scriptedModel([ask]), subagents: { ask: leaf } }),
      'go',
    )
    await entered.opened

    await run.cancel()

    const said = `${INTERRUPTED}\n\nA finding.`
    expect(await run.result).toMatchObject({ status: 'cancelled', text: said })
    expect(taskOf(runtime, run).output.content).toBe(said)
  })

  test('comes up through levels that have said nothing, with one word of the interruption', async () => {
    const { model, spoken } = speaker()
    let below: AnyAgent = agent({ name: 'leaf', instructions: '', model, input: Input })
    for (const level of [2, 1, 0]) {
      below = agent({
        name: `level${level}`,
        instructions: '',
        model: scriptedModel([ask]),
        subagents: { ask: below },
        ...(level === 0 ? {} : { input: Input }),
      }) as AnyAgent
    }
    const run = openRuntime().run(below, 'go' as never)
    await spoken

    await run.cancel()

    expect((await run.result).text).toBe(`${INTERRUPTED}\n\nSo far: one finding.`)
  })
})

describe('programs', () => {
  test('programs that tools of a child run are ended with it, with all they have started', async () => {
    const folder = tempFolder()
    const shell = tool({
      description: 'Shell',
      input: { type: 'object' },
      execute: async (_input, { signal }) => {
        const script = 'trap "" TERM; sh -c "echo > ready; sleep 30; echo > late" & sleep 30; echo > late'
        return (await runProcess('sh', ['-c', script], { signal, cwd: folder, killAfterMs: 50 })).exitCode
      },
    })
    const model = scriptedModel([{ calls: [{ name: 'shell', input: {} }] }])
    const leaf = agent({ name: 'leaf', instructions: '', input: Input, model, tools: { shell } })
    const run = openRuntime().run(below(2, leaf), 'go' as never)
    while (!readdirSync(folder).includes('ready')) await new Promise((resolve) => setTimeout(resolve, 5))
    const began = performance.now()

    await run.cancel()
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'cancelled', uncertain: [expect.any(String)] })
    expect(performance.now() - began).toBeLessThan(PROMPTLY_MS)
    // They end with the call; the system needs a moment to clear a killed process away.
    await vi.waitFor(() => expect(processesIn(folder)).toEqual([]), { timeout: 500 })
  })
})

test('cancelling one child leaves its siblings and its host alone', async () => {
  const { model: slow, spoken } = speaker()
  const held = agent({ name: 'held', instructions: '', model: slow, input: Input })
  const quick = agent({ name: 'quick', instructions: '', model: scriptedModel(['quick answer']), input: Input })
  const calls = ['held', 'quick'].map((name) => ({ name, input: { n: 1 } }))
  const model = scriptedModel([{ calls }, 'done'])
  const runtime = openRuntime()
  const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents: { held, quick } }), 'go')
  await spoken

  const link = localStore(runtime)
    .linksOf(run.id)
    .find(({ agentName }) => agentName === 'held')
  await runtime.cancel(link?.id ?? '')

  expect(await run.result).toMatchObject({ status: 'completed', text: 'done', children: 2 })
})

describe('a child that is given up on with its host', () => {
  test.each([1, 2])('goes on when its host says so, %i levels down, and stays listed', async (levels) => {
    const [entered, open] = [makeGate(), makeGate()]
    const model = scriptedModel(async () => {
      entered.open()
      await open.opened
      return { text: 'finished after all', usage: { inputTokens: 3, outputTokens: 2 } }
    })
    const leaf = agent({ name: 'leaf', instructions: '', model, input: Input })
    const hostOf = (name: string, subagent: AnyAgent | SubagentConfig, isChild: boolean) =>
      agent({
        name,
        instructions: '',
        model: scriptedModel([ask]),
        subagents: { ask: subagent },
        ...(isChild && { input: Input }),
      }) as AnyAgent
    const near = hostOf('near', { agent: leaf, onParentClose: 'abandon' }, levels === 2)
    const runtime = openRuntime()
    const run = runtime.run(levels === 1 ? near : hostOf('far', near, false), 'go' as never)
    await entered.opened
    const host = levels === 1 ? run.id : (localStore(runtime).linksOf(run.id)[0]?.id ?? '')
    const listed = () => localStore(runtime).linksOf(host)[0]

    await run.cancel()
    expect(await run.result).toMatchObject({ status: 'cancelled' })
    expect(localStore(runtime).turn(host)).toMatchObject({ state: 'ended', outcome: { status: 'cancelled' } })
    expect(listed()).toMatchObject({ outcome: null, released: true })
    open.open()

    const left = await (await runtime.attach(listed()?.id ?? '')).result
    expect(left).toMatchObject({ status: 'completed', text: 'finished after all' })
    expect(listed()).toMatchObject({ outcome: { status: 'completed' } })
    expect(localStore(runtime).turn(host)?.account.usage).toMatchObject({ inputTokens: 3, outputTokens: 2 })
  })

  test('can itself be cancelled, and is not started again by a second cancel of its host', async () => {
    const { model, spoken } = speaker()
    const leaf = agent({ name: 'leaf', instructions: '', model, input: Input })
    const subagents = { ask: { agent: leaf, onParentClose: 'abandon' } } as const
    const runtime = openRuntime()
    const run = runtime.run(agent({ name: 'host', instructions: '', model: scriptedModel([ask]), subagents }), 'go')
    await spoken
    await run.cancel()
    await run.result
    const [link] = localStore(runtime).linksOf(run.id)
    await run.cancel()
    expect(localStore(runtime).turn(link?.id ?? '')?.cancel).toBeNull()

    await runtime.cancel(link?.id ?? '', 'you too')

    expect(await (await runtime.attach(link?.id ?? '')).result).toMatchObject({
      status: 'cancelled',
      text: 'So far: one finding.',
      error: { message: 'you too' },
    })
  })
})

test('a tool that is stopped with its run has the children it called stopped too, and starts no more', async () => {
  const { model, spoken, calls } = speaker()
  const leaf = agent({ name: 'leaf', instructions: '', model, input: Input })
  const chain = tool({
    description: 'Chain',
    input: { type: 'object' },
    execute: async (_input, { delegate }) => {
      await delegate(leaf, { n: 1 })
      await delegate(leaf, { n: 2 })
      return 'both'
    },
  })
  const host = agent({
    name: 'host',
    instructions: '',
    model: scriptedModel([{ calls: [{ name: 'chain', input: {} }] }]),
    tools: { chain },
  })
  const runtime = openRuntime()
  const run = runtime.run(host, 'go')
  await spoken

  await run.cancel()
  await run.result
  await new Promise((resolve) => setTimeout(resolve, 20))

  expect(calls()).toBe(1)
  expect(localStore(runtime).linksOf(run.id)).toHaveLength(1)
})

/** The run and all runs below it, hosts first. */
function runsBelow(runtime: Runtime, run: Pick<Run, 'id'>): { readonly id: string }[] {
  return [
    { id: run.id },
    ...localStore(runtime)
      .linksOf(run.id)
      .flatMap(({ id }) => runsBelow(runtime, { id })),
  ]
}

/** The processes that work in a folder. */
function processesIn(folder: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === folder
    } catch {
      return false
    }
  })
}
