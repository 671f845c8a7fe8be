import path from 'node:path'
import { loadAgentFile, modelOf } from 'legate/recipe'
import { beforeEach, describe, expect, test } from 'vitest'
import { toJson } from '../../src/base/json.ts'
import { corpus, skipWithoutCorpus } from './support/corpus.ts'
import { folderWith, refusalOf } from './support/folder.ts'

describe('aster-goose 14/92: files that people have', () => {
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

async function agentIn(place: string, text: string) {
  return loadAgentFile(path.join(folderWith({ [place]: text }), place))
}

function markdown(fields: string, body = 'Do it.'): string {
  return `---\n${fields}\n---\n\n${body}\n`
}

const named = 'name: a\ndescription: d'

describe('front matter', () => {
  test('aster-goose 14/97, agentscope 8.9/111: dashes in a description or in the body divide nothing', async () => {
    const agent = await agentIn(
      '.claude/agents/a.md',
      markdown('name: a\ndescription: "x --- y"\ncolor: red', 'One\n\n---\n\nTwo --- three\n---'),
    )

    expect([agent.description, agent.instructions]).toEqual(['x --- y', 'One\n\n---\n\nTwo --- three\n---'])
  })

  test('that is no YAML is read once more with colons as text, and it is told', async () => {
    const agent = await agentIn(
      '.claude/agents/a.md',
      markdown('name: a\ndescription: Use when: asked # really\ntools: Read, Grep\nmodel: sonnet'),
    )

    expect(agent).toMatchObject({ description: 'Use when: asked # really', model: 'sonnet' })
    expect(agent.notices).toMatchObject([{ level: 'warning', code: 'repaired', line: 3 }])
  })

  test('that stays broken is refused with its line', async () => {
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

  test('a file without it, or without name and description, is no agent file', async () => {
    for (const text of ['# Readme\n', '---\nname: a\n', markdown('title: notes'), markdown('description: only'), '']) {
      expect((await refusalOf(agentIn('.claude/agents/a.md', text))).problem).toBe(
        'this is no agent file: it has no name or no description',
      )
    }
  })
})

describe('models', () => {
  test.each(['inherit', ' Inherit ', 'INHERIT', '""', ''])(
    'aster-goose 14/54: `model: %s` is that of the host',
    async (model) => {
      const agent = await agentIn('.claude/agents/a.md', markdown(`${named}\nmodel: ${model}`))

      expect(agent.model).toBeNull()
      expect(modelOf(agent, new Map())).toBeNull()
    },
  )

  test('aster-goose 14/54: an alias is what the config says; without it the file is named', async () => {
    const agent = await agentIn('.claude/agents/a.md', markdown(`${named}\nmodel: Sonnet`))

    expect(modelOf(agent, new Map([['sonnet', 'anthropic/claude-sonnet-5']]))).toBe('anthropic/claude-sonnet-5')
    expect(() => modelOf(agent, new Map())).toThrow(
      /\.claude\/agents\/a\.md: the model `Sonnet` is no "provider\/model" and no alias\. Set what it stands for/,
    )
  })

  test.each([
    [{ model: 'gpt-5.4', provider: null }, 'openai/gpt-5.4'],
    [{ model: 'claude-opus-4-1', provider: null }, 'anthropic/claude-opus-4-1'],
    [{ model: 'gemini-2.5-pro', provider: null }, 'google/gemini-2.5-pro'],
    [{ model: 'x/y', provider: null }, 'x/y'],
    [{ model: 'anthropic/claude', provider: 'openrouter' }, 'openrouter/anthropic/claude'],
  ])('%j is %s', (named, expected) => {
    expect(modelOf({ ...named, file: 'f' }, new Map())).toBe(expected)
  })
})

describe('aster-goose 14/93: tools in every spelling', () => {
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

  test('a name that nobody knows is told, with its line; those of servers and of our own are not', async () => {
    const { notices } = await agentIn(
      '.claude/agents/a.md',
      markdown(`${named}\ntools: Read, Nope, mcp__srv__x, tree, todo_write, memory_*, Task`),
    )

    expect(notices.filter(({ code }) => code === 'tool')).toMatchObject([
      { level: 'warning', line: 4, message: expect.stringMatching(/^no tool is named Nope here/) },
    ])
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
      tools: { allow: null, deny: ['write_file', 'shell', 'srv_*'] },
      grant: { deny: ['tool:shell', 'tool:srv_*', 'tool:write_file'] },
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

    expect(gemini.tools.allow).toEqual(['read_text_file', 'get_file_info', 'srv__*', '*__*', 'srv__do'])
    expect(copilot).toMatchObject({
      name: 'rev',
      title: 'Reviewer',
      agents: null,
      tools: { allow: [...READ, 'srv__do', 'srv__*'] },
    })
  })

  test('what there is nothing of here is left out with a warning', async () => {
    const agent = await agentIn('.claude/agents/a.md', markdown(`${named}\ntools: Read, SendMessage, WebSearch`))

    expect(agent.tools.allow).toEqual(READ)
    expect(agent.notices.map(({ level, line, message }) => [level, line, message])).toEqual([
      ['warning', 4, 'the tool SendMessage is not available here; it is left out'],
      ['warning', 4, 'the tool WebSearch is not available here; it is left out'],
    ])
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
    expect([all.agents, all.grant]).toEqual([null, null])
    expect(none).toMatchObject({ agents: [], grant: { deny: ['agent:*'] } })
  })
})

describe('permissions only narrow', () => {
  test('Claude: plan forbids changes; what would loosen is ignored and told', async () => {
    const plan = await agentIn('.claude/agents/a.md', markdown(`${named}\npermissionMode: plan`))

    expect(plan.grant).toEqual({ deny: ['exec:*', 'file.delete:**', 'file.write:**'] })
    for (const mode of ['acceptEdits', 'bypassPermissions', 'auto', 'dontAsk', 'nonsense']) {
      const agent = await agentIn('.claude/agents/a.md', markdown(`${named}\npermissionMode: ${mode}`))
      expect([agent.grant, agent.notices.map(({ code }) => code)]).toEqual([null, ['permission']])
    }
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
      'file.read:/workspace/.env',
      'file.read:/workspace/.env/**',
      'net:evil.com',
      'tool:srv__drop',
    ])
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
      model: 'fast',
      grant: { deny: ['exec:*', 'file.delete:**', 'file.write:**'] },
    })
    expect((await codex('workspace-write')).grant).toEqual({ deny: ['net:*'] })
    const full = await codex('danger-full-access')
    expect([full.grant, full.notices.map(({ code }) => code)]).toEqual([null, ['permission']])
    expect(full.instructions).toBe('Do it.\n')
  })

  test.each([
    ['bash: deny', { deny: ['exec:*'] }, 0],
    ['edit: ask', { ask: ['file.delete:**', 'file.write:**'] }, 0],
    [
      'bash: {"*": allow, "rm *": deny, "git push*": ask}',
      { ask: ['exec:git push*'], deny: ['exec:rm', 'exec:rm *'] },
      0,
    ],
    ['bash: {"*": ask, "git status": allow}', { ask: ['exec:*'] }, 1],
    ['bash: {"git *": ask, "git log *": allow}', { ask: ['exec:git', 'exec:git *'] }, 1],
    ['bash: {"rm *": deny, "*": allow}', null, 0],
    ['bash: sometimes', { deny: ['exec:*'] }, 1],
    [
      'edit: {"*": deny, "*.md": allow}',
      { use: expect.arrayContaining(['file.write:/workspace/**/*.md', 'file.read:**']) },
      0,
    ],
    ['task: {"*": deny, "explore-*": allow}', { use: expect.arrayContaining(['agent:explore-*']) }, 0],
    ['my_tool: deny', { deny: ['tool:my_tool'] }, 0],
  ])('opencode: %s', async (permission, grant, warnings) => {
    const agent = await agentIn('.opencode/agent/a.md', markdown(`description: d\npermission:\n  ${permission}`))

    expect(agent.grant).toEqual(grant)
    expect(agent.notices.filter(({ code }) => code === 'permission')).toHaveLength(warnings)
  })

  test('opencode: an allow-list denies what is not on it', async () => {
    const agent = await agentIn(
      '.opencode/agent/a.md',
      markdown('description: d\npermission:\n  bash: {"*": deny, "git *": allow, "git push *": deny, "npm *": ask}'),
    )

    expect(agent.grant?.use).toEqual(expect.arrayContaining(['exec:git', 'exec:git *', 'exec:npm *']))
    expect(agent.grant?.use).not.toContain('exec:*')
    expect(agent.grant).toMatchObject({ ask: ['exec:npm', 'exec:npm *'], deny: ['exec:git push', 'exec:git push *'] })
  })
})

describe('what else files say', () => {
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
      budget: { turns: 7 },
      settings: { reasoning: 'high' },
      skills: ['review', 'deploy'],
      isBackground: true,
      prompt: 'Begin.',
    })
    expect(claude.extensions).toMatchObject([
      { type: 'named', name: 'github' },
      { type: 'stdio', name: 'local', cmd: 'npx', args: ['-y', 'x@1.10'], envs: { MODE: 'a' }, envKeys: ['KEY'] },
    ])
    expect(claude.properties).toEqual({ hooks: { Stop: [] } })
    expect(gemini).toMatchObject({
      title: 'A!',
      budget: { turns: 9, wallMs: 120_000 },
      settings: { temperature: 0.5 },
      extensions: [{ type: 'streamable_http', uri: 'https://x/mcp', headers: { A: 'b' } }],
    })
    expect(opencode).toMatchObject({
      budget: { turns: 3 },
      settings: { topP: 0.9 },
      isHidden: true,
      properties: { textVerbosity: 'low' },
    })
    expect(goose).toMatchObject({ description: 'Agent (m)', provider: 'p', budget: { turns: 4 } })
  })

  test('input, output, grant, budget and briefing mean the same in every dialect', async () => {
    const extras = `input: {type: object, properties: {q: {type: string}}}\noutput: {type: object}\ngrant: {use: ["tool:*", "exec:git *"], deny: ["net:*"]}\nbudget: {turns: 5, usd: 1}\nbriefing: summary`
    for (const place of ['.claude/agents/a.md', '.gemini/agents/a.md', '.legate/agents/a.md', '.cursor/agents/a.md']) {
      expect(await agentIn(place, markdown(`${named}\n${extras}`)), place).toMatchObject({
        input: { type: 'object', properties: { q: { type: 'string' } } },
        output: { type: 'object' },
        grant: { use: ['tool:*', 'exec:git *'], deny: ['net:*'] },
        budget: { turns: 5, usd: 1 },
        briefing: 'summary',
        notices: [],
      })
    }
  })

  test('a grant of its own and the words of its dialect narrow each other', async () => {
    const agent = await agentIn(
      '.claude/agents/a.md',
      markdown(
        `${named}\ntools: Bash(git status), Task\ngrant: {use: ["tool:*", "exec:git *", "file.*:/workspace/**"]}\nmaxTurns: 9\nbudget: {turns: 20}`,
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
    expect(agent.budget).toEqual({ turns: 9 })
  })

  test.each([
    ['grant: {use: ["everything"]}', /must start with one of/],
    ['grant: {allow: []}', /a grant has use, delegate, ask and deny/],
    ['budget: {turns: 0}', /budget\.turns must be a whole number of at least 1/],
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

  test('TOML that is none is refused with its line', async () => {
    expect(await refusalOf(agentIn('.codex/agents/a.toml', 'name = "a"\ndescription = \n'))).toMatchObject({
      problem: expect.stringMatching(/^not valid TOML/),
      line: 2,
    })
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
