import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import {
  type AgentFile,
  convert,
  DIALECTS,
  loadDefinition,
  modelOf,
  readDefinition,
  recipeFileName,
} from 'legate/recipe'
import { describe, expect, test } from 'vitest'
import { folderWith, minimal, recipeFile, refusalOf } from './support/folder.ts'

const CLAUDE = `---
name: reviewer
description: "Reviews: code"
tools: Read, Grep, Bash, mcp__github__get_pr, Task(writer)
model: sonnet
permissionMode: plan
maxTurns: 7
effort: high
mcpServers:
  github: {command: npx, args: [-y, "gh@1.10"], env: {TOKEN: "\${TOKEN}", MODE: fast}}
---

You review.

---

Be kind: always.
`

async function claude(): Promise<AgentFile> {
  const folder = folderWith({ '.claude/agents/reviewer.md': CLAUDE })
  return loadDefinition(path.join(folder, '.claude/agents/reviewer.md'))
}

async function fileIn(place: string, fields: string): Promise<AgentFile> {
  const folder = folderWith({ [place]: `---\nname: a\ndescription: d\n${fields}\n---\n\nDo it.\n` })
  return readDefinition(path.join(folder, place))
}

async function through(agent: AgentFile, dialect: string) {
  const folder = folderWith()
  const converted = await convert(agent, dialect, { folder, lossy: true })
  const file = path.join(folder, converted.path)
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, converted.text)
  return { ...converted, again: await readDefinition(file) }
}

describe('an agent in the words of another program', () => {
  test.each(DIALECTS)(
    '%s: name, description, instructions and model are kept, and it lies where it is looked for',
    async (dialect) => {
      const agent = await claude()
      const { again } = await through(agent, dialect)

      expect(again).toMatchObject({ dialect, name: 'reviewer', description: 'Reviews: code' })
      const isOfOthers = dialect === 'gemini' || dialect === 'codex'
      expect(modelOf(again)).toBe(isOfOthers ? null : 'anthropic/claude-sonnet-5')
      expect(again.instructions.trim()).toBe(agent.instructions)
    },
  )

  test.each([
    ['claude', ['tools', 'grant', 'budget', 'settings', 'extensions', 'agents']],
    ['legate', ['tools', 'grant', 'budget', 'settings', 'extensions']],
    ['opencode', ['tools', 'budget', 'settings']],
    ['gemini', ['budget', 'extensions']],
    ['copilot', ['extensions']],
    ['codex', ['settings', 'extensions']],
    ['recipe', ['budget', 'extensions']],
  ] as const)('%s keeps %j', async (dialect, kept) => {
    const agent = await claude()
    const { again } = await through(agent, dialect)

    for (const part of kept) {
      if (part === 'tools')
        // opencode writes a tool of a server as it writes any other.
        expect([...new Set(again.tools.allow?.map((tool) => tool.replace('__', '_')))].toSorted()).toEqual(
          agent.tools.allow?.map((tool) => tool.replace('__', '_')).toSorted(),
        )
      else expect(again[part], part).toEqual(agent[part])
    }
  })

  test.each([
    ['claude', 'builtin, name: developer', /tools: .*\bRead\b/],
    ['opencode', 'builtin, name: developer', /\bread: /],
    ['opencode', 'stdio, name: s, cmd: npx, args: [x]', /command:\n +- npx\n +- x\n/],
    ['legate', 'stdio, name: s, cmd: npx, args: [x], timeout: 300', /timeout: 300000\n/],
    ['codex', 'stdio, name: s, cmd: npx, args: [x], timeout: 300', /tool_timeout_sec = 300\n/],
  ])('to %s: {type: %s} of a recipe is written whole', async (dialect, extension, words) => {
    const file = recipeFile(`${minimal}instructions: Do it.\nextensions:\n  - {type: ${extension}}\n`)
    const { text, notices } = await through(await readDefinition(file), dialect)

    expect(text).toMatch(words)
    expect(notices.map(({ message }) => message).filter((one) => /read_text_file|extensions/.test(one))).toEqual([])
  })

  test('the order of keys is no loss', async () => {
    const agent = await claude()
    const turned = (value: object) => Object.fromEntries(Object.entries(value).toReversed())
    const extensions = agent.extensions?.map(turned) as unknown as typeof agent.extensions
    const output = turned({ type: 'object', properties: {}, required: [] })

    expect(extensions).not.toHaveLength(0)
    expect((await convert({ ...agent, extensions, output }, 'legate')).notices).toEqual([])
  })

  test('what cannot be said is an error that lists it; with `lossy` each is a warning', async () => {
    const agent = await claude()
    const lost = async (dialect: string) => {
      const { notices } = await convert(agent, dialect, { lossy: true })
      expect(notices.every(({ level }) => level === 'warning')).toBe(true)
      return notices.map(({ message }) => message.replace(/ cannot be said in the dialect \w+$/, ''))
    }
    const list = '`tools`, the list of what it may use,'

    expect(await lost('claude')).toEqual([])
    expect(await lost('legate')).toEqual([])
    expect(await lost('cursor')).toEqual([
      ...['`settings`', '`extensions`', '`budget.modelCalls`', list, 'that only agent:writer may be used'],
    ])
    const refusal = await refusalOf(convert(agent, 'cursor'))
    expect(refusal.notices.map(({ level }) => level)).toEqual(['error', 'error', 'error', 'error', 'error'])
    expect(refusal.notices.at(-1)?.hint).toBe('Use --lossy, or { lossy: true } in code, to write the rest.')
  })

  test('programs that a list of tools is limited to stay limited', async () => {
    const agent = await fileIn('.claude/agents/a.md', 'tools: Bash(npm test:*), Read')
    const asClaude = await convert(agent, 'claude')
    const asOpencode = await convert(agent, 'opencode')

    expect(asClaude.text).toContain('tools: Read, Bash(npm test:*)\n')
    expect(asOpencode.text).toContain(
      'tools:\n  "*": false\n  read: true\n  bash: true\npermission:\n  bash:\n    "*": deny\n    npm test *: allow\n',
    )
    for (const dialect of ['codex', 'cursor', 'gemini', 'copilot', 'goose', 'recipe']) {
      const { notices } = await refusalOf(convert(agent, dialect))
      expect(notices.map(({ message }) => message)).toContain(
        `that only exec:npm test, exec:npm test * may be used cannot be said in the dialect ${dialect}`,
      )
    }
  })

  test.each([
    [
      'disallowedTools: Write, Bash(rm:*)',
      'opencode',
      'tools:\n  write: false\npermission:\n  bash:\n    "*": allow\n',
    ],
    ['disallowedTools: Read(.env)', 'opencode', 'permission:\n  read:\n    "*": allow\n    .env: deny\n'],
    ['permissionMode: plan', 'cursor', 'readonly: true\n'],
    ['permissionMode: plan', 'codex', 'sandbox_mode = "read-only"\n'],
    [
      'tools: Read, WebSearch, Task',
      'opencode',
      'tools:\n  "*": false\n  read: true\n  websearch: true\n  task: true\n',
    ],
    [
      'tools: Read, WebFetch(domain:x.org), NotebookEdit',
      'claude',
      'tools: Read, WebFetch(domain:x.org), NotebookEdit\n',
    ],
    ['tools: Edit(src/**), Write(docs/**)\ncolor: red', 'claude', 'color: red\n'],
    ['tools: []', 'gemini', 'tools: []\n'],
  ])('%s is said in %s', async (fields, dialect, expected) => {
    const { text } = await convert(await fileIn('.claude/agents/a.md', fields), dialect)

    expect(text).toContain(expected)
  })

  test.each([
    ['.claude/agents/a.md', 'tools: Read, Grep', 'copilot', 'the tool search_files'],
    ['.claude/agents/a.md', 'disallowedTools: Write', 'gemini', 'that tool:write_file is forbidden'],
    ['.claude/agents/a.md', 'disallowedTools: Task(x)', 'copilot', 'that agent:x is forbidden'],
    ['.opencode/agent/a.md', 'permission: { edit: ask }', 'claude', 'that file.delete:** is asked for'],
    ['.opencode/agent/a.md', 'permission: { bash: { "rm *": ask } }', 'codex', 'that exec:rm is asked for'],
    ['.legate/agents/a.md', 'tools: [read_text_file]', 'claude', 'the tool read_text_file'],
    ['.legate/agents/a.md', 'tools: [delete_file]', 'claude', 'the tool delete_file'],
    ['.legate/agents/a.md', 'grant: { delegate: ["tool:read_*"] }', 'claude', '`grant.delegate`'],
    ['.legate/agents/a.md', 'grant: { deny: ["model:openai/*"] }', 'claude', 'that model:openai/* is forbidden'],
    ['.legate/agents/a.md', 'budget: { usd: 1 }', 'claude', '`budget.usd`'],
    ['.gemini/agents/a.md', 'mcp_servers: { s: { command: s, includeTools: [a] } }', 'claude', '`extensions`'],
    ['.claude/agents/a.md', `mcpServers: { s: { command: s, env: { A: "\${B}" } } }`, 'codex', '`extensions`'],
    [
      '.claude/agents/a.md',
      `mcpServers: { s: { type: http, url: "https://x.org", headers: { A: "k \${B}" } } }`,
      'codex',
      '`extensions`',
    ],
  ])('%s with `%s` is refused as %s', async (place, fields, dialect, loss) => {
    const { notices } = await refusalOf(convert(await fileIn(place, fields), dialect))

    expect(notices.map(({ message }) => message)).toContain(`${loss} cannot be said in the dialect ${dialect}`)
  })

  test.each([
    ['.claude/agents/a.md', 'model: haiku', 'opencode', 'model: anthropic/claude-haiku-4-5\n'],
    ['.claude/agents/a.md', `mcpServers: { s: { command: s, env: { K: "\${K}" } } }`, 'codex', 'env_vars = [ "K" ]\n'],
    [
      '.claude/agents/a.md',
      `mcpServers: { s: { type: http, url: "https://x.org", headers: { D: e, A: "\${B}", Authorization: "Bearer \${C}" } } }`,
      'codex',
      'bearer_token_env_var = "C"\n\n[mcp_servers.s.http_headers]\nD = "e"\n\n[mcp_servers.s.env_http_headers]\nA = "B"\n',
    ],
    ['.claude/agents/a.md', 'model: haiku', 'claude', 'model: haiku\n'],
    ['.claude/agents/a.md', 'model: opus', 'copilot', 'model: claude-opus-5\n'],
    ['.claude/agents/a.md', 'model: opus', 'goose', 'model: claude-opus-5\nprovider: anthropic\n'],
    ['.claude/agents/a.md', 'model: opus', 'recipe', 'goose_provider: anthropic\n  goose_model: claude-opus-5\n'],
    ['.opencode/agent/a.md', 'model: anthropic/claude-x', 'claude', 'model: claude-x\n'],
    ['.opencode/agent/a.md', 'model: openai/gpt-5', 'codex', 'model = "gpt-5"\n'],
    ['.gemini/agents/a.md', 'model: flash', 'opencode', 'model: google/gemini-3.5-flash\n'],
    ['.cursor/agents/a.md', 'model: fast', 'cursor', 'model: fast\n'],
    ['.claude/agents/a.md', 'mcpServers: [github]', 'claude', 'mcpServers:\n  - github\n'],
    [
      '.claude/agents/a.md',
      'mcpServers: [github, {s: {command: x}}]',
      'legate',
      'mcpServers:\n  - github\n  - s:\n      command: x\n',
    ],
    ['.claude/agents/a.md', 'permissionMode: dontAsk', 'claude', 'permissionMode: dontAsk\n'],
    ['.claude/agents/a.md', 'permissionMode: dontAsk', 'legate', 'neverAsks: true\n'],
    ['.opencode/agent/a.md', 'disable: true', 'legate', 'disable: true\n'],
    ['.claude/agents/a.md', 'tools: Read(src/**), Glob', 'claude', 'tools: Read(src/**), Glob\n'],
    ['.claude/agents/a.md', 'tools: Grep(src/**)', 'claude', 'tools: Grep(src/**)\n'],
    ['.claude/agents/a.md', 'disallowedTools: Write, Edit', 'claude', 'disallowedTools: Write, Edit\n'],
  ])('%s with `%s` as %s has %j', async (place, fields, dialect, expected) => {
    expect((await convert(await fileIn(place, fields), dialect)).text).toContain(expected)
  })

  test.each([
    ['.claude/agents/a.md', 'model: sonnet', 'codex', '`model`', /^model/m],
    ['.claude/agents/a.md', 'model: nobody-knows', 'opencode', '`model`', /^model/m],
    ['.claude/agents/a.md', 'mcpServers: [github]', 'copilot', '`extensions`', /github/],
    ['.claude/agents/a.md', 'mcpServers: [github]', 'gemini', '`extensions`', /github/],
    ['.claude/agents/a.md', 'mcpServers: [github]', 'recipe', '`extensions`', /github/],
    ['.claude/agents/a.md', 'permissionMode: dontAsk', 'opencode', 'that what would be asked for is denied', /dontAsk/],
    ['.opencode/agent/a.md', 'disable: true', 'claude', 'that it is switched off', /disable/],
    ['.opencode/agent/a.md', 'disable: true', 'recipe', 'that it is switched off', /disable/],
    ['.legate/agents/a.md', 'sandbox: workspace-write', 'claude', 'that programs are fenced in', /sandbox/],
  ])('%s with `%s` is not as if it were said in %s: %s', async (place, fields, dialect, loss, left) => {
    const agent = await fileIn(place, fields)
    const { notices } = await refusalOf(convert(agent, dialect))

    expect(notices.map(({ message }) => message)).toContain(`${loss} cannot be said in the dialect ${dialect}`)
    expect((await convert(agent, dialect, { lossy: true })).text).not.toMatch(left)
  })

  test('what Codex fences is a loss elsewhere, and stays as it was in Codex', async () => {
    const text = `name = "a"\ndescription = "d"\nsandbox_mode = "workspace-write"\ndeveloper_instructions = "Do it."\n`
    const folder = folderWith({ '.codex/agents/a.toml': `${text}\n[sandbox_workspace_write]\nnetwork_access = true\n` })
    const agent = await loadDefinition(path.join(folder, '.codex/agents/a.toml'))

    const again = await convert(agent, 'codex')
    expect(again.text).toMatch(
      /sandbox_mode = "workspace-write"[\s\S]*\[sandbox_workspace_write\]\nnetwork_access = true/,
    )
    for (const dialect of ['claude', 'opencode', 'gemini', 'copilot', 'cursor', 'goose', 'recipe']) {
      const { notices } = await refusalOf(convert(agent, dialect))
      expect(notices.map(({ message }) => message)).toContain(
        `that programs are fenced in cannot be said in the dialect ${dialect}`,
      )
    }
  })

  test('a recipe keeps its author and its activities, and another dialect tells that they are left out', async () => {
    const text = `${minimal}prompt: p\nauthor: { contact: ada, metadata: x }\nactivities: [one, two]\n`
    const agent = await readDefinition(recipeFile(text))
    const again = (await through(agent, 'recipe')).text

    expect(again).toContain('activities:\n  - one\n  - two\nauthor:\n  contact: ada\n  metadata: x\n')
    expect((await convert(agent, 'claude')).notices.map(({ message }) => message)).toEqual([
      '`author` is left out',
      '`activities` is left out',
    ])
  })

  test('a recipe keeps its templates; as an agent file its prompt is below its instructions', async () => {
    const text = `${minimal}instructions: I {{ a }}\nprompt: |\n  {% if a %}\n  Do {{ a }}\n  {% endif %}\nparameters:\n  - {key: a, input_type: number, requirement: optional, description: d, default: 1.10}\nsettings: {goose_model: m, max_turns: 3}\nretry: {max_retries: 2, checks: [{type: shell, command: "true"}]}\n`
    const agent = await readDefinition(recipeFile(text))
    const recipe = await through(agent, 'recipe')
    const markdown = await through(agent, 'claude')

    const lineless = ({ parameters, ...rest }: AgentFile) => ({
      ...rest,
      file: '',
      name: '',
      notices: [],
      parameters: parameters.map((one) => ({ ...one, line: null })),
    })
    expect(lineless(recipe.again)).toEqual(lineless(agent))
    expect(markdown.again.instructions).toBe('I {{ a }}\n\n{% if a %}\nDo {{ a }}\n{% endif %}')
    expect(markdown.notices.map(({ message }) => /`([\w.]+)`/.exec(message)?.[1])).toEqual([
      'model',
      'retry',
      'parameters',
    ])
  })

  test.each([
    'Write {{ name }} as text.',
    '{% raw %} begins what never ends',
    '{% raw %}{{ a }}{% endraw %} {# b #}',
    '  {%- if x -%}\n{{ "{%" }}',
    '{{{ }}}',
  ])('braces of an agent file are no template when it becomes a recipe: %j', async (words) => {
    const said = JSON.stringify(words)
    const agent = await fileIn(
      '.claude/agents/a.md',
      `initialPrompt: ${said}\nmcpServers: {s: {command: x, args: [${said}]}}`,
    )
    const braced = { ...agent, instructions: words, description: words }
    const { text } = await convert(braced, 'recipe')
    const again = await loadDefinition(path.join(folderWith({ 'a.yaml': text }), 'a.yaml'))

    expect(again).toMatchObject({ instructions: words, description: words, prompt: words })
    expect(again.extensions).toEqual(agent.extensions)
  })

  test('names of files are made of titles', () => {
    expect(recipeFileName('My Recipe! (v2)')).toBe('my-recipe-v2.yaml')
    expect(recipeFileName('***')).toBe('untitled-recipe.yaml')
    expect(recipeFileName('A b', new Set(['a-b.yaml', 'a-b-1.yaml']))).toBe('a-b-2.yaml')
  })
})
