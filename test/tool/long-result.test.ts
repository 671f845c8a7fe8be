import { agent, tool } from 'legate'
import type { ModelRequest } from 'legate/models'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime, resultIn, resultsIn, toolNamesIn } from '../support/reading.ts'

const anything = { type: 'object' } as const
const SHOWN = 65_536

function dumping(value: unknown) {
  return tool({ description: 'Dump', input: anything, effect: 'pure', execute: () => value })
}

/** Calls `dump`, then pages through its result with read_result until nothing is left; keeps what it read. */
function pager(): { readonly script: Script; readonly read: () => string; readonly pages: string[] } {
  const pages: string[] = []
  let whole = ''
  const script: Script = (request: ModelRequest, call) => {
    if (call === 0) return { calls: [{ name: 'dump', input: {} }] }
    const shown = String(resultsIn(request).at(-1)?.content)
    pages.push(shown)
    const at = shown.lastIndexOf('\n[')
    const id = /"id": "([^"]+)"/.exec(shown.slice(at))?.[1] ?? idIn(resultsIn(request)[0]?.content)
    const offset = /(?:"offset": |offset )(\d+)/.exec(at < 0 ? '' : shown.slice(at))?.[1]
    whole += offset === undefined ? shown : shown.slice(0, at)
    if (offset === undefined) return 'done'
    return { calls: [{ name: 'read_result', input: { id, offset: Number(offset) } }] }
  }
  return { script, read: () => whole, pages }
}

function idIn(content: unknown): string {
  return /"id": "([^"]+)"/.exec(String(content))?.[1] ?? ''
}

describe('a result too long to show', () => {
  test.each<[string, string]>([
    ['half a MB of ASCII', 'The quick brown fox. '.repeat(25_000)],
    ['1 MB of characters of 1 to 4 bytes', 'aé漢😀'.repeat(100_000)],
    ['200 KB of pairs at odd places', `x${'😀'.repeat(50_000)}`],
    ['text with lines like the note itself', 'one\n[cut: 3 of 4]\n'.repeat(10_000)],
  ])('of %s is cut at 64 KB and read_result pages through to the exact whole', async (_name, text) => {
    const { script, read, pages } = pager()
    const model = scriptedModel(script)
    const budget = { modelCalls: 1_000 }
    const clerk = agent({ name: 'clerk', instructions: '', model, budget, tools: { dump: dumping(text) } })

    const outcome = await openRuntime({ compaction: false }).run(clerk, 'go').result

    expect(outcome.status).toBe('completed')
    expect(read() === text).toBe(true)
    expect(pages.length).toBeGreaterThan(2)
    for (const page of pages) expect(Buffer.byteLength(page)).toBeLessThan(SHOWN + 300)
  })

  test('of 10 MB is cut at 64 KB, and any page of it can be read', async () => {
    const text = Array.from({ length: 1_000_000 }, (_, at) => String(at).padStart(9)).join('\n')
    const offsets = [5_000_000, text.length - 100]
    const model = scriptedModel((request, call) => {
      if (call === 0) return { calls: [{ name: 'dump', input: {} }] }
      if (call === 1) return { calls: offsets.map((offset) => readCall(idIn(resultIn(request)), offset)) }
      return 'done'
    })
    const clerk = agent({ name: 'clerk', instructions: '', model, tools: { dump: dumping(text) } })

    await openRuntime().run(clerk, 'go').result

    const [cut, middle, end] = resultsIn(model.requests[2]).map(({ content }) => String(content))
    expect(Buffer.byteLength(cut ?? '')).toBeLessThan(SHOWN + 300)
    expect(text.startsWith(String(cut).slice(0, SHOWN))).toBe(true)
    expect(text.startsWith(String(middle).split('\n[')[0] ?? '?', 5_000_000)).toBe(true)
    expect(end).toBe(text.slice(-100))
  })

  test('a result that is JSON is cut as its text', async () => {
    const rows = Array.from({ length: 20_000 }, (_, id) => ({ id, name: `row ${id}` }))
    const { script, read } = pager()
    const model = scriptedModel(script)

    const clerk = agent({ name: 'clerk', instructions: '', model, tools: { dump: dumping(rows) } })

    await openRuntime({ compaction: false }).run(clerk, 'go').result

    expect(JSON.parse(read())).toEqual(rows)
  })

  test('names how much is shown and what to call to read on', async () => {
    const model = scriptedModel([{ calls: [{ name: 'dump', input: {} }] }, 'done'])

    await openRuntime().run(
      agent({ name: 'clerk', instructions: '', model, tools: { dump: dumping('é'.repeat(50_000)) } }),
      'go',
    ).result

    expect(resultIn(model.requests[1])).toMatch(
      /\n\[cut: 65536 of 100000 bytes shown\. To read on: read_result\(\{ "id": "[0-9a-f-]{36}", "offset": 32768 \}\)\]$/,
    )
  })

  test.each([
    [SHOWN, false],
    [SHOWN + 1, true],
  ])('begins at 64 KB: %i bytes', async (bytes, isCut) => {
    const model = scriptedModel([{ calls: [{ name: 'dump', input: {} }] }, 'done'])

    await openRuntime().run(
      agent({ name: 'clerk', instructions: '', model, tools: { dump: dumping('x'.repeat(bytes)) } }),
      'go',
    ).result

    expect(resultIn(model.requests[1]).includes('[cut: ')).toBe(isCut)
    expect(toolNamesIn(model.requests[1]).includes('read_result')).toBe(isCut)
  })
})

describe('read_result', () => {
  const long = 'x'.repeat(100_000)

  test('is offered only after something was cut, and in the next turn of the conversation still', async () => {
    const model = scriptedModel([{ calls: [{ name: 'dump', input: {} }] }, 'done', 'again'])
    const clerk = agent({ name: 'clerk', instructions: '', model, tools: { dump: dumping(long) } })
    const runtime = openRuntime()

    const first = runtime.run(clerk, 'go')
    await first.result
    await runtime.run(clerk, 'and now?', { conversationId: first.conversationId }).result

    expect(model.requests.map(toolNamesIn)).toEqual([['dump'], ['dump', 'read_result'], ['dump', 'read_result']])
  })

  test('says the same of a foreign id and of one that does not exist (I9)', async () => {
    const spyModel = scriptedModel((request, call) => {
      if (call > 0) return 'done'
      const { id } = JSON.parse(String(request.messages.at(-1)?.content)) as { id: string }
      return { calls: [id, id.replace(/.$/, '0'), 'nonsense'].map((wanted) => readCall(wanted)) }
    })
    const spy = agent({ name: 'spy', instructions: '', model: spyModel, input: z.object({ id: z.string() }) })
    const model = scriptedModel((request, call) => {
      if (call === 0) return { calls: [{ name: 'dump', input: {} }] }
      if (call === 1) return { calls: [{ name: 'spy', input: { id: idIn(resultIn(request)) } }] }
      return 'done'
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      tools: { dump: dumping(long) },
      subagents: { spy },
    })

    await openRuntime().run(host, 'go').result

    const said = resultsIn(spyModel.requests[1])
    const words = said.map(({ content }) => String(content).replace(/[0-9a-f-]{36}|nonsense/, 'ID'))
    expect(words).toEqual(Array(3).fill('Error: there is no cut result ID in this conversation'))
  })

  test.each([
    [{ id: 'x', offset: -1 }],
    [{ id: 'x', offset: 1.5 }],
    [{ id: 'x' }],
    [{ id: 7, offset: 0 }],
    [{ id: 'x', offset: 0, path: '/etc/passwd' }],
  ])('refuses %j', async (input) => {
    const model = scriptedModel([{ calls: [{ name: 'read_result', input }] }, 'done'])

    await openRuntime().run(agent({ name: 'clerk', instructions: '', model }), 'go').result

    expect(resultIn(model.requests[1])).toMatch(/^The arguments of read_result are wrong/)
  })

  test('past the end reads nothing', async () => {
    const model = scriptedModel((request, call) => {
      if (call === 0) return { calls: [{ name: 'dump', input: {} }] }
      if (call === 1) return { calls: [readCall(idIn(resultIn(request)), 1_000_000)] }
      return 'done'
    })

    await openRuntime().run(agent({ name: 'clerk', instructions: '', model, tools: { dump: dumping(long) } }), 'go')
      .result

    expect(resultsIn(model.requests[2])[1]).toMatchObject({ content: '', isError: false })
  })

  test('needs no grant of its own: it shows what its agent was already given', async () => {
    const { script, read } = pager()
    const model = scriptedModel(script)
    const clerk = agent({
      name: 'clerk',
      instructions: '',
      model,
      tools: { dump: dumping(long) },
      grant: { use: ['tool:dump'], ask: ['tool:read_*'] },
    })

    const { status } = await openRuntime({ grant: { use: ['tool:dump'] } }).run(clerk, 'go').result

    expect(status).toBe('completed')
    expect(read()).toBe(long)
  })

  test('is a name that a definition may not take', () => {
    const read_result = dumping('mine')

    expect(() => agent({ name: 'clerk', instructions: '', tools: { read_result } })).toThrow(/read_result.*built in/)
  })
})

test('a long answer of a subagent is cut and read on like the result of a tool', async () => {
  const text = 'finding '.repeat(20_000)
  const writer = agent({ name: 'writer', instructions: '', model: scriptedModel([text]), input: z.object({}) })
  const { script, read } = pager()
  const model = scriptedModel(script)
  const host = agent({ name: 'host', instructions: '', model, subagents: { dump: writer } })

  await openRuntime().run(host, 'go').result

  expect(read()).toBe(text)
})

function readCall(id: string, offset = 0) {
  return { name: 'read_result', input: { id, offset } }
}
