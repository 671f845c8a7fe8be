import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { createRuntime, type Grant } from 'legate'
import { type AgentFile, loadAgentFile, modelOf, recipeAgent } from 'legate/recipe'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { toJson } from '../../src/core/base/json.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { corpus, skipWithoutCorpus } from './support/corpus.ts'
import { folderWith, refusalOf } from './support/folder.ts'

describe('files that people have', () => {
  beforeEach(skipWithoutCorpus)

  test.each([
    [
      'claude/volt_code-reviewer.md',
      {
        name: 'code-reviewer',
        model: null,
        tools: {
          allow: [
            'read_text_file',
            'read_multiple_files',
            'get_file_info',
            'write_file',
            'edit_file',
            'shell',
            'search_files',
            'list_directory',
            'search_text',
          ],
        },
      },
    ],
    [
      'claude/volt_ab-test-analysis.INVALID_YAML.md',
      { name: 'ab-test-analysis', description: /Triggers on: 'analyze A\/B test', 'p-value'/ },
    ],
    ['claude/wsh_arm-cortex-expert.md', { name: 'arm-cortex-expert', model: null, tools: { allow: [], deny: [] } }],
    ['claude/wsh_eval-judge.md', { name: 'eval-judge', model: 'sonnet' }],
    [
      'claude/wsh_gallery-researcher.md',
      { model: 'haiku', tools: { allow: ['meigen__search_gallery', 'meigen__get_inspiration'] } },
    ],
    ['claude/wsh_social-publishing-publisher.md', { name: 'social-publishing-publisher' }],
    ['claude/wsh_team-reviewer.md', { model: 'opus', properties: { color: 'green' } }],
    [
      'codex/api-designer.toml',
      {
        name: 'api-designer',
        model: 'gpt-5.4',
        settings: { reasoning: 'high' },
        dialect: 'codex',
        grant: { deny: ['exec:*', 'file.delete:**', 'file.write:**', 'net:*'] },
      },
    ],
    ['codex/docs-researcher.toml', { extensions: [{ type: 'streamable_http', name: 'openaiDeveloperDocs' }] }],
    ['gemini/WORKER.md', { name: 'worker', model: null, tools: { allow: null } }],
    ['goose/scout.md', { name: 'Scout', model: 'claude-sonnet-4-20250514', provider: 'goose', dialect: 'goose' }],
    [
      'opencode/triage.md',
      {
        name: 'triage',
        model: 'opencode/gpt-5.4-mini',
        isHidden: true,
        dialect: 'opencode',
        tools: { allow: ['github-triage'], deny: [] },
      },
    ],
    ['opencode/duplicate-pr.md', { name: 'duplicate-pr', tools: { allow: ['github-pr-search'] } }],
  ])('%s', async (file, expected) => {
    const agent = await loadAgentFile(path.join(corpus, 'agents', file))

    const { description, ...others } = expected as { description?: RegExp }
    expect(agent).toMatchObject(others)
    if (description !== undefined) expect(agent.description).toMatch(description)
    expect(agent.instructions.length).toBeGreaterThan(100)
    expect(agent.notices.filter(({ level }) => level === 'error')).toEqual([])
    expect(toJson(agent).ok).toBe(true)
  })
})

describe('files in the shape that programs document', () => {
  const fixture = (file: string) => loadAgentFile(path.join(import.meta.dirname, 'fixtures', file))

  test('Cursor: a read-only agent for the background', async () => {
    expect(await fixture('.cursor/agents/verifier.md')).toMatchObject({
      dialect: 'cursor',
      name: 'verifier',
      model: null,
      isBackground: true,
      tools: { allow: null, deny: [] },
      grant: { deny: ['exec:*', 'file.delete:**', 'file.write:**'] },
      notices: [],
    })
  })

  test('Copilot: tools and a server of its own, of which it uses one tool', async () => {
    const agent = await fixture('.github/agents/test-writer.agent.md')

    expect(agent).toMatchObject({
      dialect: 'copilot',
      name: 'test-writer',
      title: 'Test writer',
      model: 'GPT-5',
      extensions: [
        { type: 'stdio', name: 'docs', cmd: 'docs-server', availableTools: ['lookup'], envKeys: ['DOCS_TOKEN'] },
      ],
      properties: { target: 'vscode', 'argument-hint': 'Which folder?' },
      notices: [],
    })
    expect(agent.tools.allow).toEqual([
      ...['read_text_file', 'read_multiple_files', 'get_file_info', 'edit_file', 'write_file'],
      ...['search_files', 'search_text', 'list_directory', 'docs__lookup'],
    ])
  })

  test.each([
    ['exec:npm test', 'allow'],
    ['exec:npm test --coverage', 'allow'],
    ['exec:npm install', 'deny'],
    ['exec:npm testing', 'deny'],
    ["exec:sh -c 'npm test; rm -r src'", 'deny'],
    ['exec:npm pack --dry-run', 'allow'],
    ['exec:npm pack', 'deny'],
    ['exec:git log --oneline', 'allow'],
    ['exec:git log --exec rm', 'deny'],
    ['exec:git push', 'deny'],
    ['file.read:/workspace/package.json', 'allow'],
    ['file.read:/workspace/packages/a/.env', 'deny'],
    ['tool:todo_write', 'allow'],
    ['tool:write_file', 'deny'],
    ['agent:anybody', 'deny'],
  ])('Claude Code: programs in brackets: %s is decided with %s', async (request, verdict) => {
    const file = await fixture('.claude/agents/release-checker.md')
    const use = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']
    const agent = await recipeAgent(file, { grant: { use }, model: 'x/y' })
    await using runtime = createRuntime()

    expect((await runtime.explain(agent, request)).verdict).toBe(verdict)
  })
})

/** What is decided of a request when nothing else binds the agent of a file. */
async function verdictOf(file: AgentFile): Promise<(request: string) => Promise<string>> {
  const use = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']
  const agent = await recipeAgent(file, { grant: { use }, model: 'x/y' })
  const runtime = createRuntime()
  onTestFinished(() => runtime.close())
  return async (request) => (await runtime.explain(agent, request)).verdict
}

async function agentIn(place: string, text: string) {
  return loadAgentFile(path.join(folderWith({ [place]: text }), place))
}

function markdown(fields: string, body = 'Do it.'): string {
  return `---\n${fields}\n---\n\n${body}\n`
}

const named = 'name: a\ndescription: d'

/** What is said of a tool that there is not. */
function missing(word: string, tool = word): string {
  return `the tool ${word} is not available here: the agent has it only where its host has a tool named ${tool}`
}

describe('front matter', () => {
  test('dashes in a description or in the body divide nothing', async () => {
    const agent = await agentIn(
      '.claude/agents/a.md',
      markdown('name: a\ndescription: "x --- y"\ncolor: red', 'One\n\n---\n\nTwo --- three\n---'),
    )

    expect([agent.description, agent.instructions]).toEqual(['x --- y', 'One\n\n---\n\nTwo --- three\n---'])
  })

  test('front matter that is no YAML is read once more with colons as text, and it is told', async () => {
    const agent = await agentIn(
      '.claude/agents/a.md',
      markdown('name: a\ndescription: Use when: asked # really\ntools: Read, Grep\nmodel: sonnet'),
    )

    expect(agent).toMatchObject({ description: 'Use when: asked # really', model: 'sonnet' })
    expect(agent.notices).toMatchObject([{ level: 'warning', code: 'repaired', line: 3 }])
  })

  test('front matter that stays broken is refused with its line', async () => {
    const refusal = await refusalOf(
      agentIn('.claude/agents/a.md', markdown('name: a\ndescription: d\ntools: [Read\nx: y')),
    )

    expect(refusal).toMatchObject({ problem: expect.stringMatching(/^the front matter is not valid YAML/), line: 5 })
  })

  test('byte order mark, Windows line ends and blanks behind the dashes do no harm', async () => {
    const agent = await agentIn(
      '.claude/agents/a.md',
      `\ufeff---  \r\nname: a\r\ndescription: d\r\n---\t\r\n\r\nBody\r\nmore\r\n`,
    )

    expect([agent.name, agent.instructions]).toEqual(['a', 'Body\r\nmore'])
  })

  test('a file without it, or without name and description, is not an agent file', async () => {
    for (const text of ['# Readme\n', '---\nname: a\n', markdown('title: notes'), markdown('description: only'), '']) {
      expect((await refusalOf(agentIn('.claude/agents/a.md', text))).problem).toBe(
        'this is not an agent file: it has no name or no description',
      )
    }
  })
})

describe('models', () => {
  beforeEach(() => {
    vi.stubEnv('LEGATE_CONFIG', undefined)
    vi.stubEnv('XDG_CONFIG_HOME', tempFolder())
  })
  afterEach(() => {
    vi.unstubAllEnvs()
  })

  test.each(['inherit', ' Inherit ', 'INHERIT', '""', ''])('`model: %s` is that of the host', async (model) => {
    const agent = await agentIn('.claude/agents/a.md', markdown(`${named}\nmodel: ${model}`))

    expect(agent.model).toBeNull()
    expect(modelOf(agent)).toBeNull()
  })

  test('an alias is what the config says; a name that nobody knows is told with its file', async () => {
    const agent = await agentIn('.claude/agents/a.md', markdown(`${named}\nmodel: Sonnet`))
    const config = path.join(tempFolder(), 'config.json')
    const byDefault = modelOf(agent)
    writeFileSync(config, JSON.stringify({ aliases: { sonnet: 'work/large', best: 'sonnet' } }))
    vi.stubEnv('LEGATE_CONFIG', config)

    expect(byDefault).toBe('anthropic/claude-sonnet-5')
    expect(modelOf(agent)).toBe('work/large')
    expect(modelOf({ ...agent, model: 'best', provider: 'anthropic' })).toBe('work/large')
    expect(() => modelOf({ ...agent, model: 'composer-1' })).toThrow(
      /\.claude\/agents\/a\.md: the model `composer-1` is no "provider\/model" and no alias\. Say what it stands for/,
    )
  })

  test.each([
    [{ model: 'gpt-5.4', provider: null }, 'openai/gpt-5.4'],
    [{ model: 'claude-opus-4-1', provider: null }, 'anthropic/claude-opus-4-1'],
    [{ model: 'gemini-2.5-pro', provider: null }, 'google/gemini-2.5-pro'],
    [{ model: 'gemini-3-pro', provider: null }, 'google/gemini-3-pro'],
    [{ model: 'o3', provider: null }, 'openai/o3'],
    [{ model: 'opus', provider: null }, 'anthropic/claude-opus-5'],
    [{ model: 'haiku', provider: null }, 'anthropic/claude-haiku-4-5'],
    [{ model: 'sonnet[1m]', provider: null }, 'anthropic/claude-sonnet-5'],
    [{ model: 'Claude Sonnet 4.5 (copilot)', provider: null }, 'anthropic/claude-sonnet-4-5'],
    [{ model: 'GPT-5 mini (copilot)', provider: null }, 'openai/gpt-5-mini'],
    [{ model: 'claude-4.5-sonnet', provider: null }, 'anthropic/claude-sonnet-4-5'],
    [{ model: 'claude-sonnet-4-20250514', provider: null }, 'anthropic/claude-sonnet-4-20250514'],
    [{ model: 'default', provider: null }, null],
    [{ model: 'Inherit', provider: null }, null],
    [{ model: null, provider: 'anthropic' }, 'anthropic/claude-sonnet-5'],
    [{ model: 'default', provider: 'openai' }, 'openai/gpt-5.4'],
    [{ model: 'sonnet', provider: 'anthropic' }, 'anthropic/claude-sonnet-5'],
    [{ model: 'anthropic/claude-x', provider: 'anthropic' }, 'anthropic/claude-x'],
    [{ model: 'qwen3', provider: 'ollama' }, 'ollama/qwen3'],
    [{ model: 'x/y', provider: null }, 'x/y'],
    [{ model: 'anthropic/claude', provider: 'openrouter' }, 'openrouter/anthropic/claude'],
  ])('%j is %s', (named, expected) => {
    expect(modelOf({ ...named, file: 'f' })).toBe(expected)
  })
})

/** Changes of files that other programs have no words for. */
const OTHER_CHANGES = ['delete_file', 'create_directory', 'move_file']

describe('tools in every spelling', () => {
  const READ = ['read_text_file', 'read_multiple_files', 'get_file_info']

  test.each([
    ['absent', '', null],
    ['a text', 'tools: Read, Grep, mcp__srv__*', [...READ, 'search_files', 'search_text', 'srv__*']],
    ['a list', 'tools:\n  - Read\n  - Grep\n  - mcp__srv', [...READ, 'search_files', 'search_text', 'srv__*']],
    ['a list in a text', 'tools: "[\'Read\', \\"Grep\\"]"', [...READ, 'search_files', 'search_text']],
    ['none', 'tools: []', []],
    ['all', 'tools: "*"', null],
    ['names of our own', 'tools: read_text_file, my_tool', ['read_text_file', 'my_tool']],
    ['a word that others could mistake', 'tools: constructor, __proto__', ['constructor', '__proto__']],
  ])('Claude: %s', async (_, tools, expected) => {
    const agent = await agentIn('.claude/agents/a.md', markdown(`${named}\n${tools}`))

    expect(agent.tools.allow).toEqual(expected)
  })

  test('a notice names, with its line, each tool that is not here; those of our own are not named', async () => {
    const { notices, tools } = await agentIn(
      '.claude/agents/a.md',
      markdown(`${named}\ntools: Read, Nope, WebSearch, NotebookEdit, TodoWrite, tree, todo_write, memory_*, Task`),
    )

    expect(notices.map(({ level, line, message }) => [level, line, message])).toEqual([
      ['warning', 4, missing('Nope')],
      ['warning', 4, missing('WebSearch', 'web_search')],
      ['warning', 4, missing('NotebookEdit')],
    ])
    expect(tools.allow).toEqual([
      ...READ,
      ...['Nope', 'web_search', 'NotebookEdit', 'todo_write', 'todo_read', 'tree', 'memory_*'],
    ])
  })

  test('a notice names the servers whose tools it lists and which it does not start', async () => {
    const file = (more: string) =>
      agentIn('.claude/agents/a.md', markdown(`${named}\ntools: mcp__srv__x, mcp__srv__y${more}`))

    expect((await file('')).notices).toMatchObject([
      {
        code: 'tool',
        line: 4,
        message: 'its tools of the MCP server "srv" are not available here: the file does not say how it is started',
      },
    ])
    expect((await file('\nmcpServers: { srv: { command: srv } }')).notices).toEqual([])
  })

  test('NotebookEdit is not edit_file, and a limit without a rule of ours is not a tool without a limit', async () => {
    const agent = await agentIn('.claude/agents/a.md', markdown(`${named}\ntools: Read, NotebookEdit, Skill(deploy)`))

    expect(agent.tools.allow).toEqual([...READ, 'NotebookEdit'])
    expect(agent.notices.map(({ message }) => message)).toContain(
      'Skill(deploy) is left out: there is no rule here for what stands in its brackets',
    )
  })

  test('a word in a list of what is forbidden that nobody knows is told', async () => {
    const agent = await agentIn('.claude/agents/a.md', markdown(`${named}\ndisallowedTools: Wirte, WebSearch, Write`))

    expect(agent.tools.deny).toEqual(['Wirte', 'write_file', ...OTHER_CHANGES, 'web_search'])
    expect(agent.notices.map(({ message }) => message)).toEqual([expect.stringMatching(/^no tool is named Wirte:/)])
  })

  test('TOML: what is told of a key has its line', async () => {
    const text =
      'name = "a"\ndescription = "d"\ndeveloper_instructions = """\nDo it.\n"""\nsandbox_mode = "read-only"\n'
    const { notices } = await agentIn('.codex/agents/a.toml', text)

    expect(notices.map(({ line, message }) => [line, message.slice(0, 25)])).toEqual([
      [6, '`sandbox_mode: read-only`'.slice(0, 25)],
    ])
  })

  test('opencode: a map whose star is false is a list of what is allowed', async () => {
    const list = await agentIn(
      '.opencode/agent/deep/er.md',
      markdown('description: d\ntools: {"*": false, read: true, my-tool: true}'),
    )
    const off = await agentIn(
      '.opencode/agent/a.md',
      markdown('description: d\ntools: {write: false, bash: false, "srv_*": false}'),
    )

    expect(list).toMatchObject({
      name: 'deep/er',
      tools: { allow: [...READ, 'my-tool'] },
      agents: [],
      grant: { deny: ['agent:*'] },
    })
    expect(off).toMatchObject({
      tools: { allow: null, deny: ['write_file', ...OTHER_CHANGES, 'shell', 'srv_*', 'srv__*'] },
      grant: {
        deny: [
          ...['tool:create_directory', 'tool:delete_file', 'tool:move_file', 'tool:shell', 'tool:srv_*', 'tool:srv__*'],
          'tool:write_file',
        ],
      },
    })
  })

  test('Gemini and Copilot: names of servers', async () => {
    const gemini = await agentIn(
      '.gemini/agents/a.md',
      markdown(`${named}\ntools: [read_file, mcp_srv_*, mcp_*, mcp_srv_do]`),
    )
    const copilot = await agentIn(
      '.github/agents/rev.agent.md',
      markdown('description: d\nname: Reviewer\ntools: ["read", "srv/do", "srv/*", "agent"]'),
    )

    expect(gemini.tools.allow).toEqual([...READ, 'srv__*', '*__*', 'srv__do'])
    expect(copilot).toMatchObject({
      name: 'rev',
      title: 'Reviewer',
      agents: null,
      tools: { allow: [...READ, 'srv__do', 'srv__*'] },
    })
  })

  test('who may be delegated to', async () => {
    const some = await agentIn('.claude/agents/a.md', markdown(`${named}\ntools: Read, Agent(reviewer, writer)`))
    const all = await agentIn('.claude/agents/a.md', markdown(`${named}\ntools: Read, Task`))
    const none = await agentIn('.claude/agents/a.md', markdown(`${named}\ntools: Read`))

    expect(some).toMatchObject({
      agents: ['reviewer', 'writer'],
      grant: { use: expect.arrayContaining(['agent:reviewer', 'agent:writer']) },
    })
    expect(some.grant?.use).not.toContain('agent:*')
    expect([some.reaches, all.reaches, none.reaches]).toEqual([['reviewer', 'writer'], ['*'], []])
    expect([all.agents, all.grant]).toEqual([null, null])
    expect(none).toMatchObject({ agents: [], grant: { deny: ['agent:*'] } })
  })
})

describe('permissions only narrow', () => {
  test('Claude: plan forbids changes; what would loosen is ignored and told', async () => {
    const plan = await agentIn('.claude/agents/a.md', markdown(`${named}\npermissionMode: plan`))

    expect(plan.grant).toEqual({ deny: ['exec:*', 'file.delete:**', 'file.write:**'] })
    for (const mode of ['acceptEdits', 'bypassPermissions', 'auto']) {
      const agent = await agentIn('.claude/agents/a.md', markdown(`${named}\npermissionMode: ${mode}`))
      expect([agent.grant, agent.notices.map(({ code }) => code)]).toEqual([null, ['permission']])
    }
  })

  test.each([
    ['.claude/agents/a.md', markdown(`${named}\npermissionMode: pln`), '`permissionMode: pln` is not known'],
    ['.codex/agents/a.toml', 'name = "a"\ndescription = "d"\nsandbox_mode = "readonly"\n', '`sandbox_mode: readonly`'],
  ])('%s: a mode that is not known is taken as the strictest one, with a warning', async (place, text, told) => {
    const { grant, notices } = await agentIn(place, text)

    expect(grant?.deny).toEqual(expect.arrayContaining(['exec:*', 'file.delete:**', 'file.write:**']))
    expect(notices).toMatchObject([{ level: 'warning', code: 'permission', message: expect.stringContaining(told) }])
    expect(notices[0]?.message).toMatch(/it is taken as/)
  })

  test.each([
    ['permission: { edits: deny, edit: ask }', /permission\.edits` restricts nothing/, 'Did you mean `edit`?'],
    [
      'permission: { bash: { "rm *": deny, "*": allow } }',
      /permission\.bash\."rm \*"` restricts nothing/,
      'Put "*" first.',
    ],
    ['permission: { lsp: { "x": deny, "*": allow } }', /permission\.lsp\."x"` restricts nothing/, 'Put "*" first.'],
    ['permission: { edit: deny, "*": allow }', /permission\.edit` restricts nothing/, 'Put "*" first.'],
    ['permission: { edit: allow, "*": deny }', /permission\.edit` allows nothing/, 'Put "*" first.'],
    [
      'permission: { bash: { "git *": allow, "*": ask } }',
      /permission\.bash\."git \*"` allows nothing: `permission\.bash\."\*"` comes after it/,
      'Put "*" first.',
    ],
    ['tools:', /`tools` has nothing after it/, 'Write `tools: []` for none, or remove the key.'],
  ])('opencode: `%s` has no effect, which is a warning', async (field, told, hint) => {
    const { notices } = await agentIn('.opencode/agent/a.md', markdown(`${named}\n${field}`))

    expect(notices).toMatchObject([{ level: 'warning', line: 4, message: expect.stringMatching(told), hint }])
  })

  test('opencode: what comes after a star restricts, and nothing is told', async () => {
    const said = 'permission: { "*": allow, edit: deny, bash: { "*": allow, "rm *": deny } }'
    const { notices } = await agentIn('.opencode/agent/a.md', markdown(`${named}\n${said}`))

    expect(notices).toEqual([])
  })

  test('Claude: `tools:` with nothing after it is all tools, with a warning', async () => {
    const { tools, notices } = await agentIn('.claude/agents/a.md', markdown(`${named}\ntools:`))

    expect(tools.allow).toBeNull()
    expect(notices).toMatchObject([{ level: 'warning', code: 'tool', line: 4 }])
  })

  test('Claude: tools with limits', async () => {
    const agent = await agentIn(
      '.claude/agents/a.md',
      markdown(
        `${named}\ntools: Bash(git:*), Bash(npm test), Edit(src/**), Task\ndisallowedTools: Bash(git push:*), Read(.env), WebFetch(domain:evil.com), mcp__srv__drop`,
      ),
    )

    expect(agent.grant?.use).toEqual(
      expect.arrayContaining([
        'exec:git',
        'exec:git *',
        'exec:npm test',
        'file.write:/workspace/src/**',
        'file.read:**',
      ]),
    )
    expect(agent.grant?.use).not.toContain('exec:*')
    expect(agent.grant?.deny).toEqual([
      'exec:git push',
      'exec:git push *',
      'file.read:/workspace/**/.env',
      'file.read:/workspace/**/.env/**',
      'net:evil.com',
      'tool:srv__drop',
    ])
  })

  test.each([
    ['domain:x.org:8080', [], 'left out'],
    ['https://x.org:8080/docs', [], 'left out'],
    ['[::1]:8080', [], 'left out'],
    ['domain:x.org:*', ['net:x.org'], null],
    ['domain:x.org', ['net:x.org'], null],
    ['domain:*.x.org', ['net:*.x.org'], null],
  ])('Claude: a port cannot be allowed by itself, and that is told: WebFetch(%s)', async (limit, rules, told) => {
    const text = markdown(`${named}\ntools: Read, WebFetch(${limit})`)
    const agent = await agentIn('.claude/agents/a.md', text)
    const ports = agent.notices.filter(({ message }) => message.includes('all of its ports'))

    expect(agent.grant?.use?.filter((rule) => rule.startsWith('net:'))).toEqual(rules)
    expect(ports.map(({ code, level, line }) => [code, level, line])).toEqual(
      told === null ? [] : [['permission', 'warning', 4]],
    )
    if (told !== null) expect(ports[0]?.message).toContain(`WebFetch(${limit}) is ${told}`)
  })

  test('Claude: a port that is forbidden forbids its host, and no other, with a word on it', async () => {
    const text = markdown(`${named}\ndisallowedTools: WebFetch(domain:evil.com:8080), WebFetch(domain:[::1]:9)`)
    const agent = await agentIn('.claude/agents/a.md', text)

    expect(agent.grant).toEqual({ deny: ['net:[::1]', 'net:evil.com'] })
    expect(agent.notices.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^WebFetch\(domain:evil\.com:8080\) forbids all ports of that host: a rule/),
      expect.stringMatching(/^WebFetch\(domain:\[::1\]:9\) forbids all ports/),
    ])
  })

  test('opencode: the same of webfetch', async () => {
    const permission = 'webfetch: {"*": deny, "x.org:8080": allow, "y.org": allow}'
    const agent = await agentIn('.opencode/agent/a.md', markdown(`description: d\npermission:\n  ${permission}`))
    const denied = await agentIn(
      '.opencode/agent/a.md',
      markdown('description: d\npermission:\n  webfetch: {"x.org:8080": deny}'),
    )

    expect(agent.grant?.use?.filter((rule) => rule.startsWith('net:'))).toEqual(['net:y.org'])
    expect(agent.notices.map(({ message }) => message)).toEqual([expect.stringContaining('"x.org:8080" names a port')])
    expect(denied.grant).toEqual({ deny: ['net:x.org'] })
    expect(denied.notices).toHaveLength(1)
  })

  test('Cursor and Codex: read-only', async () => {
    const cursor = await agentIn(
      '.cursor/agents/a.md',
      markdown('description: d\nreadonly: true\nis_background: true\nmodel: fast'),
    )
    const codex = (mode: string) =>
      agentIn(
        '.codex/agents/a.toml',
        `name = "a"\ndescription = "d"\nsandbox_mode = "${mode}"\ndeveloper_instructions = """\nDo it.\n"""\n`,
      )

    expect(cursor).toMatchObject({
      name: 'a',
      isBackground: true,
      model: null,
      grant: { deny: ['exec:*', 'file.delete:**', 'file.write:**'] },
    })
    const fenced = await codex('workspace-write')
    expect([fenced.grant, fenced.sandbox]).toEqual([{ deny: ['net:*'] }, 'workspace-write'])
    expect(fenced.notices).toMatchObject([
      { level: 'warning', code: 'permission', line: 3, message: expect.stringContaining('programs cannot be fenced') },
    ])
    const open = await codex('workspace-write"\n[sandbox_workspace_write]\nnetwork_access = true\n#')
    expect([open.grant, open.notices.length]).toEqual([null, 1])
    const full = await codex('danger-full-access')
    expect([full.grant, full.notices.map(({ code }) => code)]).toEqual([null, ['permission']])
    expect(full.instructions).toBe('Do it.\n')
  })

  test.each([
    ['bash: deny', { deny: ['exec:*'] }, 0],
    ['edit: ask', { ask: ['file.delete:**', 'file.write:**'] }, 0],
    [
      'bash: {"*": allow, "rm *": deny, "git push*": ask}',
      { ask: ['exec:git push*', 'exec:sh -c *'], deny: ['exec:rm', 'exec:rm *'] },
      0,
    ],
    ['bash: {"*": ask, "git status": allow}', { ask: ['exec:*'] }, 1],
    ['bash: {"git *": ask, "git log *": allow}', { ask: ['exec:git', 'exec:git *', 'exec:sh -c *'] }, 1],
    ['bash: {"rm *": deny, "*": allow}', null, 1],
    ['bash: sometimes', { deny: ['exec:*'] }, 1],
    [
      'edit: {"*": deny, "*.md": allow}',
      { use: expect.arrayContaining(['file.write:/workspace/**/*.md', 'file.read:**']) },
      0,
    ],
    ['task: {"*": deny, "explore-*": allow}', { use: expect.arrayContaining(['agent:explore-*']) }, 0],
    ['my_tool: deny', { deny: ['tool:my__tool', 'tool:my_tool'] }, 0],
    ['todowrite: deny', { deny: ['tool:todo_read', 'tool:todo_write'] }, 0],
  ])('opencode: %s', async (permission, grant, warnings) => {
    const agent = await agentIn('.opencode/agent/a.md', markdown(`description: d\npermission:\n  ${permission}`))

    expect(agent.grant).toEqual(grant)
    expect(agent.notices.filter(({ code }) => code === 'permission')).toHaveLength(warnings)
  })

  test.each([
    ['bash: {"*": allow, "rm *": deny}', "exec:sh -c 'ls; rm x'", 'ask'],
    ['bash: {"*": allow, "rm *": deny}', 'exec:ls', 'allow'],
    ['bash: {"*": deny, "ls *": allow, "rm *": deny}', "exec:sh -c 'ls; rm x'", 'deny'],
    ['{"*": deny, read: allow}', 'tool:write_file', 'deny'],
    ['{"*": deny, read: allow}', 'tool:read_text_file', 'allow'],
    ['{"*": deny, read: allow}', 'file.read:/workspace/a', 'allow'],
    ['{"*": deny, read: allow}', 'exec:ls', 'deny'],
    ['{"*": ask, bash: allow}', 'exec:ls', 'allow'],
    ['{"*": ask, bash: allow}', 'file.write:/workspace/a', 'ask'],
    ['{bash: deny, "*": allow}', 'exec:ls', 'allow'],
    ['deny', 'file.read:/workspace/a', 'deny'],
    ['{"*": deny, bash: allow}', 'file.list:/workspace', 'allow'],
    ['{"*": deny, bash: allow}', 'tool:shell', 'allow'],
    ['{"*": deny, bash: allow}', 'tool:list_directory', 'deny'],
    ['{"*": deny, bash: allow}', 'file.read:/workspace/a', 'deny'],
    ['{"*": deny, bash: {"git *": allow}}', 'exec:git log', 'allow'],
    ['{"*": deny, bash: {"git *": allow}}', 'exec:rm x', 'deny'],
    ['{"*": ask, bash: {"rm *": deny}}', 'exec:ls', 'ask'],
    ['{"*": deny, task: {review: allow}}', 'agent:other', 'deny'],
    ['{"*": deny, grep: allow, glob: allow}', 'file.list:/workspace/src', 'allow'],
    ['{"*": deny, grep: allow, glob: allow}', 'file.read:/workspace/a', 'allow'],
    ['{"*": deny, grep: allow, glob: allow}', 'tool:read_text_file', 'deny'],
    ['{"*": deny, grep: allow, glob: allow}', 'tool:search_text', 'allow'],
    ['{"*": deny, edit: allow}', 'file.read:/workspace/a', 'allow'],
    ['{"*": deny, edit: allow}', 'tool:read_text_file', 'deny'],
    ['{"*": ask, grep: allow}', 'file.read:/workspace/a', 'allow'],
    ['{"*": ask, grep: allow}', 'tool:read_text_file', 'ask'],
    ['{list: deny, bash: ask}', 'file.list:/workspace', 'allow'],
    ['{list: deny, bash: ask}', 'tool:tree', 'deny'],
    ['{glob: deny}', 'tool:tree', 'deny'],
    ['{glob: deny}', 'tool:list_directory', 'deny'],
    ['{"*": deny, patch: allow}', 'tool:delete_file', 'allow'],
    ['{"*": deny, edit: allow, write: allow}', 'tool:delete_file', 'deny'],
  ])('opencode: with `%s`, %s is decided with %s', async (permission, request, verdict) => {
    const value = permission.startsWith('bash') ? `{${permission}}` : permission
    const file = await agentIn('.opencode/agent/a.md', markdown(`description: d\npermission: ${value}`))
    const use = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']
    await using runtime = createRuntime()

    expect((await runtime.explain(await recipeAgent(file, { grant: { use } }), request)).verdict).toBe(verdict)
  })

  test.each([
    ['.claude/agents/a.md', 'disallowedTools: Write, Edit, MultiEdit, NotebookEdit, Bash', 'every'],
    ['.claude/agents/a.md', 'disallowedTools: Write, Edit', 'every'],
    ['.claude/agents/a.md', 'permissionMode: plan', 'every'],
    ['.legate/agents/a.md', 'disallowedTools: Write, Edit', 'every'],
    ['.opencode/agent/a.md', 'tools: { write: false, edit: false, bash: false }', 'every'],
    ['.opencode/agent/a.md', 'tools: { edit: false }', 'every'],
    ['.opencode/agent/a.md', 'permission: { edit: deny }', 'every'],
    ['.opencode/agent/a.md', 'permission: { write: deny }', 'every'],
    ['.opencode/agent/a.md', 'permission: { "*": deny, read: allow }', 'every'],
    ['.cursor/agents/a.md', 'readonly: true', 'every'],
    ['.gemini/agents/a.md', 'tools: [read_file, glob]', 'each tool of'],
    ['.github/agents/a.agent.md', 'tools: [read, search]', 'each tool of'],
    ['.claude/agents/a.md', 'tools: Read, Glob', 'each tool of'],
  ])('%s: `%s` forbids %s change of files', async (place, fields, what) => {
    const verdict = await verdictOf(await agentIn(place, markdown(`${named}\n${fields}`)))
    const acts = what === 'every' ? ['file.write:/workspace/a', 'file.delete:/workspace/a'] : []
    const changes = ['write_file', 'edit_file', ...OTHER_CHANGES].map((name) => `tool:${name}`)

    // A call is refused by its tool or by what it does.
    const ofActs = await Promise.all(acts.map(verdict))
    const areActsOut = acts.length > 0 && ofActs.every((said) => said === 'deny')
    for (const tool of changes) expect([tool, areActsOut || (await verdict(tool)) === 'deny']).toEqual([tool, true])
    expect(ofActs).toEqual(acts.map(() => 'deny'))
  })

  test.each([
    ['disallowedTools: Edit(.git/**), Read(secret/**)', 'file.delete:/workspace/.git/description', 'deny'],
    ['disallowedTools: Edit(.git/**), Read(secret/**)', 'file.write:/workspace/.git/description', 'deny'],
    ['disallowedTools: Edit(.git/**), Read(secret/**)', 'file.delete:/workspace/a', 'allow'],
    ['disallowedTools: Write(.git/**)', 'file.delete:/workspace/.git/x', 'deny'],
    ['disallowedTools: Glob(secret/**)', 'file.list:/workspace/secret/x', 'deny'],
    ['disallowedTools: Grep(secret/**)', 'file.read:/workspace/secret/x', 'deny'],
    ['disallowedTools: Write', 'tool:delete_file', 'deny'],
    ['disallowedTools: Write', 'tool:edit_file', 'allow'],
    ['disallowedTools: Edit', 'tool:delete_file', 'deny'],
    ['disallowedTools: Glob, Grep', 'tool:tree', 'deny'],
    ['disallowedTools: Glob, Grep', 'tool:list_directory', 'deny'],
    ['disallowedTools: Glob, Grep', 'tool:search_text', 'deny'],
    ['disallowedTools: Glob, Grep', 'tool:read_text_file', 'allow'],
    ['tools: Write, Edit', 'tool:delete_file', 'deny'],
    ['tools: Read(src/**), Glob', 'file.read:/workspace/.env', 'deny'],
    ['tools: Read(src/**), Glob', 'file.read:/workspace/src/a', 'allow'],
    ['tools: Read(src/**), Glob', 'file.list:/workspace', 'allow'],
    ['tools: Read(src/**), Grep', 'file.read:/workspace/.env', 'deny'],
    ['tools: Read, Read(src/**)', 'file.read:/workspace/.env', 'allow'],
    ['tools: Edit(docs/**), Write', 'file.write:/workspace/README.md', 'deny'],
    ['tools: Edit(docs/**), Write', 'file.delete:/workspace/README.md', 'deny'],
    ['tools: Edit(docs/**), Write', 'file.write:/workspace/docs/a', 'allow'],
    ['tools: Read(docs/**), Edit(src/**)', 'file.read:/workspace/src/a', 'allow'],
    ['tools: Glob(src/**), Read', 'file.list:/workspace/secret', 'deny'],
    ['tools: Glob(src/**), Read', 'file.list:/workspace', 'allow'],
    ['tools: Bash(git:*), Bash', 'exec:ls', 'allow'],
  ])('Claude: with `%s`, %s is decided with %s', async (fields, request, expected) => {
    const verdict = await verdictOf(await agentIn('.claude/agents/a.md', markdown(`${named}\n${fields}`)))

    expect(await verdict(request)).toBe(expected)
  })

  test('a limit that binds other tools too is told', async () => {
    const told = async (tools: string) => {
      const { notices } = await agentIn('.claude/agents/a.md', markdown(`${named}\ntools: ${tools}`))
      return notices.map(({ level, line, message }) => [level, line, message])
    }

    expect(await told('Read(src/**), Glob')).toEqual([])
    expect(await told('Edit(docs/**), Read')).toEqual([])
    expect(await told('Read(src/**), Read(docs/**)')).toEqual([])
    expect(await told('Read(src/**), Grep')).toEqual([
      ['warning', 4, 'Read(src/**), Grep: what may be read is limited for all of these together'],
    ])
    expect(await told('Edit(docs/**), Write')).toEqual([
      ['warning', 4, 'Edit(docs/**), Write: what may be written is limited for all of these together'],
    ])
  })

  test('Claude: dontAsk denies what anybody would be asked for, and nothing else', async () => {
    const file = await agentIn('.claude/agents/a.md', markdown(`${named}\npermissionMode: dontAsk`))
    const ask = ['exec:*', 'file.write:**']
    const grant = { use: ['tool:*', 'file.*:**', 'exec:*'], ask }
    const agent = await recipeAgent(file, { grant, model: 'x/y' })
    await using runtime = createRuntime({ grant: { ask: ['file.delete:**'] } })

    expect([file.neverAsks, file.grant, file.notices]).toEqual([true, null, []])
    expect((await runtime.explain(agent, 'file.read:/workspace/a')).verdict).toBe('allow')
    expect((await runtime.explain(agent, 'file.delete:/workspace/a')).verdict).toBe('deny')
    expect(await runtime.explain(agent, 'exec:ls')).toMatchObject({
      verdict: 'deny',
      reason: 'a asks for exec:*, and the file of a denies what would be asked for',
    })
  })

  test('opencode: an allow-list denies what is not on it', async () => {
    const agent = await agentIn(
      '.opencode/agent/a.md',
      markdown('description: d\npermission:\n  bash: {"*": deny, "git *": allow, "git push *": deny, "npm *": ask}'),
    )

    expect(agent.grant?.use).toEqual(expect.arrayContaining(['exec:git', 'exec:git *', 'exec:npm *']))
    expect(agent.grant?.use).not.toContain('exec:*')
    expect(agent.grant).toMatchObject({
      ask: ['exec:npm', 'exec:npm *'],
      deny: ['exec:git push', 'exec:git push *'],
    })
  })
})

describe('what else files say', () => {
  test.each([
    ['0', 'none'],
    ['1024', 'low'],
    ['4000', 'low'],
    ['"10_000"', undefined],
    ['10000', 'medium'],
    ['16000', 'high'],
    ['32000', 'xhigh'],
    ['-1', undefined],
    ['1.5', undefined],
  ])('`effort: %s` of a Claude file is %s, and the file says how it is read', async (number, level) => {
    const { settings, notices } = await agentIn('.claude/agents/a.md', markdown(`${named}\neffort: ${number}`))

    expect(settings.reasoning).toBe(level)
    const message = level === undefined ? /is not known; it is ignored/ : new RegExp(`is read as \`${level}\``)
    expect(notices).toMatchObject([{ message: expect.stringMatching(message) }])
  })

  test('a number is no effort in a dialect that has words for it', async () => {
    const { settings } = await agentIn('.opencode/agents/a.md', markdown('description: d\nreasoningEffort: 32000'))

    expect(settings).toEqual({})
  })

  test('limits, sampling, skills, servers, prompts', async () => {
    const claude = await agentIn(
      '.claude/agents/a.md',
      markdown(
        `${named}\nmaxTurns: 7\neffort: high\nskills: review, deploy\nbackground: true\ninitialPrompt: Begin.\nhooks: {Stop: []}\nmcpServers:\n  - github\n  - local: {command: npx, args: [-y, x@1.10], env: {KEY: "\${KEY}", MODE: a, PATH: /x}}\n`,
      ),
    )
    const gemini = await agentIn(
      '.gemini/agents/a.md',
      markdown(
        `${named}\ntemperature: 0.5\nmax_turns: 9\ntimeout_mins: 2\ndisplay_name: A!\nmcpServers: {web: {httpUrl: "https://x/mcp", headers: {A: b}}}`,
      ),
    )
    const opencode = await agentIn(
      '.opencode/agents/a.md',
      markdown('description: d\nsteps: 3\ntop_p: 0.9\ntextVerbosity: low\ndisable: true'),
    )
    const goose = await agentIn(
      '.agents/agents/a.md',
      markdown('name: A\nmodel: m\nprovider: p\nsettings: {max_turns: 4}'),
    )

    expect(claude).toMatchObject({
      budget: { modelCalls: 7 },
      settings: { reasoning: 'high' },
      skills: ['review', 'deploy'],
      isBackground: true,
      prompt: 'Begin.',
    })
    expect(claude.extensions).toMatchObject([
      { type: 'named', name: 'github' },
      { type: 'stdio', name: 'local', cmd: 'npx', args: ['-y', 'x@1.10'], envs: { MODE: 'a' }, envKeys: ['KEY'] },
    ])
    expect(claude.properties).toEqual({})
    expect(gemini).toMatchObject({
      title: 'A!',
      budget: { modelCalls: 9, wallMs: 120_000 },
      settings: { temperature: 0.5 },
      extensions: [{ type: 'streamable_http', uri: 'https://x/mcp', headers: { A: 'b' } }],
    })
    expect(opencode).toMatchObject({
      budget: { modelCalls: 3 },
      settings: { topP: 0.9 },
      isHidden: false,
      isDisabled: true,
      properties: { textVerbosity: 'low' },
    })
    expect(goose).toMatchObject({ description: 'Agent (m)', provider: 'p', budget: { modelCalls: 4 } })
  })

  test('input, output, grant, budget and briefing mean the same in every dialect', async () => {
    const extras = `input: {type: object, properties: {q: {type: string}}}\noutput: {type: object}\ngrant: {use: ["tool:*", "exec:git *"], deny: ["net:*"]}\nbudget: {modelCalls: 5, usd: 1}\nbriefing: summary`
    const toml = `name = "a"
description = "d"
developer_instructions = "Do it."
output = { type = "object" }
briefing = "summary"
input = { type = "object", properties = { q = { type = "string" } } }
grant = { use = ["tool:*", "exec:git *"], deny = ["net:*"] }
budget = { modelCalls = 5, usd = 1 }
`
    const text = markdown(`${named}\n${extras}`)
    const files = {
      '.claude/agents/a.md': text,
      '.gemini/agents/a.md': text,
      '.legate/agents/a.md': text,
      '.cursor/agents/a.md': text,
      '.opencode/agent/a.md': text,
      '.github/agents/a.agent.md': text,
      '.goose/agents/a.md': text,
      '.codex/agents/a.toml': toml,
    }
    for (const [place, said] of Object.entries(files)) {
      expect(await agentIn(place, said), place).toMatchObject({
        input: { type: 'object', properties: { q: { type: 'string' } } },
        output: { type: 'object' },
        grant: { use: ['tool:*', 'exec:git *'], deny: ['net:*'] },
        budget: { modelCalls: 5, usd: 1 },
        briefing: 'summary',
        notices: [],
      })
    }
  })

  test.each([
    ['.claude/agents/a.md', 'permissionMode: bypassPermissions\ntools: "*"'],
    ['.opencode/agent/a.md', 'permission: allow'],
    ['.gemini/agents/a.md', 'tools: ["*"]'],
    ['.github/agents/a.agent.md', 'tools: ["*"]'],
    ['.cursor/agents/a.md', 'readonly: false'],
    ['.goose/agents/a.md', ''],
    ['.legate/agents/a.md', 'neverAsks: false'],
  ])('%s with `%s` and a grant of everything may do nothing that you do not allow', async (place, fields) => {
    const everything = 'grant: {use: ["tool:*", "agent:*", "model:*", "file.*:**", "exec:*", "net:*"]}'
    const verdict = async (grant: Grant, request: string) => {
      const file = await agentIn(place, markdown(`${named}\n${everything}\n${fields}`))
      await using runtime = createRuntime()
      return (await runtime.explain(await recipeAgent(file, { grant }), request)).verdict
    }
    const few = { use: ['tool:read_*', 'file.read:/workspace/**'], ask: ['tool:read_secret'], deny: ['model:x/*'] }

    expect(await verdict(few, 'tool:read_text_file')).toBe('allow')
    expect(await verdict(few, 'tool:read_secret')).toBe('ask')
    for (const request of [
      'tool:write_file',
      'agent:b',
      'model:x/y',
      'file.write:/workspace/a',
      'exec:ls',
      'net:a.test',
    ]) {
      expect(await verdict(few, request), request).toBe('deny')
    }
  })

  test('a grant of its own and the words of its dialect narrow each other', async () => {
    const agent = await agentIn(
      '.claude/agents/a.md',
      markdown(
        `${named}\ntools: Bash(git status), Task\ngrant: {use: ["tool:*", "exec:git *", "file.*:/workspace/**"]}\nmaxTurns: 9\nbudget: {modelCalls: 20}`,
      ),
    )

    expect(agent.grant?.use?.toSorted()).toEqual([
      'exec:git status',
      'file.delete:/workspace/**',
      'file.list:/workspace/**',
      'file.read:/workspace/**',
      'file.write:/workspace/**',
      'tool:*',
    ])
    expect(agent.budget).toEqual({ modelCalls: 9 })
  })

  test.each([
    ['grant: {use: ["everything"]}', /must start with one of/],
    ['grant: {allow: []}', /a grant has use, delegate, ask, free and deny/],
    ['budget: {modelCalls: 0}', /budget\.modelCalls must be a whole number of at least 1/],
    ['budget: {speed: 1}', /not "speed"/],
    ['input: 5', /`input` must be a JSON Schema/],
    ['briefing: all', /unknown variant `all`/],
    ['maxTurns: -1', /`maxTurns` must be a whole number/],
    ['description: [a]', /description: invalid type/],
  ])('%s is refused with its line', async (field, problem) => {
    const text = field.startsWith('description') ? `name: a\n${field}` : `${named}\n${field}`
    const refusal = await refusalOf(agentIn('.legate/agents/a.md', markdown(text)))

    expect(refusal).toMatchObject({ problem: expect.stringMatching(problem), line: text.split('\n').length + 1 })
  })

  test('invalid TOML is refused with its line', async () => {
    expect(await refusalOf(agentIn('.codex/agents/a.toml', 'name = "a"\ndescription = \n'))).toMatchObject({
      problem: expect.stringMatching(/^not valid TOML/),
      line: 2,
    })
  })

  test.each([
    ['.claude/agents/a.md', 'disallowedtools: Write', 'disallowedTools'],
    ['.claude/agents/a.md', 'permission_mode: plan', 'permissionMode'],
    ['.claude/agents/a.md', 'dissallowedTools: Write', 'disallowedTools'],
    ['.cursor/agents/a.md', 'read_only: true', 'readonly'],
    ['.github/agents/a.agent.md', 'disable-model-invocaton: true', 'disable-model-invocation'],
    ['.claude/agents/a.md', 'disabled: true', 'disable'],
    ['.claude/agents/a.md', 'permission: plan', 'permissionMode'],
  ])('%s: `%s` is taken as meant, which is a warning', async (place, field, meant) => {
    const { notices } = await agentIn(place, markdown(`${named}\n${field}`))

    expect(notices[0]).toMatchObject({ level: 'warning', code: 'unknown_key', line: 4, hint: `Write \`${meant}\`.` })
  })

  test('Codex: `sandbox` is read as `sandbox_mode`, which is a warning', async () => {
    const { notices } = await agentIn('.codex/agents/a.toml', 'name = "a"\ndescription = "d"\nsandbox = "read-only"\n')

    expect(notices[0]).toMatchObject({ level: 'warning', code: 'unknown_key', line: 3, hint: 'Write `sandbox_mode`.' })
    expect(notices[1]?.message).toContain('none may be started')
  })

  test.each(['input', 'output'])('`%s` that is not JSON Schema refuses the file with its line', async (key) => {
    const text = markdown(`${named}\n${key}: { type: objct }`)

    expect(await refusalOf(agentIn('.legate/agents/a.md', text))).toMatchObject({
      problem: expect.stringContaining(`\`${key}\` is not JSON Schema that can be used`),
      line: 4,
    })
  })

  test('Cursor: `model: fast` is the model of the host, with a word on it', async () => {
    const agent = await agentIn('.cursor/agents/a.md', markdown('description: d\nmodel: fast'))

    expect([agent.model, modelOf(agent)]).toEqual([null, null])
    expect(agent.notices).toMatchObject([{ level: 'note', code: 'model', line: 3 }])
  })

  test('Copilot: a chat mode is called by its file', async () => {
    const agent = await agentIn('planner.chatmode.md', markdown('description: Plans\ntools: [search]'))

    expect(agent).toMatchObject({ dialect: 'copilot', name: 'planner', description: 'Plans' })
  })

  test.each([
    ['x.md', 'permissionMode: plan', 'claude'],
    ['x.md', 'mode: subagent', 'opencode'],
    ['x.md', 'timeout_mins: 3', 'gemini'],
    ['x.agent.md', '', 'copilot'],
    ['x.md', 'handoffs: []', 'copilot'],
    ['x.md', 'readonly: true', 'cursor'],
    ['x.md', 'provider: p', 'goose'],
    ['x.md', 'briefing: none', 'legate'],
    ['x.md', '', 'claude'],
  ])('outside of any known folder %s with `%s` is of %s', async (file, field, dialect) => {
    expect((await agentIn(file, markdown(`${named}\n${field}`))).dialect).toBe(dialect)
  })
})
