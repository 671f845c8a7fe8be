import { agent, createRuntime } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'

const today = new Date().toISOString().slice(0, 10)
const days = { from: today, to: today }
const usage = { inputTokens: 1_000, outputTokens: 100, cacheReadTokens: 0, cacheWriteTokens: 0 }
const said = (text: string) => ({ text, usage })
const writer = agent({ name: 'writer', instructions: '', model: scriptedModel(() => said('Hello.')) })

function open(file: string) {
  const runtime = createRuntime({ store: sqliteStore(file), agents: [writer] })
  onTestFinished(() => runtime.close())
  return runtime
}

describe('the usage of days', () => {
  test('counts runs without an owner, each once, in every process, for who sees everything', async () => {
    const file = `${tempFolder()}/runs.db`
    const runtime = open(file)
    const everything = runtime.as({ id: 'local', scopes: ['read', 'admin'], sees: 'all' })
    expect(await runtime.usageByDay(days)).toEqual([])
    await runtime.run(writer, 'one').result
    await runtime.run(writer, 'two').result
    await runtime.as({ id: 'ann', scopes: ['start'] }).run('writer', 'three').result

    const rows = (calls: number) => [
      expect.objectContaining({ owner: null, agent: 'writer', model: '', runs: calls, modelCalls: 0, usd: 0 }),
      expect.objectContaining({
        owner: null,
        agent: 'writer',
        runs: 0,
        modelCalls: calls,
        usage: { ...usage, inputTokens: calls * 1_000, outputTokens: calls * 100 },
      }),
    ]
    const owners = [
      expect.objectContaining({ owner: 'ann', runs: 1 }),
      expect.objectContaining({ owner: 'ann', runs: 0 }),
    ]
    for (const reader of [runtime, everything, open(file)]) {
      expect(await reader.usageByDay(days)).toEqual([...rows(2), ...owners])
      expect(await reader.usageByDay(days)).toEqual([...rows(2), ...owners])
    }
    await runtime.run(writer, 'four').result
    expect(await everything.usageByDay(days)).toEqual([...rows(3), ...owners])
    expect(await runtime.usageByDay({ from: '2020-01-01', to: '2020-01-02' })).toEqual([])
    expect(await runtime.usageByDay({ ...days, owner: 'ann' })).toEqual(owners)
    // Whoever does not see these runs does not see what they cost.
    const ann = runtime.as({ id: 'ann', scopes: ['read'] })
    expect(await ann.usageByDay(days)).toEqual(owners)
  })

  test('counts what a run without an owner delegates', async () => {
    const runtime = open(`${tempFolder()}/runs.db`)
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name: 'writer', input: { message: 'Write.' } }] },
      ),
      subagents: { writer },
    })
    await runtime.run(host, 'go').result
    const listed = await runtime.usageByDay(days)
    expect(listed.map(({ owner, agent: name, runs, modelCalls }) => [owner, name, runs, modelCalls])).toEqual([
      [null, 'host', 1, 0],
      [null, 'host', 0, 2],
      [null, 'writer', 0, 1],
    ])
  })
})
