import path from 'node:path'
import fc from 'fast-check'
import { createRuntime } from 'legate'
import { type AgentFile, discover, loadAgentFile, loadDefinition, recipeAgent } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { readOpenOptions } from '../../src/recipes/open/open-subagents.ts'
import { sourcesOf } from '../../src/recipes/open/sources.ts'
import { folderWith, refusalOf } from './support/folder.ts'

// Agent files of opencode 2. The facts are from anomalyco/opencode, branch v2: `packages/core/src/config/plugin/agent.ts`
// (keys, the body is `system`), `packages/core/src/permission.ts` (the last match wins), `packages/core/src/util/wildcard.ts`
// (`*` matches slashes too) and `packages/www/content/docs/(Configure)`. The files here are ours; each has the fields and
// the order of rules of a file that somebody has: the read-only reviewer (clock-worked/OpenBook-Svelte), the planner that
// delegates to named agents (Sal-Faris/attention-head-atlas), the deny-all with exceptions, the map of version 1 below
// the key of version 2, and so on.

const runtime = createRuntime({ model: scriptedModel([]) })
afterAll(() => runtime.close())

const EVERYTHING = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']

async function agentOf(fields: string): Promise<AgentFile> {
  const place = '.opencode/agents/a.md'
  return loadAgentFile(path.join(folderWith({ [place]: `---\ndescription: d\n${fields}\n---\n\nDo it.\n` }), place))
}

const rule = (action: string, resource: string, effect: string) =>
  `  - { action: ${JSON.stringify(action)}, resource: ${JSON.stringify(resource)}, effect: ${effect} }`
const rules = (...lines: readonly string[]) => `permissions:\n${lines.join('\n')}`

async function verdictOf(fields: string, request: string): Promise<string> {
  const agent = await recipeAgent(await agentOf(fields), { grant: { use: EVERYTHING } })
  return (await runtime.explain(agent, request)).verdict
}

const warned = ({ notices }: AgentFile) => notices.filter(({ level }) => level === 'warning').length

/** A reviewer that changes nothing. */
const READ_ONLY = rules(rule('edit', '*', 'deny'), rule('shell', '*', 'deny'))
/** One that may write a few files, each after a question, and start three agents. */
const PLANNER = rules(
  rule('subagent', '*', 'deny'),
  ...['lab', 'critic', 'explore'].map((name) => rule('subagent', name, 'allow')),
  rule('edit', '*', 'deny'),
  rule('edit', 'PLAN.md', 'ask'),
  rule('edit', 'docs/*', 'ask'),
)
/** One that may do a few things only. */
const VALIDATOR = rules(
  rule('*', '*', 'deny'),
  rule('read', '*', 'allow'),
  rule('read', '*.env', 'deny'),
  rule('glob', '*', 'allow'),
  rule('shell', '*', 'ask'),
  rule('shell', 'git push *', 'deny'),
  rule('external_directory', '*', 'deny'),
)
/** One that may do all but a few things. */
const YOLO = rules(rule('shell', '*', 'allow'), rule('shell', 'rm *', 'deny'), rule('edit', '*', 'allow'))
/** One that may use a few programs. */
const EXPLORER = rules(
  rule('shell', '*', 'deny'),
  rule('shell', 'git status*', 'allow'),
  rule('shell', 'git diff*', 'allow'),
  rule('skill', '*', 'deny'),
)
/** The tools of plugins and of servers. */
const TOOLS = rules(rule('github_*', '*', 'deny'), rule('evidence_create', '*', 'deny'), rule('websearch', '*', 'deny'))
/** The map of version 1 below the key of version 2. */
const OLD_MAP = 'permissions:\n  edit: deny\n  bash: deny\n  webfetch: allow'
const OLD_FLAGS = 'permissions:\n  edit: true\n  bash: true'
const OLD_PATTERNS = 'permissions:\n  edit:\n    "**/*": deny\n    "**/*.md": allow'

describe('permissions of opencode 2', () => {
  test.each([
    ['a read-only reviewer', 'file.write:/workspace/a', 'deny', READ_ONLY],
    ['a read-only reviewer', 'file.delete:/workspace/a', 'deny', READ_ONLY],
    ['a read-only reviewer', 'exec:ls', 'deny', READ_ONLY],
    ['a read-only reviewer', 'file.read:/workspace/a', 'allow', READ_ONLY],
    ['a planner', 'agent:lab', 'allow', PLANNER],
    ['a planner', 'agent:build', 'deny', PLANNER],
    ['a planner', 'file.write:/workspace/PLAN.md', 'ask', PLANNER],
    ['a planner', 'file.write:/workspace/docs/a/b.md', 'ask', PLANNER],
    ['a planner', 'file.write:/workspace/src/a.ts', 'deny', PLANNER],
    ['a planner', 'exec:ls', 'allow', PLANNER],
    ['a validator', 'file.read:/workspace/a', 'allow', VALIDATOR],
    ['a validator', 'file.read:/workspace/x/.env', 'deny', VALIDATOR],
    ['a validator', 'exec:npm test', 'ask', VALIDATOR],
    ['a validator', 'exec:git push origin', 'deny', VALIDATOR],
    ['a validator', 'file.write:/workspace/a', 'deny', VALIDATOR],
    ['a validator', 'agent:reviewer', 'deny', VALIDATOR],
    ['a validator', 'net:example.com', 'deny', VALIDATOR],
    ['a validator', 'tool:search_text', 'deny', VALIDATOR],
    ['a daring one', 'exec:rm -rf x', 'deny', YOLO],
    ['a daring one', 'exec:ls', 'allow', YOLO],
    ['an explorer', 'exec:git status', 'allow', EXPLORER],
    ['an explorer', 'exec:git push', 'deny', EXPLORER],
    ['an explorer', 'tool:skills_load', 'deny', EXPLORER],
    ['rules for tools', 'tool:github_search', 'deny', TOOLS],
    ['rules for tools', 'tool:evidence_create', 'deny', TOOLS],
    ['rules for tools', 'tool:web_search', 'deny', TOOLS],
    ['rules for tools', 'tool:read_text_file', 'allow', TOOLS],
    ['a map of version 1', 'file.write:/workspace/a', 'deny', OLD_MAP],
    ['a map of version 1', 'exec:ls', 'deny', OLD_MAP],
    ['a map of version 1', 'net:example.com', 'allow', OLD_MAP],
    ['a map of flags', 'exec:ls', 'deny', OLD_FLAGS],
    ['a map of patterns', 'file.write:/workspace/a.ts', 'deny', OLD_PATTERNS],
    [
      'a rule for a URL',
      'net:intern.example.com',
      'deny',
      rules(rule('webfetch', 'https://intern.example.com/*', 'deny')),
    ],
    [
      'a rule for the home folder',
      'file.write:/workspace/a',
      'ask',
      rules(rule('read', '$HOME/.ssh/*', 'deny'), rule('edit', '*', 'ask')),
    ],
    ['a question for all but programs', 'exec:ls', 'allow', rules(rule('*', '*', 'ask'), rule('shell', '*', 'allow'))],
    [
      'a question for all but programs',
      'file.write:/workspace/a',
      'ask',
      rules(rule('*', '*', 'ask'), rule('shell', '*', 'allow')),
    ],
    ['a star at the end', 'exec:ls', 'allow', rules(rule('shell', '*', 'deny'), rule('*', '*', 'allow'))],
    ['a star in an action', 'net:example.com', 'deny', rules(rule('web*', '*', 'deny'))],
    ['a rule for all actions', 'file.read:/workspace/a/.env', 'deny', rules(rule('*', '*.env', 'deny'))],
    ['rules of both versions', 'net:example.com', 'deny', `${READ_ONLY}\npermission:\n  webfetch: deny`],
    ['rules of both versions', 'exec:ls', 'deny', `${READ_ONLY}\npermission:\n  webfetch: deny`],
    ['the list below the old key', 'exec:ls', 'deny', `permission:\n${READ_ONLY.split('\n').slice(1).join('\n')}`],
  ])('%s: %s is decided with %s', async (_name, request, verdict, fields) => {
    expect(await verdictOf(fields, request)).toBe(verdict)
  })

  test('files that follow the documentation get no warning', async () => {
    for (const fields of [READ_ONLY, VALIDATOR, YOLO, EXPLORER]) expect(warned(await agentOf(fields))).toBe(0)
  })

  test.each([
    ['a word of version 1', rule('bash', '*', 'deny'), 'exec:ls'],
    ['a word of version 1', rule('task', '*', 'deny'), 'agent:reviewer'],
    ['a misspelt action', rule('shel', '*', 'deny'), 'exec:ls'],
    ['an unknown effect', rule('shell', '*', 'denied'), 'exec:ls'],
    ['no effect', '  - { action: shell, resource: "*" }', 'exec:ls'],
    ['no resource', '  - { action: shell, effect: deny }', 'exec:ls'],
    ['no action', '  - { resource: "*", effect: deny }', 'net:example.com'],
    ['a field that may limit it', '  - { action: read, resource: "*", effect: deny, when: night }', 'exec:ls'],
    ['the fields of another form', '  - { permission: edit, pattern: "*", action: deny }', 'file.write:/workspace/a'],
    ['text beside rules', `${rule('read', '*', 'allow')}\n  - no shell`, 'exec:ls'],
    ['a sign for one letter', rule('shel?', '*', 'deny'), 'exec:ls'],
  ])('a rule with %s forbids more, with a warning', async (_what, line, request) => {
    const agent = await agentOf(rules(line))

    expect(await verdictOf(rules(line), request)).toBe('deny')
    expect(warned(agent)).toBeGreaterThan(0)
  })

  test.each([
    ['a word of version 1', rule('bash', '*', 'allow'), 'exec:ls'],
    ['a misspelt action', rule('shel', '*', 'allow'), 'exec:ls'],
    ['no resource', '  - { action: shell, effect: allow }', 'exec:ls'],
    ['another field', '  - { action: shell, resource: "*", effect: allow, when: day }', 'exec:ls'],
    ['a sign for one letter', rule('shel?', '*', 'allow'), 'exec:ls'],
    ['a resource of all actions', rule('*', 'ls', 'allow'), 'exec:ls'],
  ])('a rule with %s allows nothing, with a warning', async (_what, line, request) => {
    const fields = rules(rule('*', '*', 'deny'), line)

    expect(await verdictOf(fields, request)).toBe('deny')
    expect(warned(await agentOf(fields))).toBeGreaterThan(0)
  })

  test('a file of too many rules is refused', async () => {
    const many = Array.from({ length: 501 }, (_, at) => rule('shell', `p${at} *`, 'deny'))
    const place = '.opencode/agents/a.md'
    const folder = folderWith({ [place]: `---\ndescription: d\n${rules(...many)}\n---\n\nDo it.\n` })

    expect(await refusalOf(loadAgentFile(path.join(folder, place)))).toMatchObject({
      problem: expect.stringContaining('more than 500 rules'),
    })
  })
})

describe('law: no rules allow more here than in opencode 2', () => {
  const EFFECTS = ['allow', 'ask', 'deny'] as const
  const STRICT = { allow: 0, ask: 1, deny: 2 }
  const ACTIONS = ['read', 'edit', 'shell', 'subagent', 'webfetch', '*', 'e*', 's*']
  const RESOURCES = ['*', 'a.md', 'src/*', '*.md', 'git *', 'git push *', 'rev*', 'reviewer', 'https://example.com/*']
  /** Each request as legate and as opencode names it. What a tool does takes the tool as well. */
  const REQUESTS = [
    ['file.read:/workspace/a.md', 'read', 'a.md'],
    ['file.read:/workspace/src/b.ts', 'read', 'src/b.ts'],
    ['file.write:/workspace/a.md', 'edit', 'a.md'],
    ['file.write:/workspace/src/b.ts', 'edit', 'src/b.ts'],
    ['exec:git', 'shell', 'git'],
    ['exec:git push origin', 'shell', 'git push origin'],
    ['exec:ls', 'shell', 'ls'],
    ['agent:reviewer', 'subagent', 'reviewer'],
    ['agent:writer', 'subagent', 'writer'],
    ['net:example.com', 'webfetch', 'https://example.com/x'],
  ] as const
  const TOOL = {
    read: 'read_text_file',
    edit: 'write_file',
    shell: 'shell',
    subagent: 'delegate',
    webfetch: 'web_fetch',
  }
  type Rule = { readonly action: string; readonly resource: string; readonly effect: (typeof EFFECTS)[number] }

  /** As the documentation says it: the last match wins. */
  function matches(pattern: string, text: string): boolean {
    const escaped = pattern
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replace(/ \.\*$/, '( .*)?')
    return new RegExp(`^${escaped}$`, 's').test(text)
  }

  const list = fc.array(
    fc.record<Rule>({
      action: fc.constantFrom(...ACTIONS),
      resource: fc.constantFrom(...RESOURCES),
      effect: fc.constantFrom(...EFFECTS),
    }),
    { minLength: 1, maxLength: 6 },
  )

  test('for any list of rules', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(list, async (made) => {
        const fields = rules(...made.map(({ action, resource, effect }) => rule(action, resource, effect)))
        const agent = await recipeAgent(await agentOf(fields), { grant: { use: EVERYTHING } })
        for (const [request, action, resource] of REQUESTS) {
          const theirs = made.findLast((one) => matches(one.action, action) && matches(one.resource, resource))
          const tool = await runtime.explain(agent, `tool:${TOOL[action]}`)
          const own = await runtime.explain(agent, request)
          const verdict = STRICT[tool.verdict] > STRICT[own.verdict] ? tool.verdict : own.verdict
          const said = `${request}: ${theirs?.effect ?? 'allow'} there, ${verdict} here, with ${fields}`
          expect(STRICT[verdict], said).toBeGreaterThanOrEqual(STRICT[theirs?.effect ?? 'allow'])
        }
      }),
      { numRuns: process.env['LEGATE_FULL'] === '1' ? 2_000 : 60 },
    )
  })
})

describe('other fields of opencode 2', () => {
  test('steps, a model with its variant, and the body are read', async () => {
    const agent = await agentOf('mode: subagent\nmodel: "openai/gpt-6#high"\nsteps: 12\ncolor: "#22c55e"')

    expect(agent).toMatchObject({ model: 'openai/gpt-6', budget: { modelCalls: 12 }, isHidden: false, notices: [] })
    expect(agent.instructions).toBe('Do it.')
  })

  test('a model may be a map', async () => {
    const agent = await agentOf('model: { providerID: openai, model: gpt-6, variant: high }')

    expect(agent).toMatchObject({ model: 'openai/gpt-6', notices: [] })
  })

  test('what is sent to a provider is left out, with a note', async () => {
    const { notices } = await agentOf('request:\n  body:\n    temperature: 0.2')

    expect(notices).toMatchObject([{ level: 'note', code: 'ignored', message: expect.stringContaining('`request`') }])
  })

  test('`disabled: true` switches an agent off', async () => {
    const folder = folderWith({ '.opencode/agents/a.md': '---\ndescription: d\ndisabled: true\n---\nDo it.\n' })

    expect((await discover({ cwd: folder, home: folder })).definitions).toEqual([])
    expect(await refusalOf(loadDefinition(path.join(folder, '.opencode/agents/a.md')))).toMatchObject({
      problem: expect.stringContaining('switched off'),
    })
  })

  test.each(['hidden: true', 'mode: primary', 'mode: main'])(
    '`%s`: models are not offered the agent',
    async (field) => {
      const folder = folderWith({
        '.opencode/agents/a.md': `---\ndescription: d\n${field}\n---\nDo it.\n`,
        '.opencode/agents/b.md': '---\ndescription: d\nmode: all\n---\nDo it.\n',
      })
      const sources = await sourcesOf(readOpenOptions({ discover: folder }), () => false)

      expect(sources.map(({ name }) => name)).toContain('b')
      expect(sources.map(({ name }) => name)).not.toContain('a')
    },
  )
})
