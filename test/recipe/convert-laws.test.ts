import { readdirSync } from 'node:fs'
import path from 'node:path'
import fc from 'fast-check'
import { createRuntime } from 'legate'
import {
  type AgentFile,
  convert,
  DIALECTS,
  EMPTY_AGENT_FILE,
  loadAgentFile,
  loadDefinition,
  noticesOf,
  readDefinition,
  recipeAgent,
} from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { corpus, skipWithoutCorpus } from './support/corpus.ts'
import { folderWith } from './support/folder.ts'

const IS_FULL = process.env['LEGATE_FULL'] === '1'
const FILES = IS_FULL ? 400 : 15

const TOOLS = [
  ...['read_text_file', 'read_multiple_files', 'get_file_info', 'write_file', 'edit_file', 'delete_file', 'shell'],
  ...['search_files', 'search_text', 'list_directory', 'list_directory_with_sizes', 'tree', 'todo_write', 'todo_read'],
  ...['skills_load', 'memory_remember', 'memory_forget', 'web_fetch', 'web_search', 'NotebookEdit', 'srv__do'],
  ...['srv__drop', 'other__do', 'my-tool', 'subagent'],
]
const PATHS = [
  '/workspace/a',
  '/workspace/src/a.ts',
  '/workspace/src/deep/b.md',
  '/workspace/.env',
  '/workspace/x/.env',
]
const PROGRAMS = [
  ...['npm test', 'npm test --watch', 'npm install', 'npm', 'git', 'git status', 'git push', 'git push -f', 'rm x'],
  ...['rm', 'gitk', "sh -c 'npm test; rm x'", 'node server.js', 'srv'],
]
const HOSTS = ['example.com', 'api.example.com', 'evil.test']
const REQUESTS = [
  ...TOOLS.map((name) => `tool:${name}`),
  ...['list', 'read', 'write', 'delete'].flatMap((act) => PATHS.map((place) => `file.${act}:${place}`)),
  ...PROGRAMS.map((line) => `exec:${line}`),
  ...HOSTS.map((host) => `net:${host}`),
  ...['agent:reviewer', 'agent:writer', 'model:openai/gpt-5', 'secret:GITHUB_PAT', 'secret:OPENAI_API_KEY'],
]

const EVERYTHING = { use: ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*', 'secret:*'] }
const STRICTNESS = { allow: 0, ask: 1, deny: 2 }

const runtime = createRuntime({ model: scriptedModel([]) })
afterAll(() => runtime.close())

/** What an agent of this file may do of all requests, as it is decided when it runs with nothing else to bind it. */
async function verdictsOf(file: AgentFile): Promise<readonly number[]> {
  const agent = await recipeAgent({ ...file, skills: [] }, { grant: EVERYTHING, model: 'openai/gpt-5' })
  const verdictOf = async (request: string) => STRICTNESS[(await runtime.explain(agent, request)).verdict]
  return Promise.all(REQUESTS.map(verdictOf))
}

/** Requests that were decided more strictly before. */
async function wider(were: readonly number[], after: AgentFile): Promise<readonly string[]> {
  const are = await verdictsOf(after)
  return REQUESTS.filter((_, at) => (are[at] ?? 0) < (were[at] ?? 0))
}

/** The file in the words of another program, read again; undefined where it is refused. */
async function through(agent: AgentFile, dialect: string, lossy: boolean) {
  try {
    const { text, path: place, notices } = await convert(agent, dialect, { lossy })
    const file = path.join(folderWith({ [place]: text }), place)
    if (dialect === 'recipe')
      return { again: await (agent.dialect === 'recipe' ? readDefinition : loadDefinition)(file), notices }
    return { again: await loadAgentFile(file, { dialect, mode: 'lenient' }), notices }
  } catch (error) {
    if (noticesOf(error).length === 0) throw error
    return undefined
  }
}

async function checkAll(file: AgentFile): Promise<number> {
  const were = await verdictsOf(file)
  let written = 0
  for (const dialect of DIALECTS) {
    const strict = await through(file, dialect, false)
    if (strict !== undefined) {
      written++
      expect(await wider(were, strict.again), `${file.dialect} to ${dialect}`).toEqual([])
    }
    const lossy = await through(file, dialect, true)
    const more = lossy === undefined ? [] : await wider(were, lossy.again)
    if (more.length > 0) expect(lossy?.notices.map(({ level }) => level)).toContain('warning')
    expect(lossy?.notices.some(({ level }) => level === 'warning')).toBe(strict === undefined)
  }
  return written
}

/** A recipe may also be offered no more tools than before. */
async function checkRecipe(file: AgentFile): Promise<void> {
  await checkAll(file)
  const had = await offered(file)
  for (const dialect of DIALECTS) {
    const strict = await through(file, dialect, false)
    if (strict === undefined) continue
    const has = await offered(strict.again)
    expect(
      has.filter((name) => !had.includes(name)),
      `${file.file} to ${dialect}`,
    ).toEqual([])
  }
}

/** The names of the tools and servers that a model would be offered. */
async function offered({ extensions, ...file }: AgentFile): Promise<readonly string[]> {
  const isServer = ({ type }: { readonly type: string }) => type === 'stdio' || type === 'streamable_http'
  const here = extensions === null ? null : extensions.filter((one) => !isServer(one))
  const servers = (extensions ?? []).filter(isServer)
  const model = scriptedModel(['Done.'])
  const plain = { ...file, extensions: here, prompt: null, parameters: [], subRecipes: [], retry: null, output: null }
  const own = createRuntime({ model })
  await own.run((await recipeAgent({ ...plain, model: null, provider: null }, { grant: EVERYTHING })) as never, 'Go.')
    .result
  await own.close()
  const tools = (model.requests[0]?.tools ?? []).map(({ name }) => name)
  return [...tools, ...servers.map(({ name, availableTools }) => `${name}: ${availableTools.join() || 'all'}`)]
}

const some = (...values: readonly string[]) => fc.subarray([...values])
const WORDS = some(
  ...[
    'Read',
    'Write',
    'Edit',
    'Grep',
    'Glob',
    'LS',
    'Bash',
    'WebFetch',
    'WebSearch',
    'TodoWrite',
    'NotebookEdit',
    'Skill',
  ],
  ...[
    'Bash(npm test:*)',
    'Bash(git:*)',
    'Bash(git push *)',
    'Bash(npm test)',
    'Bash(git*)',
    'Edit(src/**)',
    'Read(.env)',
  ],
  ...[
    'Read(/src/**)',
    'Write(*.md)',
    'WebFetch(domain:example.com)',
    'Task',
    'Task(reviewer)',
    'mcp__srv__do',
    'mcp__srv__*',
  ],
)
const RULES = some(
  ...[
    'tool:read_*',
    'tool:write_file',
    'tool:*__*',
    'agent:reviewer',
    'model:openai/*',
    'exec:npm test',
    'exec:npm test *',
  ],
  ...[
    'exec:git *',
    'exec:*',
    'net:*.example.com',
    'net:*',
    'secret:*',
    'secret:GITHUB_*',
    'file.read:**',
    'file.*:/workspace/src/**',
    'file.write:/workspace/*',
  ],
  ...['file.delete:**', 'file.write:**', 'file.list:/workspace/**', 'file.read:/workspace/**/.env'],
)
const ACTION = fc.constantFrom('allow', 'ask', 'deny')
const PERMISSION = fc.dictionary(
  fc.constantFrom('bash', 'edit', 'read', 'list', 'webfetch', 'task', 'todowrite', 'srv_do', '*'),
  fc.oneof(
    ACTION,
    fc.dictionary(fc.constantFrom('*', 'git *', 'git push *', 'npm test*', 'rm *', 'src/**', '.env', '*.md'), ACTION),
  ),
)

const written = fc.oneof(
  fc
    .record(
      { tools: WORDS, disallowedTools: WORDS, permissionMode: fc.constantFrom('plan', 'default') },
      { requiredKeys: [] },
    )
    .map((f) => ['.claude/agents/a.md', f] as const),
  fc
    .record(
      {
        permission: PERMISSION,
        tools: fc.dictionary(
          fc.constantFrom('*', 'read', 'write', 'edit', 'bash', 'grep', 'task', 'srv_do'),
          fc.boolean(),
        ),
      },
      { requiredKeys: [] },
    )
    .map((f) => ['.opencode/agent/a.md', f] as const),
  fc
    .record(
      { tools: some('read_file', 'replace', 'run_shell_command', 'glob', 'mcp_srv_do'), max_turns: fc.constant(3) },
      { requiredKeys: [] },
    )
    .map((f) => ['.gemini/agents/a.md', f] as const),
  fc
    .record({ tools: some('read', 'edit', 'search', 'execute', 'agent', 'srv/do', 'web') }, { requiredKeys: [] })
    .map((f) => ['.github/agents/a.agent.md', f] as const),
  fc.record({ readonly: fc.boolean() }, { requiredKeys: [] }).map((f) => ['.cursor/agents/a.md', f] as const),
  fc
    .record(
      { tools: some(...TOOLS), grant: fc.record({ use: RULES, ask: RULES, deny: RULES }, { requiredKeys: [] }) },
      { requiredKeys: [] },
    )
    .map((f) => ['.legate/agents/a.md', f] as const),
)

describe('a file in the words of another program may do no more than before', () => {
  test('for every pair of dialects, whatever the file says', async () => {
    let kept = 0
    await fc.assert(
      fc.asyncProperty(written, async ([place, fields]) => {
        const text = `---\n${JSON.stringify({ name: 'a', description: 'd', ...fields }).slice(1, -1)}\n---\n\nDo it.\n`
        const folder = folderWith({ [place]: text.replace(/^---\n(.*)\n---/s, (_, head) => `---\n{${head}}\n---`) })
        kept += await checkAll(await loadAgentFile(path.join(folder, place), { mode: 'lenient' }))
      }),
      { numRuns: FILES },
    )
    expect(kept, 'some can be written').toBeGreaterThan(FILES)
  }, 600_000)

  test('a rule for the tools of all servers does not allow write_file', async () => {
    const grant = { ask: ['tool:write_file'], deny: ['tool:*__*'] }
    const folder = folderWith({
      '.legate/agents/a.md': `---\n${JSON.stringify({ name: 'a', description: 'd', grant })}\n---\n\nDo it.\n`,
    })
    await checkAll(await loadAgentFile(path.join(folder, '.legate/agents/a.md')))
  })

  test('for codex files', async () => {
    for (const mode of ['read-only', 'workspace-write', 'danger-full-access']) {
      const text = `name = "a"\ndescription = "d"\nsandbox_mode = "${mode}"\ndeveloper_instructions = "Do it."\n`
      const folder = folderWith({ '.codex/agents/a.toml': text })
      expect(await checkAll(await loadAgentFile(path.join(folder, '.codex/agents/a.toml')))).toBeGreaterThan(0)
    }
  })

  test('for the files beside this test', async () => {
    const fixtures = path.join(import.meta.dirname, 'fixtures')
    const files = readdirSync(fixtures, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
    expect(files).toHaveLength(3)
    for (const file of files) await checkAll(await loadAgentFile(path.join(fixtures, file)))
  })

  test('for files that people have', async (context) => {
    skipWithoutCorpus(context)
    const agents = path.join(corpus, 'agents')
    const files = readdirSync(agents, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.(?:md|toml)$/.test(name),
    )
    expect(files.length).toBeGreaterThan(10)
    for (const file of files) await checkAll(await loadAgentFile(path.join(agents, file), { mode: 'lenient' }))
  }, 120_000)

  test('for recipes, whose extensions say what they may use', async () => {
    const texts = [
      'extensions: []',
      'extensions: [{type: builtin, name: developer}]',
      'extensions: [{type: builtin, name: developer, available_tools: [tree]}]',
      'extensions: [{type: stdio, name: srv, cmd: srv, args: []}]',
      'extensions: [{type: stdio, name: srv, cmd: srv, args: [], available_tools: [do]}]',
      'settings: {max_turns: 3}',
      'activities: [x]',
    ]
    for (const text of texts) {
      const file = path.join(folderWith({ 'r.yaml': `title: T\ndescription: d\nprompt: Go.\n${text}\n` }), 'r.yaml')
      await checkRecipe(await readDefinition(file))
    }
  })

  test('for recipes that people have', async (context) => {
    skipWithoutCorpus(context)
    const folder = path.join(corpus, 'goose')
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yaml'))
    const share = files.toSorted().filter((_, at) => IS_FULL || at % 5 === 0)
    expect(share.length).toBeGreaterThan(10)
    for (const file of share) await checkRecipe(await readDefinition(path.join(folder, file), { mode: 'lenient' }))
  }, 120_000)

  test('the check of this test sees what is wider', async () => {
    const file = { ...EMPTY_AGENT_FILE, name: 'a', description: 'd' }
    const were = await verdictsOf({ ...file, grant: { deny: ['exec:rm *'] } })
    expect(await wider(were, file)).toEqual(['exec:rm x'])
  })
})
