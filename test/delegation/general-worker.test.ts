import { join } from 'node:path'
import { agent, createRuntime, tool } from 'legate'
import { generalWorker } from 'legate/background'
import { jsonStore } from 'legate/store/json'
import { memoryStore } from 'legate/store/memory'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { memoryFiles } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { openRuntime, resultIn, resultsIn, taskOf, toolNamesIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { tempFolder } from '../support/temp-folder.ts'

const path = '/workspace/report.md'
const work = (input: object) => ({ name: 'work', input: input as never })

async function hosted(grant: readonly string[], calls: readonly { name: string; input: object }[]) {
  const childModel = scriptedModel((request) => {
    const results = resultsIn(request)
    const call = calls[results.length]
    return call === undefined
      ? results.map(({ content }) => String(content)).join('\n')
      : { calls: [{ name: call.name, input: call.input as never }] }
  })
  const model = scriptedModel([{ calls: [work({ task: 'Write a report.', success_criteria: 'It exists.' })] }, 'done'])
  const host = agent({
    name: 'host',
    instructions: '',
    model,
    grant: { use: ['tool:*', 'agent:*', 'model:*', ...grant] },
    subagents: { work: generalWorker({ model: childModel }) },
  })
  const files = memoryFiles()
  const runtime = openRuntime({ files })
  const run = runtime.run(host, 'go')
  const outcome = await run.result
  return { childModel, model, runtime, run, outcome, files: files.open({ use: ['file.*:**'] }) }
}

describe('the general worker', () => {
  const write = { name: 'write_file', input: { path, content: 'All is well.' } }
  const read = { name: 'read_text_file', input: { path, with_header: false, with_line_numbers: false } }

  test('does a task with files and reports which tools it used', async () => {
    const { outcome, model, runtime, run, files } = await hosted(['file.*:/workspace/**'], [write, read])

    expect(outcome).toMatchObject({ status: 'completed', children: 1 })
    expect(await files.readText(path)).toBe('All is well.')
    expect(resultIn(model.requests[1])).toMatch(/^wrote 12 bytes to \/workspace\/report\.md\nAll is well\.$/)
    expect(taskOf(runtime, run).output.metadata).toMatchObject({
      subagent: 'worker',
      response_metadata: { tool_trace: ['write_file', 'read_text_file'] },
    })
  })

  test('has the file tools without being told, and none of them asks for a service', async () => {
    const { childModel } = await hosted(['file.*:/workspace/**'], [])

    const [request] = childModel.requests
    expect(toolNamesIn(request)).toEqual(expect.arrayContaining(['read_text_file', 'write_file', 'list_directory']))
    expect(JSON.stringify(request?.tools)).not.toMatch(/"service"/)
    const told = String(request?.messages[1]?.content)
    expect(told).toContain('"workspace_pointers":["/workspace/"]')
    expect(request?.messages.at(-1)?.content).toBe('{"task":"Write a report.","success_criteria":"It exists."}')
  })

  test('I1: reaches no more than its host passes on, and nothing changes where it may not', async () => {
    const outside = { name: 'write_file', input: { path: '/internal/x.md', content: 'no' } }
    const { model, files } = await hosted(['file.read:/workspace/**'], [write, outside])

    expect(resultIn(model.requests[1])).toMatch(
      /file\.write:\/workspace\/report\.md[^\n]*\n.*file\.write:\/internal\/x\.md/,
    )
    await expect(files.readText(path)).rejects.toThrow(/not found/i)
    await expect(files.readText('/internal/x.md')).rejects.toThrow(/not found/i)
  })

  test('a wrong task costs no model call', async () => {
    const childModel = scriptedModel(() => 'ok')
    const calls = [work({}), work({ task: '' }), work({ task: 7 })]
    const model = scriptedModel([{ calls }, 'done'])
    const worker = generalWorker({ model: childModel })

    await openRuntime().run(agent({ name: 'host', instructions: '', model, subagents: { work: worker } }), 'go').result

    expect(childModel.requests).toEqual([])
    for (const { content } of resultsIn(model.requests[1])) {
      expect(content).toMatch(/^Subagent input validation failed\. Details: /)
    }
  })

  test('can be given a name, tools and limits, and used directly', async () => {
    const model = scriptedModel(['Done.'])
    const shout = tool({ description: 'Shout', input: { type: 'object' }, execute: () => 'LOUD' })
    const worker = generalWorker({ name: 'helper', model, tools: { shout }, budget: { modelCalls: 2 } })

    const { text } = await worker.generate({ task: 'Rest.' })

    expect([text, worker.name, worker.budget]).toEqual(['Done.', 'helper', { modelCalls: 2 }])
    expect(toolNamesIn(model.requests[0])).toContain('shout')
  })
})

describe('response_metadata', () => {
  test('is there when the child has something to tell of its answer, and only then', async () => {
    const shout = tool({ description: 'Shout', input: { type: 'object' }, effect: 'pure', execute: () => 'LOUD' })
    const shouts = () =>
      scriptedModel((request) => (resultsIn(request).length === 0 ? { calls: [{ name: 'shout', input: {} }] } : 'ok'))
    const fails = scriptedModel(() => ({ error: new Error('broken') }))
    const make = (name: string, toolTrace: boolean, model = shouts()) =>
      agent({ name, instructions: '', model, input: { type: 'object' }, tools: { shout }, toolTrace })
    const subagents = {
      traced: make('traced', true),
      plain: make('plain', false),
      failing: make('failing', true, fails),
    }
    const calls = Object.keys(subagents).map((name) => ({ name, input: {} }))
    const model = scriptedModel([{ calls }, 'done'])
    const runtime = openRuntime()

    const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents }), 'go')
    await run.result

    const metadata = localStore(runtime)
      .nodesOf(run.id)
      .filter(({ kind }) => kind === 'task')
      .map(({ output }) => output.metadata?.['response_metadata'])
    expect(metadata).toEqual([{ tool_trace: ['shout'] }, undefined, undefined])
  })

  test.each(['memory', 'sqlite', 'json'] as const)(
    'carries what a hook of the child put into extra, on %s, also for who reads it later',
    async (kind) => {
      const folder = tempFolder()
      const open = {
        memory: () => memoryStore(),
        sqlite: () => sqliteStore(join(folder, 'a.db')),
        json: () => jsonStore(folder),
      }
      const child = agent({
        name: 'child',
        instructions: '',
        model: scriptedModel(() => 'ok'),
        input: { type: 'object' },
        toolTrace: true,
        hooks: {
          onRequest: (_request, { extra }) => {
            extra['sources'] = ['a.md']
          },
        },
      })
      const model = scriptedModel([{ calls: [{ name: 'ask', input: {} }] }, 'done'])
      const host = agent({ name: 'host', instructions: '', model, subagents: { ask: child } })
      const runtime = createRuntime({ store: open[kind]() })
      const run = runtime.run(host, 'go')
      await run.result
      const told = { response_metadata: { sources: ['a.md'] } }

      expect(taskOf(runtime, run).output.metadata).toMatchObject(told)
      await runtime.close()
      if (kind === 'memory') return
      const later = createRuntime({ store: open[kind](), agents: [host] })
      expect(taskOf(later, run).output.metadata).toMatchObject(told)
      await later.close()
    },
  )

  test('is told also of what a child had when it reached a limit', async () => {
    const shout = tool({ description: 'Shout', input: { type: 'object' }, effect: 'pure', execute: () => 'LOUD' })
    const childModel = scriptedModel((request) =>
      request.tools.length > 0 ? { calls: [{ name: 'shout', input: {} }] } : 'So far: LOUD.',
    )
    const worker = agent({
      name: 'worker',
      instructions: '',
      model: childModel,
      input: { type: 'object' },
      tools: { shout },
      toolTrace: true,
      budget: { modelCalls: 2 },
    })
    const model = scriptedModel([{ calls: [work({})] }, 'done'])
    const runtime = openRuntime()

    const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents: { work: worker } }), 'go')
    await run.result

    expect(resultIn(model.requests[1])).toMatch(/^\[max_turns\] .*\n\nSo far: LOUD\.$/)
    expect(taskOf(runtime, run).output.metadata).toMatchObject({
      response_metadata: { tool_trace: ['shout', 'shout'] },
    })
  })
})
