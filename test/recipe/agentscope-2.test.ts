import path from 'node:path'
import { createRuntime } from 'legate'
import {
  type AgentFile,
  convert,
  discover,
  loadAgentFile,
  loadDefinition,
  recipeAgent,
  validateDefinition,
} from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { folderWith, refusalOf } from './support/folder.ts'

// Agent files of AgentScope-Java 2, `workspace/subagents/*.md`. The facts are from agentscope-ai/agentscope-java:
// `AgentSpecLoader` (the fields, `steps` before `maxIters` and 10 without both, the name is that of the file, an unknown
// `workspace.mode` is `isolated`, a `workspace` that is not a map means nothing), `HarnessAgentBuilderSupport` (`skills` lists all
// that it may use) and `docs/v2/en/docs/harness/subagent.md`. The texts here are ours; `FOUND` has the fields of files that people have.

const runtime = createRuntime({ model: scriptedModel([]) })
afterAll(() => runtime.close())

const EVERYTHING = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']

function placed(fields: string, others: Readonly<Record<string, string>> = {}): string {
  const place = 'workspace/subagents/scout.md'
  return path.join(folderWith({ [place]: `---\ndescription: Looks\n${fields}\n---\n\nLook.\n`, ...others }), place)
}

async function verdictOf(file: AgentFile, request: string): Promise<string> {
  return (await runtime.explain(await recipeAgent(file, { grant: { use: EVERYTHING } }), request)).verdict
}

const DATAAGENT = 'xyy631881-lab/agentscope-dataagent@62ab66974b35c678d8f15704687d4cc02d6903f2'
const CHAPTER_16 =
  'ningbingjian/learn-agentscope-demo@90dd61a63a0e1b16a976ac1fe1d813615b0e8765:16-SubAgentOrchestration'
const CHAPTER_21 = 'ningbingjian/learn-agentscope-demo@eeddfb472d7f233aef62670cf6e9db6af8b91ac7:21-GatewayAndChannel'
const COMPLAINTS = 'ataskite/agentscope-demo@7462445b30d35d11984ee90620919f62fac93759'
const FINANCE = 'ataskite/agentscope-demo@f36b38ec20cec8d16a3a6e58d82b3890ebe48eed'
const TEMPLATES = 'src/main/resources/harness-templates'

/**
 * The fields of files in public repositories but for their descriptions, and what they come to. Those of `agentscope-java` itself
 * are in `real-files.test.ts`. Folders of homes have another name here.
 */
const FOUND: readonly (readonly [from: string, fields: string, read: object])[] = [
  [
    `${DATAAGENT}:.agentscope/insight-agent-workspace/subagents/data-agent.md`,
    'workspace:\n  mode: shared\nmodel: longcat\nmaxIters: 20\ntools: [filesystem, shell_execute, memory_search, memory_get, session_search]',
    { model: 'longcat', budget: { modelCalls: 20 }, grant: { deny: ['agent:*'] } },
  ],
  [
    `${DATAAGENT}:.agentscope/insight-agent-workspace/subagents/test-echo.md`,
    'workspace:\n  mode: shared\ntools: [write_file]',
    { budget: { modelCalls: 10 }, grant: { deny: ['agent:*'] }, notices: [] },
  ],
  [`${DATAAGENT}:shared/agents/data-agent/subagents/data-explorer.md`, 'maxIters: 12', { budget: { modelCalls: 12 } }],
  [`${CHAPTER_16}/.agentscope/workspace/subagents/researcher.md`, 'steps: 6', { budget: { modelCalls: 6 } }],
  [`${CHAPTER_16}/.agentscope/workspace/subagents/reviewer.md`, 'steps: 6', { budget: { modelCalls: 6 }, grant: null }],
  [
    `${CHAPTER_21}/.agentscope/workspace/subagents/researcher.md`,
    'steps: 6\nmode: subagent\nexpose_to_user: true',
    { budget: { modelCalls: 6 }, isHidden: false },
  ],
  [
    `${COMPLAINTS}:${TEMPLATES}/complaint-reviewer/subagents/roi-calculator.md`,
    'name: roi-calculator\nworkspace: "/home/ann/.agentscope/roi-calculator"',
    { title: 'roi-calculator', unmet: [] },
  ],
  [
    `${FINANCE}:${TEMPLATES}/finance-intel-tracker/subagents/intel-collector.md`,
    'name: intel-collector\nworkspace: "/home/ann/.agentscope/finance-intel-tracker/agents/intel-collector"\nmodel: qwen-max',
    { model: 'qwen-max', unmet: [] },
  ],
]

describe('agent files of AgentScope-Java 2', () => {
  test.each(FOUND)('of people are read: %s', async (_, fields, read) => {
    const agent = await loadAgentFile(placed(fields))

    expect(agent).toMatchObject({ dialect: 'agentscope', name: 'scout', instructions: 'Look.', ...read })
    expect(agent.notices.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('every field that is known is read', async () => {
    const fields = [
      'workspace: { mode: shared }',
      'model: openai:gpt-5',
      ...['steps: 8', 'temperature: 0.2', 'top_p: 0.9', 'variant: thinking', 'hidden: true', 'mode: subagent'],
      ...['expose_to_user: true', 'tools: [read_file, grep_files]', 'display_name: The scout'],
    ]
    const agent = await loadAgentFile(placed(fields.join('\n')))

    expect(agent).toMatchObject({
      dialect: 'agentscope',
      name: 'scout',
      title: 'The scout',
      model: 'openai/gpt-5',
      budget: { modelCalls: 8 },
      settings: { temperature: 0.2, topP: 0.9 },
      isHidden: true,
      unmet: [],
      instructions: 'Look.',
      notices: [],
    })
  })

  test('an agent is named after its file, and has ten steps where it says nothing', async () => {
    const agent = await loadAgentFile(placed('name: BrowserAgent'))

    expect(agent).toMatchObject({ name: 'scout', title: 'BrowserAgent', budget: { modelCalls: 10 } })
    expect((await loadAgentFile(placed('maxIters: 30'))).budget).toEqual({ modelCalls: 30 })
  })

  test.each([
    ['tools: [read_file, grep_files, glob_files]', 'tool:read_text_file', 'allow'],
    ['tools: [read_file, grep_files, glob_files]', 'tool:write_file', 'deny'],
    ['tools: [read_file, grep_files, glob_files]', 'agent:other', 'deny'],
    ['tools: "read_file, execute"', 'tool:shell', 'allow'],
    ['tools:', 'tool:write_file', 'allow'],
    ['tools: [agent_spawn]', 'agent:other', 'allow'],
    ['tools: [webSearchPrime, calculate]', 'tool:shell', 'deny'],
  ])('with `%s`, %s is decided with %s', async (field, request, verdict) => {
    const agent = await loadAgentFile(placed(`workspace: { mode: shared }\n${field}`))

    expect(await verdictOf(agent, request)).toBe(verdict)
  })

  test('`skills` are all that it may use: they stand in its instructions, and it loads no other', async () => {
    const skill = '---\nname: charts\ndescription: d\n---\n\nDraw bars.\n'
    const file = placed('workspace: { mode: shared }\nskills: [charts]', { '.agents/skills/charts/SKILL.md': skill })
    const agent = await loadAgentFile(file)
    const cwd = path.resolve(path.dirname(file), '../..')
    const model = scriptedModel(['Done.'])
    await using own = createRuntime({ model })
    await own.run((await recipeAgent(agent, { cwd })) as never, 'Go.').result

    expect(JSON.stringify(model.requests[0]?.messages)).toContain('Draw bars.')
    expect(agent.grant?.deny).toContain('tool:skills_load')
  })

  test('an agent is found in its folder', async () => {
    const file = placed('workspace: { mode: shared }')
    const cwd = path.resolve(path.dirname(file), '../..')

    expect((await discover({ cwd, home: cwd })).definitions).toMatchObject([{ name: 'scout', dialect: 'agentscope' }])
  })

  test('without a workspace a note says that the agent shares that of its host', async () => {
    const { notices } = await loadAgentFile(placed('steps: 3'))

    expect(notices).toMatchObject([{ level: 'note', code: 'ignored', message: expect.stringContaining('workspace') }])
  })
})

describe('an agent file that asks for isolation is not started', () => {
  test.each([
    ['workspace/subagents/a.md', 'workspace: { mode: isolated }', 'workspace.mode: isolated'],
    ['workspace/subagents/a.md', 'workspace: { mode: own }', 'workspace.mode: own'],
    ['workspace/subagents/a.md', 'workspace: { path: ./defs/a }', 'workspace.path'],
    ['.claude/agents/a.md', 'isolation: worktree', 'isolation: worktree'],
    ['.claude/agents/a.md', 'isolation: remote', 'isolation: remote'],
    ['.claude/agents/a.md', 'isolation: { kind: worktree }', 'isolation'],
  ])('%s with `%s`', async (place, field, named) => {
    const file = path.join(folderWith({ [place]: `---\nname: a\ndescription: d\n${field}\n---\n\nDo it.\n` }), place)
    const refused = { problem: expect.stringContaining(`\`${named}\` in a.md`), line: 4 }

    expect(await refusalOf(loadDefinition(file))).toMatchObject(refused)
    expect(await refusalOf(recipeAgent(await loadAgentFile(file)))).toMatchObject(refused)
    expect(await validateDefinition(file)).toMatchObject({
      agent: null,
      notices: expect.arrayContaining([expect.objectContaining({ level: 'error', code: 'unmet' })]),
    })
  })

  test('a conversion that cannot say it is refused, and one to the same dialect keeps it', async () => {
    const place = '.claude/agents/a.md'
    const text = '---\nname: a\ndescription: d\nisolation: worktree\n---\n\nDo it.\n'
    const agent = await loadAgentFile(path.join(folderWith({ [place]: text }), place))

    expect((await convert(agent, 'claude')).text).toContain('isolation: worktree')
    await expect(convert(agent, 'cursor')).rejects.toThrow('`isolation: worktree` cannot be said')
  })
})
