import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { type AnyAgent, agent, createRuntime, type Grant, tool } from 'legate'
import { registerTool } from 'legate/compat'
import { openSubagents, recipeAgent, validateDefinition } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { diskFiles, fileTools } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { serverFile } from '../../tools/mcp/support.ts'
import { folderWith } from '../support/folder.ts'
import { type Call, childRequests, delegating, resultsIn, subagent } from './support.ts'

/** What the command line gives a file, without the questions. */
const WORKSPACE: Grant = { use: ['tool:*', 'agent:*', 'model:*', 'file.*:/workspace/**', 'exec:*', 'net:*'] }
const NOTES = { 'notes.txt': 'blue\n', 'docs/a.txt': 'red\n' }

function markdown(fields: string): string {
  return `---\nname: helper\ndescription: Helps\n${fields}\n---\n\nYou help.\n`
}

const read = (file: string): Call => ({ name: 'read_text_file', input: { path: `/workspace/${file}` } })
const write = (file: string): Call => ({ name: 'write_file', input: { path: `/workspace/${file}`, content: 'x' } })
const shell = (command: string): Call => ({ name: 'shell', input: { command } })

/** Runs a file with a model that makes these calls at once, and gives what came of each. */
async function runFile(place: string, text: string, parts: { calls: readonly Call[]; grant?: Grant }) {
  const folder = folderWith({ [place]: text, ...NOTES })
  const model = scriptedModel((request) => (resultsIn(request).length === 0 ? { calls: parts.calls } : 'Done.'))
  const runtime = createRuntime({ model, files: diskFiles({ workspace: folder }) })
  const { grant } = parts
  const file = await recipeAgent(path.join(folder, place), { cwd: folder, ...(grant === undefined ? {} : { grant }) })
  const { status } = await runtime.run(file, 'Go.').result
  await runtime.close()
  const tools = model.requests[0]?.tools.map(({ name }) => name).toSorted() ?? []
  return { status, tools, results: resultsIn(model.requests[1] ?? { messages: [] }), folder }
}

describe('a layer that only takes away leaves the rest', () => {
  test('Claude: `tools: Read, Grep` reads files and has no other tool', async () => {
    const calls = [read('notes.txt'), { name: 'search_text', input: { text: 'red' } }, write('new.txt'), shell('ls')]
    const ran = await runFile('.claude/agents/helper.md', markdown('tools: Read, Grep'), { calls, grant: WORKSPACE })

    expect(ran.tools).toEqual(['read_text_file', 'search_files', 'search_text'])
    expect(ran.results).toEqual([
      expect.stringContaining('blue'),
      expect.stringContaining('/workspace/docs/a.txt:1: red'),
      expect.stringMatching(
        /write_file is not allowed here: no rule of the tool list of helper allows tool:write_file/,
      ),
      expect.stringMatching(/shell is not allowed here: no rule of the tool list of helper allows tool:shell/),
    ])
    expect(existsSync(path.join(ran.folder, 'new.txt'))).toBe(false)
  })

  test.each([
    ['.claude/agents/helper.md', 'disallowedTools: Write, Edit, MultiEdit, NotebookEdit, Bash'],
    ['.opencode/agent/helper.md', 'tools: { write: false, edit: false, bash: false }'],
    ['.claude/agents/helper.md', 'disallowedTools: Edit(notes.txt)'],
  ])('a file that forbids writing deletes nothing: %s with `%s`', async (place, fields) => {
    const calls = [{ name: 'delete_file', input: { path: '/workspace/notes.txt' } }, read('notes.txt')]
    const ran = await runFile(place, markdown(fields), { calls, grant: WORKSPACE })

    expect(ran.results[0]).toMatch(/^delete_file is not allowed here: the (?:file|tool list) of helper den/)
    expect(ran.results[1]).toContain('blue')
    expect(existsSync(path.join(ran.folder, 'notes.txt'))).toBe(true)
  })

  test('Claude: `Read(docs/**), Glob` reads nothing but docs', async () => {
    const calls = [
      read('docs/a.txt'),
      read('notes.txt'),
      { name: 'search_files', input: { path: '/workspace', pattern: '*' } },
    ]
    const text = markdown('tools: Read(docs/**), Glob')
    const { results } = await runFile('.claude/agents/helper.md', text, { calls, grant: WORKSPACE })

    expect(results[0]).toContain('red')
    expect(results[1]).toMatch(/^read_text_file is not allowed here/)
    expect(results[2]).toContain('/workspace/notes.txt')
  })

  test.each([
    ['.opencode/agent/helper.md', 'permission: { "*": deny, bash: allow }'],
    ['.opencode/agent/helper.md', 'permission: { list: deny, bash: allow }'],
    ['.legate/agents/helper.md', 'grant: { use: ["tool:*", "exec:echo *"] }'],
  ])('a file that allows programs lets them start: %s with `%s`', async (place, fields) => {
    const calls = [shell('echo hi'), { name: 'list_directory', input: { path: '/workspace' } }]
    const { results } = await runFile(place, markdown(fields), { calls, grant: WORKSPACE })

    expect(results[0]).toBe('hi')
    expect(results[1]).not.toContain('notes')
  })

  test('opencode: `{"*": deny, grep: allow, glob: allow}` searches and reads nothing else', async () => {
    const search = { name: 'search_text', input: { text: 'red' } }
    const find = { name: 'search_files', input: { path: '/workspace', pattern: '*.txt' } }
    const text = markdown('permission: { "*": deny, grep: allow, glob: allow }')
    const calls = [search, find, read('notes.txt')]
    const { results } = await runFile('.opencode/agent/helper.md', text, { calls, grant: WORKSPACE })

    expect(results[0]).toContain('/workspace/docs/a.txt:1: red')
    expect(results[1]).toContain('/workspace/notes.txt')
    expect(results[2]).toMatch(/^read_text_file is not allowed here/)
  })

  test('opencode: `"rm *": deny` takes rm and nothing else', async () => {
    const text = markdown('permission:\n  bash: {"*": allow, "rm *": deny}')
    const calls = [read('notes.txt'), shell('cat notes.txt'), shell('rm notes.txt'), write('new.txt')]
    const ran = await runFile('.opencode/agent/helper.md', text, { calls, grant: WORKSPACE })

    expect(ran.results).toEqual([
      expect.stringContaining('blue'),
      expect.stringContaining('blue'),
      expect.stringMatching(/the file of helper denies exec:rm \*/),
      expect.not.stringMatching(/not allowed/),
    ])
    expect(readFileSync(path.join(ran.folder, 'notes.txt'), 'utf8')).toBe('blue\n')
    expect(readFileSync(path.join(ran.folder, 'new.txt'), 'utf8')).toBe('x')
  })

  test.each([
    ['.claude/agents/helper.md', markdown('permissionMode: plan')],
    ['.cursor/agents/helper.md', markdown('readonly: true')],
    ['.legate/agents/helper.md', markdown('grant: { deny: ["file.write:**", "exec:*"] }')],
    [
      '.codex/agents/helper.toml',
      'name = "helper"\ndescription = "Helps"\nsandbox_mode = "read-only"\ndeveloper_instructions = "You help."\n',
    ],
    ['.opencode/agent/helper.md', markdown('permission: { edit: deny, bash: deny }')],
  ])('%s that is read-only reads, and is offered no tool that changes', async (place, text) => {
    const calls = [read('notes.txt'), write('new.txt'), shell('touch new.txt')]
    const ran = await runFile(place, text, { calls, grant: WORKSPACE })

    expect(ran.results).toEqual([
      expect.stringContaining('blue'),
      expect.stringMatching(/write_file is not allowed here: the file of helper denies file\.write:\*\*/),
      expect.stringMatching(/shell is not allowed here: the file of helper denies exec:\*/),
    ])
    expect(existsSync(path.join(ran.folder, 'new.txt'))).toBe(false)
    expect(ran.tools).toContain('read_text_file')
    expect(ran.tools.filter((name) => /^(?:write_file|edit_file|shell)$/.test(name))).toEqual([])
  })

  test('the reviewer of the guide reads, searches, and changes nothing', async () => {
    const guide = readFileSync(path.join(import.meta.dirname, '../../../docs/guide/recipe.md'), 'utf8')
    const [, text = ''] = /'reviewer\.md'\), `(---\n.*?)`\)/s.exec(guide) ?? []
    const calls = [read('notes.txt'), { name: 'search_text', input: { text: 'red' } }, write('new.txt'), shell('ls')]
    const ran = await runFile('reviewer.md', text, { calls, grant: WORKSPACE })

    expect(text).toContain('tools: Read, Grep\n')
    expect(ran.results).toEqual([
      expect.stringContaining('blue'),
      expect.stringContaining('/workspace/docs/a.txt:1: red'),
      expect.stringMatching(/write_file is not allowed here/),
      expect.stringMatching(/shell is not allowed here/),
    ])
  })

  test('the mode of a run asks before changes and lets it read', async () => {
    const folder = folderWith({ 'a.md': markdown('tools: Read, Write'), ...NOTES })
    const calls = [read('notes.txt'), write('new.txt')]
    const model = scriptedModel((request) => (resultsIn(request).length === 0 ? { calls } : 'Done.'))
    await using runtime = createRuntime({ model, files: diskFiles({ workspace: folder }) })
    const file = await recipeAgent(path.join(folder, 'a.md'), { mode: 'smart_approve', grant: WORKSPACE, cwd: folder })
    const run = runtime.run(file, 'Go.')
    const asked: string[] = []
    for await (const event of run) {
      if (event.type !== 'approval-request' || event.nodeId === null) continue
      asked.push(event.request)
      await runtime.answer(event.nodeId, { allow: true, by: 'ann' })
    }

    expect(asked).toEqual(['file.write:/workspace/new.txt'])
    expect(resultsIn(model.requests[1] ?? { messages: [] })[0]).toContain('blue')
  })

  test('the agent is bound by what it was given, whatever its file says', async () => {
    const text = markdown('tools: Read, Write\ngrant: { use: ["tool:*", "file.*:**"] }')
    const grant = { use: ['tool:*', 'model:*', 'file.read:/workspace/docs/**'] }
    const calls = [read('docs/a.txt'), read('notes.txt'), write('docs/b.txt')]
    const ran = await runFile('.legate/agents/helper.md', text, { calls, grant })

    expect(ran.results).toEqual([
      expect.stringContaining('red'),
      expect.stringMatching(/no rule of helper allows file\.read:\/workspace\/notes\.txt/),
      expect.stringMatching(/no rule of helper allows file\.write:\/workspace\/docs\/b\.txt/),
    ])
  })

  test('explain() of the agent knows what its file takes away', async () => {
    const folder = folderWith({ 'a.md': markdown('tools: Read') })
    await using runtime = createRuntime({ model: scriptedModel([]) })
    const file = await recipeAgent(path.join(folder, 'a.md'), { grant: WORKSPACE })

    expect((await runtime.explain(file, 'tool:shell')).verdict).toBe('deny')
    expect((await runtime.explain(file, 'file.read:/workspace/a')).verdict).toBe('allow')
  })
})

describe('a child that is started from a file', () => {
  test('reads with its `tools: Read`, within what its host passes on', async () => {
    const folder = folderWith({ 'helper.md': markdown('tools: Read'), ...NOTES })
    const calls = [read('docs/a.txt'), read('notes.txt'), write('docs/b.txt')]
    const model = delegating([subagent({ subrecipe: 'helper' })], (request) => {
      return resultsIn(request).length === 0 ? { calls } : 'Done.'
    })
    const host = agent({
      name: 'host',
      instructions: 'You delegate.',
      model,
      tools: { ...fileTools(), ...openSubagents({ subRecipes: { helper: path.join(folder, 'helper.md') } }) },
      grant: { use: ['tool:*', 'agent:*', 'model:*', 'file.*:/workspace/docs/**'] },
    })
    await using runtime = createRuntime({ files: diskFiles({ workspace: folder }) })
    await runtime.run(host, 'Go.').result

    expect(resultsIn(childRequests(model)[1] ?? { messages: [] })).toEqual([
      expect.stringContaining('red'),
      expect.stringMatching(/no rule of host allows file\.read:\/workspace\/notes\.txt/),
      expect.stringMatching(
        /write_file is not allowed here: no rule of the tool list of helper allows tool:write_file/,
      ),
    ])
  })

  test('is bound by the `delegate` of the file that starts it', async () => {
    const folder = folderWith({
      'helper.md': markdown('tools: Read'),
      'lead.md':
        '---\nname: lead\ndescription: Leads\ngrant: { delegate: ["tool:*", "agent:*", "model:*", "file.read:/workspace/docs/**"] }\n---\n\nYou lead.\n',
      ...NOTES,
    })
    const model = scriptedModel((request) => {
      if (resultsIn(request).length > 0) return 'Done.'
      if (request.path.length > 1) return { calls: [read('docs/a.txt'), read('notes.txt')] }
      return { calls: [read('notes.txt'), subagent({ subrecipe: 'helper' })] }
    })
    const lead = await recipeAgent(path.join(folder, 'lead.md'), {
      grant: WORKSPACE,
      cwd: folder,
      subagents: { subRecipes: { helper: path.join(folder, 'helper.md') } },
    })
    await using runtime = createRuntime({ model, files: diskFiles({ workspace: folder }) })
    await runtime.run(lead, 'Go.').result

    const own = resultsIn(model.requests.findLast(({ path }) => path.length === 1) ?? { messages: [] })
    expect(own[0]).toContain('blue')
    expect(resultsIn(childRequests(model)[1] ?? { messages: [] })).toEqual([
      expect.stringContaining('red'),
      expect.stringMatching(/no rule of the file of lead allows file\.read:\/workspace\/notes\.txt/),
    ])
  })
})

describe('the tools of a file that is run by recipeAgent()', () => {
  test.each([
    ['tools: Read', ['read_text_file']],
    ['tools: Read, TodoWrite', ['read_text_file', 'todo_read', 'todo_write']],
    ['tools: []', []],
    ['tools: Bash, Edit', ['edit_file', 'shell']],
    ['tools: Skill', ['skills_list', 'skills_load', 'skills_read']],
    ['tools: mcp__docs__search', []],
  ])('%s', async (fields, expected) => {
    const { tools } = await runFile('.claude/agents/helper.md', markdown(fields), { calls: [] })

    expect(tools).toEqual(expected)
  })

  test('a file that lists none has those of the developer toolkit, and may delegate', async () => {
    const { tools } = await runFile('.claude/agents/helper.md', markdown('color: red'), { calls: [] })

    expect(tools).toEqual(expect.arrayContaining(['read_text_file', 'shell', 'subagent', 'write_file']))
  })

  test.each([
    ['without extensions', '', true],
    ['with the developer toolkit', 'extensions: [{type: builtin, name: developer}]\n', true],
    [
      'with two of its tools',
      'extensions: [{type: builtin, name: developer, available_tools: [tree, shell]}]\n',
      false,
    ],
    ['with none', 'extensions: []\n', false],
  ])('a recipe %s', async (_, extensions, reads) => {
    const text = `title: T\ndescription: D\ninstructions: I.\nprompt: Go.\n${extensions}`
    const folder = folderWith({ 'r.yaml': text, ...NOTES })
    const model = scriptedModel((request) =>
      resultsIn(request).length === 0 ? { calls: [read('notes.txt')] } : 'Done.',
    )
    await using runtime = createRuntime({ model, files: diskFiles({ workspace: folder }) })
    const recipe = await recipeAgent(path.join(folder, 'r.yaml'), { cwd: folder, grant: WORKSPACE })
    await runtime.run(recipe as AnyAgent, undefined as never).result

    const [result = ''] = resultsIn(model.requests[1] ?? { messages: [] })
    expect(result).toMatch(reads ? /blue/ : /There is no tool "read_text_file"|not allowed/)
    const names = model.requests[0]?.tools.map(({ name }) => name).filter((name) => name !== 'subagent') ?? []
    if (!reads) expect(names.toSorted()).toEqual(extensions.includes('tree') ? ['shell', 'tree'] : [])
  })

  test('servers come beside the tools it lists', async () => {
    const fields = 'tools: Read, mcp__far__find\nmcpServers: { far: { command: no-such-program-here } }'
    const { tools, status } = await runFile('.claude/agents/helper.md', markdown(fields), {
      calls: [read('notes.txt')],
      grant: WORKSPACE,
    })

    expect([tools, status]).toEqual([['read_text_file'], 'completed'])
  })

  test('a read-only file starts the servers that it brings along, and no other program', async () => {
    const command = JSON.stringify(process.execPath)
    const text = `name = "helper"\ndescription = "Helps"\nsandbox_mode = "read-only"\ndeveloper_instructions = "You help."\n[mcp_servers.all]\ncommand = ${command}\nargs = [${JSON.stringify(serverFile('everything'))}, "stdio"]\n`
    const calls = [
      { name: 'all__echo', input: { message: 'hello' } },
      shell(`${process.execPath} -e 1`),
      read('notes.txt'),
    ]
    const ran = await runFile('.codex/agents/helper.toml', text, { calls, grant: WORKSPACE })

    expect(ran.results).toEqual([
      expect.stringContaining('hello'),
      expect.stringMatching(/shell is not allowed here/),
      expect.stringContaining('blue'),
    ])
  })

  test('without a grant for files a denial says the rule to add, and with it the file reads', async () => {
    const place = '.claude/agents/helper.md'
    const without = await runFile(place, markdown('tools: Read'), { calls: [read('notes.txt')] })
    const [, rules = ''] = /grant: \{ use: \[(.*)\] \}/.exec(without.results[0] ?? '') ?? []
    const use = rules.split(', ').map((rule) => rule.slice(1, -1))
    const granted = await runFile(place, markdown('tools: Read'), { calls: [read('notes.txt')], grant: { use } })

    expect(without.results[0]).toBe(
      "read_text_file is not allowed here: no rule of helper allows file.read:/workspace/notes.txt; without a grant it has no files, programs, hosts or secrets. Give it one: grant: { use: ['tool:*', 'agent:*', 'model:*', 'file.read:/workspace/**'] }.",
    )
    expect(granted.results[0]).toContain('blue')
  })
})

describe('what a file takes away stays away when code changes the agent', () => {
  const own = tool({ description: 'Own.', input: { type: 'object' }, execute: () => 'own' })
  const calls = [read('notes.txt'), write('new.txt'), { name: 'own', input: {} }]

  const changes: readonly (readonly [name: string, change: (file: AnyAgent) => AnyAgent])[] = [
    ['an extension', (file) => file.use({ name: 'none' })],
    ['a tool', (file) => registerTool(file, 'own', own)],
  ]
  test.each(changes)('%s', async (name, change) => {
    const folder = folderWith({ '.claude/agents/helper.md': markdown('tools: Read'), ...NOTES })
    const model = scriptedModel((request) => (resultsIn(request).length === 0 ? { calls } : 'Done.'))
    const runtime = createRuntime({ model, files: diskFiles({ workspace: folder }) })
    const file = await recipeAgent(path.join(folder, '.claude/agents/helper.md'), { cwd: folder, grant: WORKSPACE })
    await runtime.run(change(file as AnyAgent), 'Go.' as never).result
    await runtime.close()

    expect(resultsIn(model.requests[1] ?? { messages: [] })).toEqual([
      expect.stringContaining('blue'),
      expect.stringMatching(/no rule of the tool list of helper allows tool:write_file/),
      name === 'a tool' ? 'own' : expect.stringContaining('own'),
    ])
    expect(existsSync(path.join(folder, 'new.txt'))).toBe(false)
  })

  test('another name and another model as a subagent', async () => {
    const folder = folderWith({ '.claude/agents/helper.md': markdown('tools: Read'), ...NOTES })
    const model = scriptedModel((request) => (resultsIn(request).length === 0 ? { calls } : 'Done.'))
    const file = await recipeAgent(path.join(folder, '.claude/agents/helper.md'), { cwd: folder, grant: WORKSPACE })
    const host = agent({
      name: 'host',
      instructions: '',
      grant: WORKSPACE,
      subagents: { ask: { agent: file as AnyAgent, name: 'other', model } },
      model: scriptedModel([{ calls: [{ name: 'ask', input: { message: 'Go.' } }] }, 'Done.']),
    })
    const runtime = createRuntime({ files: diskFiles({ workspace: folder }) })
    await runtime.run(host, 'Go.').result
    await runtime.close()

    expect(resultsIn(model.requests[1] ?? { messages: [] }).slice(0, 2)).toEqual([
      expect.stringContaining('blue'),
      expect.stringMatching(/no rule of the tool list of helper allows tool:write_file/),
    ])
    expect(existsSync(path.join(folder, 'new.txt'))).toBe(false)
  })
})

describe('agents that a file names', () => {
  const OTHERS = {
    '.claude/agents/code-reviewer.md': '---\nname: code-reviewer\ndescription: Reviews code\n---\n\nYou review code.\n',
    '.claude/agents/other.md': '---\nname: other\ndescription: Does more\n---\n\nYou do more.\n',
  }

  async function delegate(place: string, fields: string, names: readonly string[]) {
    const folder = folderWith({ [place]: markdown(fields), ...OTHERS })
    const calls = names.map((name) => subagent(name === '' ? { instructions: 'Go.' } : { subrecipe: name }))
    const model = delegating(calls, () => 'looked')
    const runtime = createRuntime({ model, files: diskFiles({ workspace: folder }) })
    const file = await recipeAgent(path.join(folder, place), { cwd: folder, grant: WORKSPACE })
    await runtime.run(file, 'Go.').result
    await runtime.close()
    const [first, last] = [model.requests[0], model.requests.findLast(({ path: at }) => at.length === 1)]
    const shown = first?.tools.find(({ name }) => name === 'subagent')?.description ?? ''
    return { results: resultsIn(last ?? { messages: [] }), shown, tools: first?.tools.map(({ name }) => name) }
  }

  test.each([
    ['.claude/agents/helper.md', 'tools: Task(code-reviewer), Read'],
    ['.claude/agents/helper.md', 'tools: Task(code-reviewer), Read(src/**)'],
    ['.opencode/agent/helper.md', 'permission: { "*": deny, task: { code-reviewer: allow } }'],
  ])('can be reached, and nobody else can: %s with `%s`', async (place, fields) => {
    const { results, shown } = await delegate(place, fields, ['code-reviewer', 'other', ''])

    expect(results[0]).toContain('looked')
    expect(results[1]).toMatch(/Unknown subrecipe 'other'. Available: code-reviewer\./)
    expect(results[2]).toMatch(/agent:subagent/)
    expect(shown).toContain('• code-reviewer - Reviews code')
    expect(shown).not.toContain('other')
  })

  test('opencode: `task: { code-reviewer: allow }` reaches it', async () => {
    const fields = 'permission: { task: { code-reviewer: allow } }'
    const { results } = await delegate('.opencode/agent/helper.md', fields, ['code-reviewer'])

    expect(results[0]).toContain('looked')
  })

  test('Claude: `Task` reaches all of them, a file without it none, and one that forbids it is offered nothing', async () => {
    const place = '.claude/agents/helper.md'

    expect((await delegate(place, 'tools: Task, Read', ['other'])).results[0]).toContain('looked')
    expect((await delegate(place, '', ['other'])).results[0]).toContain("Unknown subrecipe 'other'")
    expect((await delegate(place, 'disallowedTools: Task', ['other'])).tools).not.toContain('subagent')
  })

  test('where none of those that it names is found, it is offered nothing to delegate with', async () => {
    const { tools } = await delegate('.claude/agents/helper.md', 'tools: Task(nobody-of-this-name), Read', [])

    expect(tools).toContain('read_text_file')
    expect(tools).not.toContain('subagent')
  })

  test('an agent that is not found is named', async () => {
    const folder = folderWith({ 'helper.md': markdown('tools: Task(nobody-of-this-name), Read') })
    const { notices } = await validateDefinition(path.join(folder, 'helper.md'))

    expect(notices).toMatchObject([
      { level: 'warning', code: 'not_found', message: expect.stringContaining('`nobody-of-this-name`') },
    ])
  })
})

test.each([
  ['my recipe (copy).yaml', 'title: T\ndescription: D\nprompt: Go.\n', 'my recipe _copy_'],
  ['a+b.yaml', 'title: T\ndescription: D\nprompt: Go.\n', 'a_b'],
  [
    '.claude/agents/y.md',
    `---\nname: ${'x'.repeat(127)}\u{20000}\ndescription: D\n---\n\nDo it.\n`,
    `${'x'.repeat(127)}_`,
  ],
  ['.claude/agents/x.md', '---\nname: "rev (2)"\ndescription: D\n---\n\nDo it.\n', 'rev _2_'],
])('%s runs under a name that an agent can have', async (place, text, name) => {
  const folder = folderWith({ [place]: text })
  await using runtime = createRuntime({ model: scriptedModel(['Done.']) })
  const file = await recipeAgent(path.join(folder, place), { cwd: folder, grant: WORKSPACE })

  expect(file.name).toBe(name)
  expect((await runtime.run(file, 'Go.').result).text).toBe('Done.')
})

test('dontAsk: what a host would be asked for is denied, and nobody waits', async () => {
  const grant: Grant = { ...WORKSPACE, ask: ['file.write:**'] }
  const place = '.claude/agents/helper.md'
  const ran = await runFile(place, markdown('permissionMode: dontAsk'), {
    calls: [write('a.txt'), read('notes.txt')],
    grant,
  })

  expect(ran.status).toBe('completed')
  expect(ran.results[0]).toMatch(
    /helper asks for file\.write:\*\*, and the file of helper denies what would be asked for/,
  )
  expect(ran.results[1]).toContain('blue')
  expect(existsSync(path.join(ran.folder, 'a.txt'))).toBe(false)
})

test('dontAsk holds for the children that it starts', async () => {
  const folder = folderWith({ 'helper.md': markdown('permissionMode: dontAsk') })
  const model = delegating([subagent({ instructions: 'Write.' })], (request) =>
    resultsIn(request).length === 0 ? { calls: [write('a.txt')] } : resultsIn(request).join(),
  )
  const runtime = createRuntime({ model, files: diskFiles({ workspace: folder }) })
  const grant: Grant = { ...WORKSPACE, ask: ['file.write:**'] }
  const file = await recipeAgent(path.join(folder, 'helper.md'), { cwd: folder, grant })
  const { text } = await runtime.run(file, 'Go.').result
  await runtime.close()

  expect(text).toContain('denies what would be asked for')
  expect(existsSync(path.join(folder, 'a.txt'))).toBe(false)
})

describe('a file that an agent delegates to', () => {
  const SKILL = '---\nname: charts\ndescription: d\n---\n\nDraw bars.\n'

  async function delegated(files: Readonly<Record<string, string>>, deny: readonly string[] = []) {
    const folder = folderWith({ 'AGENTS.md': '', ...files })
    const model = delegating([{ name: 'delegate', input: { source: 'helper', instructions: 'Go.' } }])
    const host = agent({
      name: 'host',
      instructions: 'You delegate.',
      model,
      tools: openSubagents({ surfaces: ['delegate'], discover: folder, cwd: folder }),
      grant: { use: [...(WORKSPACE.use ?? [])], deny },
    })
    const runtime = createRuntime({ files: diskFiles({ workspace: folder }) })
    const outcome = await runtime.run(host, 'Go.').result
    await runtime.close()
    return { child: childRequests(model)[0], said: String(outcome.text) }
  }

  test('starts with the skills that it names', async () => {
    const { child } = await delegated({
      '.claude/agents/helper.md': markdown('skills: charts'),
      '.claude/skills/charts/SKILL.md': SKILL,
    })

    expect(JSON.stringify(child?.messages)).toContain('# Skill: charts\\n\\nDraw bars.')
  })

  test('does not start without a skill that it names', async () => {
    const { child, said } = await delegated({ '.claude/agents/helper.md': markdown('skills: charts') })

    expect(child).toBeUndefined()
    expect(said).toContain('there is no skill `charts`')
  })

  test('does not start with a skill that rules withhold from its host', async () => {
    const files = {
      '.claude/agents/helper.md': markdown('skills: charts'),
      '.claude/skills/charts/SKILL.md': SKILL,
    }
    const { child, said } = await delegated(files, ['file.*:/workspace/.claude/skills/**'])

    expect(child).toBeUndefined()
    expect(said).toContain('there is no skill `charts`')
  })

  test('does not start where it asks for isolation, and the host hears which field of which file asks', async () => {
    const { child, said } = await delegated({ '.claude/agents/helper.md': markdown('isolation: worktree') })

    expect(child).toBeUndefined()
    expect(said).toContain('`isolation: worktree` in helper.md')
  })
})
