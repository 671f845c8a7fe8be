import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent, tool } from 'legate'
import { mcpServer } from 'legate/mcp'
import { builtinToolkit, type ExtensionConfig, extensionSources, skillsTools, sourceName } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { memoryTools, missingSecrets, todoTools } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { eventsOf, only, openRuntime, resultsIn, toolNamesIn } from '../../support/reading.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { everything, MAY_START, oddServer } from './support.ts'

type Calls = readonly [name: string, input: unknown][]

async function run(extra: object, calls: Calls, grant: object = MAY_START) {
  const model = scriptedModel([
    ...calls.map(([name, input]) => ({ calls: [{ name, input: input as never }] })),
    'Done.',
  ])
  const who = agent({ name: 'who', instructions: '', model, grant, ...extra })
  const handle = openRuntime().run(who, 'go')
  const events = await eventsOf(handle)
  return {
    outcome: await handle.result,
    results: resultsIn(model.requests.at(-1)).map(({ content }) => String(content)),
    warnings: only(events, 'warning').map(({ message }) => message),
    names: toolNamesIn(model.requests[0]),
  }
}

describe('todo', () => {
  test('what was last written is read, in a later run of the conversation too', async () => {
    const tools = todoTools()
    const turn = (...calls: Calls) => calls.map(([name, input]) => ({ calls: [{ name, input: input as never }] }))
    const model = scriptedModel([
      ...turn(['todo_read', {}], ['todo_write', { content: '[ ] a' }], ['todo_write', { content: '[x] a\n[ ] b' }]),
      'one',
      ...turn(['todo_read', {}]),
      'two',
    ])
    const who = agent({ name: 'who', instructions: '', model, tools })
    const runtime = openRuntime()
    const first = runtime.run(who, 'go')
    await first.result
    await runtime.run(who, 'go on', { conversationId: first.conversationId }).result
    const results = resultsIn(model.requests.at(-1)).map(({ content }) => content)

    expect(results[0]).toBe('There is nothing on the list.')
    expect(results.at(-1)).toBe('[x] a\n[ ] b')
  })
})

describe('memory', () => {
  test('keeps what it is told from one run to the next, once, and forgets it', async () => {
    const directory = path.join(tempFolder(), 'memory')
    const remember: Calls = [
      ['memory_remember', { category: 'Tastes', text: 'likes tea', tags: ['drinks'] }],
      ['memory_remember', { category: 'tastes', text: 'likes tea' }],
      ['memory_remember', { category: '../../x', text: 'not outside' }],
    ]
    const first = await run({ tools: memoryTools({ directory }) }, remember)
    const second = await run({ tools: memoryTools({ directory }) }, [
      ['memory_recall', { query: 'DRINK' }],
      ['memory_forget', { category: 'tastes', text: 'tea' }],
      ['memory_recall', {}],
      ['memory_forget', { category: 'nothing' }],
    ])

    expect(first.results).toEqual([
      'Remembered under "tastes".',
      'That is known already.',
      'Remembered under "../../x".',
    ])
    expect(second.results).toEqual([
      '# tastes\n- likes tea [drinks]\nCategories: ../../x, tastes',
      'Forgotten: 1.',
      '# ../../x\n- not outside\nCategories: ../../x',
      'There was nothing to forget.',
    ])
    expect(readdirSync(directory)).toEqual(['%2E%2E%2F%2E%2E%2Fx.jsonl'])
  })

  test('lines that others broke are passed over', async () => {
    const directory = tempFolder()
    writeFileSync(path.join(directory, 'a.jsonl'), '{"text":"good","tags":[1,"t"]}\nnonsense\n[]\n{"text":7}\n')
    const { results } = await run({ tools: memoryTools({ directory }) }, [['memory_recall', { category: 'a' }]])

    expect(results).toEqual(['# a\n- good [t]\nCategories: a'])
  })

  test('the profile memory_only leaves just these', async () => {
    const tools = { ...memoryTools({ directory: tempFolder() }), ...todoTools() }
    const model = scriptedModel(['ok'])
    const child = agent({ name: 'child', instructions: '', model, tools })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel([{ calls: [{ name: 'ask', input: { message: 'x' } }] }, 'ok']),
      subagents: { ask: { agent: child, profile: 'memory_only' } },
    })
    await openRuntime().run(host, 'go').result

    expect(toolNamesIn(model.requests[0])).toEqual(['memory_remember', 'memory_recall', 'memory_forget'])
  })
})

test('skills are listed, loaded with arguments, and their files read', async () => {
  const cwd = tempFolder()
  const folder = path.join(cwd, '.agents/skills/deploy')
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'SKILL.md'), '---\nname: deploy\ndescription: How to deploy\n---\nDeploy $1 now.\n')
  writeFileSync(path.join(folder, 'steps.md'), 'First, test.')
  const { results } = await run({ tools: skillsTools({ cwd, home: tempFolder() } as never) }, [
    ['skills_list', {}],
    ['skills_load', { name: 'deploy', arguments: 'production' }],
    ['skills_read', { name: 'deploy', file: 'steps.md' }],
    ['skills_read', { name: 'deploy', file: '../../../../etc/passwd' }],
    ['skills_load', { name: 'nothing' }],
  ])

  expect(results[0]).toBe('deploy - How to deploy')
  expect(results[1]).toMatch(/^# deploy\n\nDeploy production now\.\s+Files for skills_read: steps\.md$/)
  expect(results[2]).toBe('First, test.')
  expect(results[3]).toBe('Error: deploy has no file "../../../../etc/passwd". It has: steps.md')
  expect(results[4]).toBe('Error: there is no skill "nothing". There are: deploy')
})

const base = { description: '', availableTools: [], required: false }
const builtin = (name: string, more: object = {}): ExtensionConfig =>
  ({ type: 'builtin', name, displayName: null, timeoutSeconds: null, ...base, ...more }) as ExtensionConfig

test('an MCP program that is not there is told as that, and as nothing else', async () => {
  const sources = { gone: mcpServer({ command: 'no-such-program-here' }) }
  const { outcome } = await run({ sources }, [], { use: ['tool:*', 'model:*', 'exec:*'] })

  expect(outcome.error?.message).toMatch(/there is no program no-such-program-here/)
  expect(outcome.error?.message).not.toMatch(/negotiation|probe/)
})

describe('extensions of recipes as sources', () => {
  test('built-in ones give their tools, by the names they have here', async () => {
    const { sources, notices } = extensionSources([
      builtin('developer', { availableTools: ['shell', 'developer__text_editor'] }),
      builtin('todo'),
      builtin('Memory', { availableTools: ['remember_memory'] }),
    ])
    const { names } = await run({ sources }, [])

    expect(notices).toEqual([])
    expect(Object.keys(sources)).toEqual(['developer', 'todo', 'Memory'])
    expect(names).toEqual([
      ...['shell', 'read_text_file', 'write_file', 'edit_file', 'list_directory'],
      ...['todo_write', 'todo_read', 'memory_remember'],
    ])
  })

  test('a star in the list of tools stands for any text; builtinToolkit with an empty list offers none', async () => {
    const { sources } = extensionSources([builtin('developer', { availableTools: ['search_*'] })])
    expect((await run({ sources }, [])).names).toEqual(['search_files', 'search_text'])

    const none = { todo: builtinToolkit('todo', { availableTools: [] }) }
    expect((await run({ sources: none }, [])).names).toEqual([])
  })

  test('an extension that there is not is reported with what to use instead, and the run goes on', async () => {
    const entries = [builtin('computercontroller'), builtin('unheard-of'), builtin('todo')]
    const { sources, notices } = extensionSources(entries, { file: 'r.yaml' })
    const { outcome, warnings, names } = await run({ sources }, [])

    expect(notices.map(({ level, message, hint }) => [level, message, hint])).toEqual([
      [
        'warning',
        'the extension "computercontroller" is not available: there is no built-in extension "computercontroller" here',
        expect.stringMatching(/playwright/),
      ],
      [
        'warning',
        expect.stringMatching(/"unheard-of"/),
        expect.stringMatching(/There are developer, todo, memory, skills/),
      ],
    ])
    expect([outcome.status, names]).toEqual(['completed', ['todo_write', 'todo_read']])
    expect(outcome.absent).toEqual([
      { name: 'computercontroller', reason: expect.stringMatching(/no built-in extension "computercontroller" here/) },
      { name: 'unheard-of', reason: expect.stringMatching(/no built-in extension "unheard-of" here/) },
    ])
    expect(warnings).toHaveLength(2)
  })

  test('an extension that is required fails the run', async () => {
    const { sources, notices } = extensionSources([builtin('tutorial', { required: true })])
    const { outcome } = await run({ sources }, [])

    expect(notices[0]?.level).toBe('error')
    expect(outcome).toMatchObject({ status: 'unavailable', modelCalls: 0 })
    expect(outcome.error?.message).toMatch(/no built-in extension "tutorial" here. Put the texts into skills/)
  })

  test('servers are started as their entries say', async () => {
    const server = { envs: { LOG_LEVEL: 'p' }, envKeys: [], timeoutSeconds: 5, ...base }
    const file = path.join(import.meta.dirname, 'programs/server.mjs')
    const { sources, names } = extensionSources([
      { type: 'stdio', name: 'My Server', cmd: 'node', args: [file, 'x'], ...server },
      { type: 'streamable_http', name: 'bad', uri: 'ftp://x', headers: {}, socket: null, ...server },
      { type: 'streamable_http', name: 'sock', uri: 'http://x/', headers: {}, socket: '/s', ...server },
      { type: 'inline_python', name: 'py', code: '', dependencies: [], timeoutSeconds: null, ...base },
      { type: 'frontend', name: 'front', tools: [], instructions: null, ...base },
      { type: 'named', name: 'elsewhere', ...base },
    ])
    const { results, warnings } = await run({ sources }, [['my_server__env', {}]])

    expect([...names]).toContainEqual(['My Server', 'my_server'])
    expect(results[0]).toContain('"LOG_LEVEL":"p"')
    expect(warnings).toHaveLength(5)
  })

  test('names become names of sources, and stay apart from what they cannot be', () => {
    const given = ['context7', 'Context7 Docs', 'a__b', '__x__', 'été', '日本', 'x'.repeat(80), '-dash', 'under_score']
    const made = given.map(sourceName)

    expect(made.slice(0, 6)).toEqual(['context7', 'context7_docs', 'a_b', 'x', 'e_te', 'extension'])
    for (const name of made)
      expect(() => agent({ name: 'a', instructions: '', sources: { [name]: builtinToolkit('todo') } })).not.toThrow()
  })

  test.each([
    ['todo', 'todo'],
    ['My Server', 'my_server'],
    ['日本', '中国'],
  ])('%s and %s, which are one name here: the second is not used, and the run says so', async (one, other) => {
    const file = path.join(import.meta.dirname, 'programs/server.mjs')
    const server = (name: string, required: boolean): ExtensionConfig => {
      const started = { cmd: 'node', args: [file, 'x'], envs: {}, envKeys: [], timeoutSeconds: 5 }
      return { type: 'stdio', ...base, ...started, name, required }
    }
    const { sources, notices } = extensionSources([server(one, false), server(other, false)])
    const { outcome, names } = await run({ sources }, [])
    const required = await run({ sources: extensionSources([server(one, false), server(other, true)]).sources }, [])

    const reason = expect.stringMatching(
      /^another extension has the name \w+ here too, so this one is left out\. Rename/,
    )
    expect(notices.map(({ message }) => message)).toEqual([expect.stringContaining(`the extension "${other}" is not`)])
    expect(outcome.absent).toEqual([{ name: expect.stringMatching(/-2$/), reason }])
    expect(names.filter((name) => name.endsWith('__echo'))).toHaveLength(1)
    expect(required.outcome.status).toBe('unavailable')
  })
})

describe('tools of one name', () => {
  test('of one server: a name that is fine stays, the others get one of their own, and each call reaches its tool', async () => {
    const sources = { odd: oddServer('twins') }
    const names = ['a_b', 'a_b_2e7336', 'a_b_2e7336dc8eba87', 'a_b_c8687a', 'list_resources', 'list_resources_d9d9ef']
    const calls = names.map((name) => [`odd__${name}`, {}] as [string, unknown])
    const { results, warnings } = await run({ sources }, calls)

    expect(results).toEqual(
      ['a_b', 'a_b_2e7336', 'a.b', 'a b', 'list_resources', 'list resources'].map((name) => `called ${name}`),
    )
    expect(warnings).toEqual(['odd: its own tool list_resources is used instead of ours'])
  })

  test('a rule for one extension is not a rule for another, and excluding a tool changes no name', async () => {
    const denying = { ...MAY_START, deny: ['tool:odd__a_b'] }
    const denied = await run({ sources: { odd: oddServer('twins') } }, [['odd__a_b_c8687a', {}]], denying)
    const excluded = await run({ sources: { odd: oddServer('twins', { excludedTools: ['a_b'] }) } }, [])

    expect(denied.results).toEqual(['called a b'])
    expect(denied.names).not.toContain('odd__a_b')
    expect(excluded.names).not.toContain('odd__a_b')
    expect(excluded.names).toContain('odd__a_b_c8687a')
  })

  test('a tool of the agent itself keeps its name, and the run says which one is left out', async () => {
    const mine = tool({ description: 'Mine', input: { type: 'object' }, execute: () => 'mine' })
    const parts = { sources: { odd: oddServer('twins') }, tools: { odd__a_b: mine } }
    const { results, warnings } = await run(parts, [['odd__a_b', {}]])

    expect(results).toEqual(['mine'])
    expect(warnings).toContain('odd: its tool odd__a_b is left out: the agent has one of this name already')
  })
})

test('secrets that are not set are known before a run, over all subagents, each once', () => {
  const secrets = (name: string) => (name === 'HAVE' ? 'value' : undefined)
  const child = agent({
    name: 'child',
    instructions: '',
    sources: { b: everything({ envKeys: ['ONE', 'TWO'], secrets }), c: oddServer('x', { envKeys: ['HAVE'], secrets }) },
  })
  const host = agent({
    name: 'host',
    instructions: '',
    sources: { a: everything({ envKeys: ['ONE'], secrets }) },
    subagents: { child, again: child },
  })

  expect(missingSecrets(host)).toEqual([
    { key: 'ONE', source: 'a', agent: 'host' },
    { key: 'TWO', source: 'b', agent: 'child' },
  ])
})

describe('what cannot be a source is refused where it is written', () => {
  test.each<[string, () => unknown, RegExp]>([
    ['nothing', () => mcpServer({} as never), /either a command or a url/],
    ['both', () => mcpServer({ command: 'x', url: 'http://x' } as never), /either a command or a url/],
    ['no address', () => mcpServer({ url: 'example.com' }), /is not an address/],
    ['another protocol', () => mcpServer({ url: 'file:///etc/passwd' }), /is not an address/],
    ['unknown option', () => mcpServer({ command: 'x', arg: [] } as never), /has no option "arg". Did you mean "args"/],
    ['args', () => mcpServer({ command: 'x', args: 'y' as never }), /args must be a list of texts/],
    ['time', () => mcpServer({ command: 'x', timeoutMs: 0 }), /timeoutMs must be a number/],
    ['scope', () => mcpServer({ command: 'x', scope: 'all' as never }), /scope must be one of/],
    ['null byte', () => mcpServer({ command: 'x\0y' }), /command is the name/],
    [
      'no source',
      () => agent({ name: 'a', instructions: '', sources: { x: {} as never } }),
      /sources.x is not a source/,
    ],
    ['a list', () => agent({ name: 'a', instructions: '', sources: [] as never }), /sources are an object/],
    [
      'a name whose end cannot be seen',
      () => agent({ name: 'a', instructions: '', sources: { a_: builtinToolkit('todo') } }),
      /not a name for a source/,
    ],
    [
      'its name',
      () => agent({ name: 'a', instructions: '', sources: { a__b: builtinToolkit('todo') } }),
      /not a name for a source/,
    ],
    ['unknown toolkit', () => builtinToolkit('nothing' as never), /there is no "nothing". There are developer, todo/],
    [
      'a tool twice',
      () => agent({ name: 'a', instructions: '', tools: todoTools(), sources: { t: builtinToolkit('todo') } }),
      /there is another tool "todo_write"/,
    ],
  ])('%s', (_, make, reason) => {
    expect(make).toThrow(reason)
  })
})
