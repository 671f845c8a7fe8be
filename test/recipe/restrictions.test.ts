import { linkSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createRuntime } from 'legate'
import { type AgentFile, convert, loadAgentFile, loadDefinition, loadRecipe, recipeAgent } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { diskFiles } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { discoverSkills, readSkillFile } from '../../src/recipes/discovery/skills.ts'
import { folderWith } from './support/folder.ts'

const CLAUDE = '.claude/agents/a.md'
const OPENCODE = '.opencode/agent/a.md'
const GEMINI = '.gemini/agents/a.md'
const LEGATE = '.legate/agents/a.md'
const EVERYTHING = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']

async function agentIn(place: string, fields: string): Promise<AgentFile> {
  const text = `---\nname: a\ndescription: d\n${fields}\n---\n\nDo it.\n`
  return loadAgentFile(path.join(folderWith({ [place]: text }), place))
}

/** What is decided of a request where all else allows everything. */
async function verdictOf(file: AgentFile, request: string): Promise<string> {
  await using runtime = createRuntime()
  return (await runtime.explain(await recipeAgent(file, { grant: { use: EVERYTHING } }), request)).verdict
}

const warnings = ({ notices }: AgentFile) =>
  notices.filter(({ level }) => level === 'warning').map(({ message }) => message)

describe('a restriction that can be said here is kept to the letter', () => {
  test.each([
    [CLAUDE, 'disallowedTools: [Read(sec/)]', 'file.read:/workspace/sec/r.txt', 'file.read:/workspace/pub/r.txt'],
    [CLAUDE, 'disallowedTools: [Read(sec/)]', 'file.read:/workspace/a/sec/r.txt', 'file.read:/workspace/sect'],
    [CLAUDE, 'disallowedTools: [Edit(sec/)]', 'file.write:/workspace/sec/r.txt', 'file.write:/workspace/r.txt'],
    [CLAUDE, 'disallowedTools: [Edit(sec/)]', 'file.delete:/workspace/sec', 'file.read:/workspace/sec'],
    [CLAUDE, 'disallowedTools: ["Read(sec//x/./y)"]', 'file.read:/workspace/sec/x/y', 'file.read:/workspace/sec/x'],
    [CLAUDE, 'disallowedTools: [\'Read("sec/**")\']', 'file.read:/workspace/sec/x', 'file.read:/workspace/a'],
    [CLAUDE, 'disallowedTools: ["Read({sec,pub}/**)"]', 'file.read:/workspace/pub/x', 'file.read:/workspace/a/x'],
    [CLAUDE, 'disallowedTools: ["Read(.env*)"]', 'file.read:/workspace/.env.local', 'file.read:/workspace/env'],
    [CLAUDE, 'disallowedTools: ["Read(.env*)"]', 'file.read:/workspace/a/.env', 'file.read:/workspace/a/x.env'],
    [
      CLAUDE,
      'disallowedTools: ["Read(secrets*)"]',
      'file.read:/workspace/secrets/x/y',
      'file.read:/workspace/my-secrets',
    ],
    [CLAUDE, 'disallowedTools: ["Read(a*.txt)"]', 'file.read:/workspace/x/ab.txt', 'file.read:/workspace/b.txt'],
    [CLAUDE, 'disallowedTools: ["Read(a*.txt)"]', 'file.read:/workspace/ab/c/d.txt', 'file.read:/workspace/ab/c/d.md'],
    [CLAUDE, 'disallowedTools: ["Read(**/.env*)"]', 'file.read:/workspace/a/b/.env1', 'file.read:/workspace/a/b/env'],
    [CLAUDE, 'disallowedTools: ["Edit(.env*)"]', 'file.write:/workspace/.env.x', 'file.write:/workspace/x'],
    [
      CLAUDE,
      'disallowedTools: ["Read(config/*.env)"]',
      'file.read:/workspace/config/a.env',
      'file.read:/workspace/config/a.txt',
    ],
    [CLAUDE, 'disallowedTools: ["Read(*secret*)"]', 'file.read:/workspace/a/my-secret-b/c', 'file.read:/workspace/a/b'],
    [CLAUDE, 'disallowedTools: ["Read(a/*/b*c)"]', 'file.read:/workspace/a/x/bc', 'file.read:/workspace/a/x/c'],
    [
      OPENCODE,
      'permission: { read: { ".env*": deny } }',
      'file.read:/workspace/.env.local',
      'file.read:/workspace/env',
    ],
    [CLAUDE, 'disallowedTools: "Bash(touch: *)"', 'exec:touch x', 'exec:ls x'],
    [CLAUDE, 'disallowedTools: "WebFetch(Domain: evil.com)"', 'net:evil.com', 'net:good.com'],
    [CLAUDE, 'disallowedTools: ["Write, Edit"]', 'file.write:/workspace/a', 'file.read:/workspace/a'],
    [OPENCODE, 'permission: { read: { "sec/": deny } }', 'file.read:/workspace/sec/x', 'file.read:/workspace/a'],
    [
      OPENCODE,
      'permission: { edit: { "{sec,pub}/**": deny } }',
      'file.write:/workspace/sec/x',
      'file.write:/workspace/a',
    ],
    [
      OPENCODE,
      'permission: { edit: { "{a,b}/**": deny } }',
      'file.write:/workspace/{a,b}/x',
      'file.write:/workspace/c',
    ],
  ])('%s: `%s` forbids %s and leaves %s', async (place, fields, out, open) => {
    const agent = await agentIn(place, fields)

    expect(warnings(agent)).toEqual([])
    expect([await verdictOf(agent, out), await verdictOf(agent, open)]).toEqual(['deny', 'allow'])
  })
})

describe('a restriction that is not understood in full forbids more, with a warning', () => {
  test.each([
    [CLAUDE, 'disallowedTools: ["Read(sec/?.txt)"]', 'file.read:/workspace/sec/r.txt'],
    [CLAUDE, 'disallowedTools: ["Read(sec/[rst].txt)"]', 'file.read:/workspace/sec/r.txt'],
    [CLAUDE, 'disallowedTools: ["Edit(s?c/r.txt)"]', 'file.write:/workspace/sec/r.txt'],
    [CLAUDE, 'disallowedTools: ["Read({sec,{a,b}}/**)"]', 'file.read:/workspace/sec/r.txt'],
    [CLAUDE, 'disallowedTools: ["Read(x/../sec/**)"]', 'file.read:/workspace/sec/r.txt'],
    [CLAUDE, 'disallowedTools: ["Read(!pub/**)"]', 'file.read:/workspace/sec/r.txt'],
    [CLAUDE, "disallowedTools: ['Read(sec\\*/x)']", 'file.read:/workspace/sec*/x'],
    [CLAUDE, 'disallowedTools: ["Read(sec/a*b*c*d*e)"]', 'file.read:/workspace/sec/r.txt'],
    [CLAUDE, 'disallowedTools: ["Read(sec/**, pub/**)"]', 'file.read:/workspace/pub/r.txt'],
    [CLAUDE, 'disallowedTools: "Bash(touch:*"', 'tool:shell'],
    [CLAUDE, 'disallowedTools: "Bash(touch:*, Write, Edit"', 'file.write:/workspace/a'],
    [CLAUDE, 'disallowedTools: "Bash(touch:*, Write"', 'tool:shell'],
    [CLAUDE, 'disallowedTools: ["Bash[touch]"]', 'tool:shell'],
    [CLAUDE, 'disallowedTools: ["Bash(rm:*, mv:*)"]', 'exec:mv a b'],
    [CLAUDE, 'disallowedTools: ["Bash(touc? x)"]', 'exec:touch x'],
    [CLAUDE, `disallowedTools: ['Bash(echo "?")']`, 'exec:echo a'],
    [CLAUDE, 'disallowedTools: [Bash(git: push)]', 'tool:shell'],
    [CLAUDE, 'disallowedTools: [Skill(deploy)]', 'tool:skills_load'],
    [CLAUDE, 'disallowedTools: ["mcp__srv__do(x"]', 'tool:srv__do'],
    [CLAUDE, 'disallowedTools: ["Task(rev"]', 'agent:reviewer'],
    [CLAUDE, 'disallowedTools: ["WebFetch(domain:evil.co?)"]', 'net:evil.com'],
    [CLAUDE, 'disallowedTools: ["WebFetch(host:evil.com)"]', 'net:evil.com'],
    [CLAUDE, 'disallowedTools: { Write: true, Edit: true, Bash: false }', 'file.write:/workspace/a'],
    [CLAUDE, 'disallowedTools: Wirte, Edit', 'tool:write_file'],
    [OPENCODE, 'permission: { read: { "sec/?.txt": deny } }', 'file.read:/workspace/sec/r.txt'],
    [OPENCODE, 'permission: { bash: { "touc? *": deny } }', 'exec:touch x'],
    [OPENCODE, 'permission: { task: { "rev?ewer": deny } }', 'agent:reviewer'],
    [OPENCODE, 'permission: [ { edit: deny } ]', 'file.write:/workspace/a'],
    [OPENCODE, 'permission: [ { edit: allow }, { edit: deny } ]', 'file.write:/workspace/a'],
    [OPENCODE, 'permission: [ edit ]', 'file.write:/workspace/a'],
    ['.legate/agents/a.md', 'disallowedTools: { write_file: true }', 'tool:write_file'],
  ])('%s: `%s` forbids %s', async (place, fields, request) => {
    const agent = await agentIn(place, fields)

    expect(await verdictOf(agent, request)).toBe('deny')
    expect(warnings(agent)).not.toEqual([])
  })

  const READING = 'tool:read_text_file'
  test.each([
    ['Bash Write Edit', ['tool:shell', 'tool:write_file', 'tool:edit_file', 'file.write:/workspace/a'], READING],
    ['Bash/Write', ['tool:shell', 'tool:write_file'], READING],
    ['Bash;Write', ['tool:shell', 'tool:write_file'], READING],
    ['Bash|Write', ['tool:shell', 'tool:write_file'], READING],
    ['Bash & Write', ['tool:shell', 'tool:write_file'], READING],
    ['Bash+Write', ['tool:shell', 'tool:write_file'], READING],
    ['Bash and the WRITE tool', ['tool:shell', 'tool:write_file'], READING],
    ['Bash:Write', ['tool:shell', 'tool:write_file'], READING],
    ['Bash_Write', ['tool:shell', 'tool:write_file'], READING],
    ['BashWrite', ['tool:shell', 'tool:write_file'], READING],
    ['Bash Wirte', ['tool:shell', 'tool:write_file'], READING],
    ['Bash(rm:*) Write', ['tool:shell', 'tool:write_file'], READING],
    ['Bash(rm:*) Write(x)', ['tool:shell', 'tool:write_file'], READING],
    ['Bash(rm:* Write', ['tool:shell', 'tool:write_file'], READING],
    ['{ Bash: Write }', ['tool:shell', 'tool:write_file'], READING],
    ['Bash Task', ['tool:shell', 'agent:reviewer'], READING],
    ['mcp__srv__do mcp__srv__go', ['tool:srv__do', 'tool:srv__go'], READING],
  ])('`disallowedTools: %s` forbids each tool in it', async (list, forbidden, open) => {
    const agent = await agentIn(CLAUDE, `disallowedTools: ${list}`)

    for (const request of forbidden) expect([request, await verdictOf(agent, request)]).toEqual([request, 'deny'])
    expect(await verdictOf(agent, open)).toBe('allow')
    expect(warnings(agent)).not.toEqual([])
  })

  test.each([
    ['all', 'all'],
    ['all tools', 'all'],
    ['Bash frobnicate', 'frobnicate'],
    ['Bash(x) frobnicate', 'frobnicate'],
  ])('`disallowedTools: %s` forbids everything, because nobody knows %s', async (list, word) => {
    const agent = await agentIn(CLAUDE, `disallowedTools: ${list}`)

    for (const request of ['tool:x', 'tool:srv__do', 'agent:b', 'exec:ls', 'net:x.org', 'file.read:/workspace/a']) {
      expect([request, await verdictOf(agent, request)]).toEqual([request, 'deny'])
    }
    expect(warnings(agent)).toEqual([
      `${word} in \`${list}\` names no tool that is known here, so every tool is forbidden`,
    ])
  })

  test.each(['my_host_tool', 'github/list_issues', 'mcp__read__write', 'read-only-query'])(
    '`disallowedTools: %s` forbids one tool, which a host or a server may have',
    async (name) => {
      const agent = await agentIn(CLAUDE, `disallowedTools: ${name}`)

      expect([await verdictOf(agent, READING), await verdictOf(agent, 'tool:shell')]).toEqual(['allow', 'allow'])
    },
  )

  test('stars in a word forbid every tool that is meant', async () => {
    const agent = await agentIn(CLAUDE, 'disallowedTools: ["Web*"]')

    expect([await verdictOf(agent, 'tool:web_fetch'), await verdictOf(agent, 'tool:read_text_file')]).toEqual([
      'deny',
      'allow',
    ])
  })

  test('the file is not read in a run', async () => {
    const folder = folderWith({
      [CLAUDE]: '---\nname: a\ndescription: d\ntools: Read\ndisallowedTools: ["Read(sec/?.txt)"]\n---\n\nDo it.\n',
      'sec/r.txt': 'the secret',
      'pub.txt': 'for all',
    })
    const read = (file: string) => ({ name: 'read_text_file', input: { path: file } })
    const model = scriptedModel([{ calls: [read('sec/r.txt'), read('pub.txt')] }, { text: 'done' }])
    await using runtime = createRuntime({ model, files: diskFiles({ workspace: folder }) })
    const agent = await recipeAgent(path.join(folder, CLAUDE), { grant: { use: EVERYTHING }, cwd: folder })
    await runtime.run(agent, 'go').result

    const said = JSON.stringify(model.requests.at(-1)?.messages)
    expect(said).toContain('for all')
    expect(said).not.toContain('the secret')
  })
})

describe('a key that is nearly one that restricts is taken as meant, with a warning', () => {
  test.each([
    [
      CLAUDE,
      'disallowed-tools: Write, Edit',
      'file.write:/workspace/a',
      '`disallowed-tools` is read as `disallowedTools`',
    ],
    [
      CLAUDE,
      'disallowedtools: Write, Edit',
      'file.write:/workspace/a',
      '`disallowedtools` is read as `disallowedTools`',
    ],
    [
      CLAUDE,
      'dissallowedTools: Write, Edit',
      'file.write:/workspace/a',
      '`dissallowedTools` is read as `disallowedTools`',
    ],
    [CLAUDE, 'permission_mode: plan', 'file.write:/workspace/a', '`permission_mode` is read as `permissionMode`'],
    [OPENCODE, 'permision: { edit: deny }', 'file.write:/workspace/a', '`permision` is read as `permission`'],
    [OPENCODE, 'permisions: { edit: deny }', 'file.write:/workspace/a', '`permisions` is read as `permissions`'],
    ['.cursor/agents/a.md', 'read_only: true', 'file.write:/workspace/a', '`read_only` is read as `readonly`'],
    [CLAUDE, 'grants: { deny: ["exec:*"] }', 'exec:ls', '`grants` is read as `grant`'],
    [
      CLAUDE,
      '<<: { disallowedTools: "Write, Edit" }',
      'file.write:/workspace/a',
      '`<<` is read as the keys that it brings in',
    ],
    [
      OPENCODE,
      'permission: { <<: [{ edit: deny }, { edit: allow }], bash: allow }',
      'file.write:/workspace/a',
      '`<<` is read as the keys that it brings in',
    ],
  ])('%s: `%s` forbids %s', async (place, fields, request, told) => {
    const agent = await agentIn(place, fields)

    expect(await verdictOf(agent, request)).toBe('deny')
    expect(warnings(agent)).toEqual([told])
  })

  test.each(['hook', 'Hooks', 'hookz'])('`%s` is a guard as `hooks` is', async (key) => {
    const agent = await agentIn(CLAUDE, `${key}: { PreToolUse: [{ hooks: [{ type: command, command: ./guard.sh }] }] }`)

    expect(agent.hooks).toMatchObject([{ event: 'PreToolUse', command: './guard.sh' }])
    expect(warnings(agent)).toEqual([`\`${key}\` is read as \`hooks\``])
  })

  test('what only looks like it is not taken, and what stands there wins', async () => {
    const goals = await agentIn(CLAUDE, 'goals: ship it\nhooks: {}')
    const both = await agentIn(CLAUDE, 'disallowedTools: Write\ndisallowed_tools: Edit')
    const own = await agentIn(CLAUDE, '<<: { permissionMode: plan }\npermissionMode: default')

    expect([goals.tools.allow, goals.grant]).toEqual([null, null])
    expect(both.notices).toMatchObject([{ level: 'warning', code: 'unknown_key', line: 5 }])
    expect(own.grant).toBeNull()
  })

  test.each([
    ['include_tools: [echo]', { availableTools: ['echo'] }],
    ['exclude_tools: [pid]', { excludedTools: ['pid'] }],
    ['Exclude-Tools: [pid]', { excludedTools: ['pid'] }],
    ['Enabled: false', { excludedTools: ['*'] }],
  ])('a server with `%s`', async (more, expected) => {
    const agent = await agentIn(GEMINI, `mcp_servers: { srv: { command: node, ${more} } }`)

    expect(agent.extensions).toMatchObject([expected])
    expect(warnings(agent)).toEqual([expect.stringMatching(/^`mcp_servers\.srv\.\S+` is read as `/)])
  })
})

describe('a recipe obeys what restricts it', () => {
  const recipeWith = (more: string): Promise<AgentFile> => {
    const text = `title: T\ndescription: d\nprompt: Do it.\n${more}\n`
    return loadDefinition(path.join(folderWith({ 'r.yaml': text }), 'r.yaml'))
  }

  test.each(['grant', 'grnat', 'Grant'])('`%s` narrows what it may do', async (key) => {
    const file = await recipeWith(`${key}: {deny: ["file.read:/workspace/secret.txt"]}`)

    expect(await verdictOf(file, 'file.read:/workspace/secret.txt')).toBe('deny')
    expect(await verdictOf(file, 'file.read:/workspace/other.txt')).toBe('allow')
    expect(warnings(file)).toEqual(key === 'grant' ? [] : [`\`${key}\` is read as \`grant\``])
  })

  test('the budget of a recipe ends a run, and the smaller number of `budget` and `max_turns` counts', async () => {
    const file = await recipeWith('budget: {toolCalls: 9, modelCalls: 1}\nsettings: {maxTurns: 3}\nextensions: []')
    const call = { calls: [{ name: 'none', input: {} }] }
    const model = scriptedModel([call, call, call, 'done'])
    await using runtime = createRuntime({ model })
    const { status } = await runtime.run(await recipeAgent(file), undefined).result

    expect(file.budget).toEqual({ toolCalls: 9, modelCalls: 1 })
    expect(warnings(file)).toEqual(['`settings.maxTurns` is read as `max_turns`'])
    expect([status, model.requests.length]).toEqual(['max_turns', 2])
  })

  test('`neverAsks` and `disable` count too; a grant that makes no sense refuses the file', async () => {
    expect((await recipeWith('neverAsks: true')).neverAsks).toBe(true)
    await expect(recipeWith('disable: true')).rejects.toThrow('switched off')
    await expect(recipeWith('grant: {deny: [file]}')).rejects.toThrow('grant')
    await expect(recipeWith('budget: {usd: lots}')).rejects.toThrow('budget')
  })

  test('a misspelt list of tools is obeyed; restrictions of other dialects are told', async () => {
    const file = await recipeWith(
      'disallowedTools: Read\navailabel_tools: [a]\nextensions:\n  - {type: builtin, name: developer, availabel_tools: [shell], excludeTools: [x]}',
    )

    expect(file.extensions).toMatchObject([{ availableTools: ['shell'] }])
    expect(warnings(file)).toEqual([
      'unknown key `disallowedTools`',
      'unknown key `availabel_tools`',
      '`extensions[0].availabel_tools` is read as `available_tools`',
      'unknown key `extensions[0].excludeTools`',
    ])
  })

  test('converting keeps them in a recipe, and tells their loss elsewhere', async () => {
    const file = await recipeWith('grant: {deny: ["exec:*"]}\nbudget: {usd: 0.5}')
    const again = await convert(file, 'recipe')

    expect(again.text).toContain('exec:*')
    expect(again.text).toContain('usd: 0.5')
    await expect(convert(file, 'gemini')).rejects.toThrow('`budget.usd` cannot be said')
  })
})

describe('the sandbox of our own files', () => {
  test.each(['sandbox: read-only', 'sandbox: readonly', 'sandbox: strict', 'sandbx: read-only'])('%s', async (said) => {
    const file = await agentIn(LEGATE, said)
    expect(await verdictOf(file, 'exec:ls')).toBe('deny')
    expect(await verdictOf(file, 'file.write:/workspace/a')).toBe('deny')
    expect(await verdictOf(file, 'net:example.com')).toBe('deny')
    expect(await verdictOf(file, 'file.read:/workspace/a')).toBe('allow')
    expect(warnings(file).join()).toMatch(/read-only/)
  })
  test('workspace-write takes no host away', async () => {
    const file = await agentIn(LEGATE, 'sandbox: workspace-write')
    expect(await verdictOf(file, 'net:example.com')).toBe('allow')
    expect(warnings(file).join()).toMatch(/cannot be fenced/)
  })
})

test('a list of too many words is refused by its own name', async () => {
  const words = Array.from({ length: 501 }, (_, at) => `w${at}`).join()
  await expect(agentIn(CLAUDE, `disallowedTools: "${words}"`)).rejects.toThrow(
    /`disallowedTools` has 501 different words/,
  )
  await expect(agentIn(CLAUDE, `tools: "${words}"`)).rejects.toThrow(/`tools` has 501 different words/)
  expect((await agentIn(CLAUDE, `tools: "${'Read,'.repeat(501)}"`)).tools.allow).toContain('read_text_file')
})

test('a file of too many keys is refused', async () => {
  const keys = Array.from({ length: 500 }, (_, at) => `k${at}: 1`).join('\n')
  await expect(agentIn(CLAUDE, keys)).rejects.toThrow(/there are 502 keys/)
})

describe('a file rule that can never match', () => {
  test.each([
    ['sec/**', 'allow'],
    ['/workspace/sec/', 'allow'],
    ['/workspace//sec/**', 'allow'],
    ['/workspace/./sec/**', 'allow'],
    ['./sec', 'allow'],
    ['sec/', 'allow'],
    ['sec', 'deny'],
    ['*', 'deny'],
    ['/workspace/se?/**', 'deny'],
    ['{sec,x}/**', 'allow'],
    ['\\\\sec', 'deny'],
    ['/workspace/a/../sec/**', 'deny'],
  ])('%s is read as it was meant, or forbids more', async (pattern, other) => {
    const file = await agentIn(CLAUDE, `grant: { deny: ["file.read:${pattern}"] }`)
    expect(await verdictOf(file, 'file.read:/workspace/sec/s.txt')).toBe('deny')
    expect(await verdictOf(file, 'file.read:/workspace/pub/s.txt')).toBe(other)
    expect(warnings(file).join()).toMatch(/can never match.*it is taken as/)
  })
  test('a choice in braces is read as each of its paths', async () => {
    const file = await agentIn(CLAUDE, 'grant: { deny: ["file.read:/workspace/{sec,x}/**"] }')
    expect(await verdictOf(file, 'file.read:/workspace/sec/s.txt')).toBe('deny')
    expect(await verdictOf(file, 'file.read:/workspace/x/s.txt')).toBe('deny')
    expect(await verdictOf(file, 'file.read:/workspace/pub/s.txt')).toBe('allow')
    expect(warnings(file).join()).toMatch(/rules know no \{a,b\}/)
  })
  test('allows nothing, with a warning', async () => {
    const file = await agentIn(CLAUDE, 'grant: { use: ["tool:*", "file.read:pub/**"] }')
    expect(await verdictOf(file, 'file.read:/workspace/pub/a')).toBe('deny')
    expect(warnings(file).join()).toMatch(/write file\.read:\/workspace\/pub\/\*\*; it allows nothing/)
  })
})

describe('a misspelt permission of opencode', () => {
  test('counts as the key', async () => {
    const file = await agentIn(OPENCODE, 'permission: { edits: deny }')
    expect(await verdictOf(file, 'file.write:/workspace/a')).toBe('deny')
    expect(warnings(file).join()).toMatch(/`permission.edits` is read as `permission.edit`/)
  })
  test('takes nothing back from a star', async () => {
    const file = await agentIn(OPENCODE, 'permission: { "*": deny, edits: allow }')
    expect(await verdictOf(file, 'file.write:/workspace/a')).toBe('deny')
  })
})

test('a recipe includes no file with a second name', async () => {
  const folder = folderWith({
    's.txt': 'OUTSIDE',
    'p/r.yaml': 'title: t\ndescription: d\nprompt: \'{% include "h.txt" %}\'\n',
  })
  linkSync(path.join(folder, 's.txt'), path.join(folder, 'p/h.txt'))
  await expect(loadRecipe(path.join(folder, 'p/r.yaml'), {})).rejects.toThrow(/second name \(a hard link\)/)
})

test('a skill shows no file with a second name', async () => {
  const folder = folderWith({ 's.txt': 'OUTSIDE' })
  const place = path.join(folder, '.claude/skills/good')
  mkdirSync(place, { recursive: true })
  writeFileSync(path.join(place, 'SKILL.md'), '---\nname: good\ndescription: d\n---\nx')
  linkSync(path.join(folder, 's.txt'), path.join(place, 'h.txt'))
  const { skills } = await discoverSkills({ cwd: folder })
  const [skill] = skills.filter(({ name }) => name === 'good')
  if (skill === undefined) throw new Error('there is no skill')
  await expect(readSkillFile(skill, 'h.txt')).rejects.toThrow(/second name \(a hard link\)/)
})

test('a file of too many servers is refused', async () => {
  const servers = Array.from({ length: 501 }, (_, at) => `  s${at}: { command: c }`).join('\n')
  await expect(agentIn(CLAUDE, `mcpServers:\n${servers}`)).rejects.toThrow(/there are 501 servers/)
})
