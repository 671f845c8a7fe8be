import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent, tool } from 'legate'
import { mcpServer } from 'legate/mcp'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { eventsOf, only, openRuntime, resultIn, resultsIn, tasksOf, toolNamesIn } from '../../support/reading.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { caller, everything, MAY_START, mark, noneRunning, serverFile } from './support.ts'

describe('a server over its standard input and output', () => {
  test('gives its tools under its name, and a call reaches it', async () => {
    const { who, model } = caller({ everything: everything() }, [['everything__echo', { message: 'hello' }]])
    const runtime = openRuntime()
    const run = runtime.run(who, 'go')

    expect((await run.result).text).toBe('Done.')
    expect(toolNamesIn(model.requests[0])).toEqual(
      expect.arrayContaining(['everything__echo', 'everything__get-sum', 'everything__list_resources']),
    )
    expect(resultIn(model.requests[1])).toBe('Echo: hello')
    // It says of itself that it only reads: that is not believed.
    expect(tasksOf(runtime, run)[0]?.effect).toBe('effectful')
    expect(model.requests[0]?.messages[0]?.content).toMatch(/as their server says:\n# Everything Server/)
  })

  test('pictures, structured content, resources and prompts are shown to the model', async () => {
    const { who, model } = caller({ all: everything() }, [
      ['all__get-tiny-image', {}],
      ['all__get-structured-content', { location: 'Chicago' }],
      ['all__get-resource-reference', { resourceType: 'Text', resourceId: 1 }],
      ['all__list_resources', {}],
      ['all__read_resource', { uri: 'demo://resource/dynamic/text/1' }],
      ['all__list_prompts', {}],
      ['all__get_prompt', { name: 'args-prompt', arguments: { city: 'Bern' } }],
    ])
    await openRuntime().run(who, 'go').result
    const shown = resultsIn(model.requests.at(-1)).map(({ content }) => content)

    expect(shown[0]).toEqual(
      expect.arrayContaining([expect.objectContaining({ type: 'image', mediaType: 'image/png' })]),
    )
    expect(shown[1]).toMatch(/"conditions":/)
    expect(shown[2]).toMatch(/demo:\/\/resource\/dynamic\/text\/1/)
    expect(shown[3]).toMatch(/demo:\/\//)
    expect(shown[4]).toMatch(/^\[demo:\/\/resource\/dynamic\/text\/1\]\n/)
    expect(shown[5]).toMatch(/args-prompt\(city, state\?\)/)
    expect(shown[6]).toMatch(/user:\n.*Bern/)
  })

  test('arguments that do not fit its schema are refused before it is asked', async () => {
    const { who, model } = caller({ all: everything() }, [['all__echo', { message: 7 }]])
    await openRuntime().run(who, 'go').result

    expect(resultIn(model.requests[1])).toBe('The arguments of all__echo are wrong. message: must be string')
  })

  test('progress is seen while it works', async () => {
    const { who } = caller({ all: everything() }, [
      ['all__trigger-long-running-operation', { duration: 0.5, steps: 3 }],
    ])
    const events = await eventsOf(openRuntime().run(who, 'go'))

    expect(only(events, 'progress').map(({ data }) => data)).toContainEqual({ progress: 2, total: 3 })
    expect(only(events, 'tool-result')[0]?.content).toMatch(/Long running operation completed/)
  })

  test('a cancelled run cancels its call, and the server ends with it', async () => {
    const word = mark()
    const calls = [['all__trigger-long-running-operation', { duration: 60, steps: 60 }]] as never
    const { who } = caller({ all: everything({ args: [word] }) }, calls)
    const run = openRuntime().run(who, 'go')
    for await (const { type } of run) if (type === 'progress') break
    // The call would take a minute.
    const since = performance.now()
    await run.cancel()

    expect((await run.result).status).toBe('cancelled')
    await noneRunning(word)
    expect(performance.now() - since).toBeLessThan(10_000)
  })

  test('only the tools that are named are there', async () => {
    const { who, model } = caller({ all: everything({ availableTools: ['echo', 'nothing'] }) }, [])
    const events = await eventsOf(openRuntime().run(who, 'go'))

    expect(toolNamesIn(model.requests[0])).toEqual(['all__echo'])
    expect(only(events, 'warning').map(({ message }) => message)).toEqual(['all: it has no tool "nothing"'])
  })

  test('an empty list of tools offers none, and a star in it stands for any text', async () => {
    const offered = async (availableTools: string[]) => {
      const { who, model } = caller({ all: everything({ availableTools }) }, [])
      const events = await eventsOf(openRuntime().run(who, 'go'))
      const warnings = only(events, 'warning').map(({ message }) => message)
      return { names: toolNamesIn(model.requests[0]), warnings }
    }

    expect(await offered([])).toEqual({ names: [], warnings: [] })
    expect(await offered(['get-s*', 'ech*'])).toEqual({
      names: expect.arrayContaining(['all__echo', 'all__get-sum']),
      warnings: [],
    })
    expect((await offered(['get-s*', 'ech*'])).names).not.toContain('all__get-env')
    expect(await offered(['none-*'])).toEqual({ names: [], warnings: ['all: it has no tool "none-*"'] })
  })

  test('what is excluded is not there, by the server’s own names, also where it is named', async () => {
    const server = everything({ availableTools: ['echo', 'get-sum'], excludedTools: ['get-*'] })
    const { who, model } = caller({ all: server }, [])
    await openRuntime().run(who, 'go').result

    expect(toolNamesIn(model.requests[0])).toEqual(['all__echo'])
  })

  test('the server of files works on files, the server of memory keeps what it was told', async () => {
    const folder = tempFolder()
    const note = path.join(folder, 'note.txt')
    const memory = path.join(folder, 'memory.json')
    const sources = {
      files: mcpServer({ command: 'node', args: [serverFile('filesystem'), folder] }),
      memory: mcpServer({ command: 'node', args: [serverFile('memory')], env: { MEMORY_FILE_PATH: memory } }),
    }
    const grant = { use: [...MAY_START.use, `exec:env MEMORY_FILE_PATH=${memory} node *`] }
    const calls: [string, unknown][] = [
      ['files__write_file', { path: note, content: 'written' }],
      ['files__read_text_file', { path: note }],
      ['files__read_text_file', { path: '/etc/passwd' }],
      ['memory__create_entities', { entities: [{ name: 'Ann', entityType: 'person', observations: ['likes tea'] }] }],
      ['memory__search_nodes', { query: 'tea' }],
    ]
    const { who, model } = caller(sources, calls, grant)
    await openRuntime().run(who, 'go').result
    const results = resultsIn(model.requests.at(-1))

    expect(readFileSync(note, 'utf8')).toBe('written')
    expect(results[1]?.content).toBe('written')
    expect(results[2]).toMatchObject({ isError: true, content: expect.stringMatching(/Access denied/) })
    expect(results[4]?.content).toMatch(/Ann/)
    expect(existsSync(memory)).toBe(true)
  })
})

test('tools of two servers with one name stand beside each other, and beside tools of the agent', async () => {
  const folder = tempFolder()
  writeFileSync(path.join(folder, 'a.txt'), 'a')
  const files = () => mcpServer({ command: 'node', args: [serverFile('filesystem'), folder] })
  const own = tool({ description: 'Mine', input: { type: 'object' }, execute: () => 'mine' })
  const model = scriptedModel([{ calls: [{ name: 'one__list_allowed_directories', input: {} }] }, 'Done.'])
  const who = agent({
    name: 'who',
    instructions: '',
    model,
    sources: { one: files(), two: files() },
    tools: { one__list_allowed_directories: own },
    grant: MAY_START,
  })
  await openRuntime().run(who, 'go').result

  const names = toolNamesIn(model.requests[0])
  expect(names).toEqual(expect.arrayContaining(['one__read_text_file', 'two__read_text_file']))
  expect(names.filter((name) => name === 'one__list_allowed_directories')).toHaveLength(1)
  expect(resultIn(model.requests[1])).toBe('mine')
})
