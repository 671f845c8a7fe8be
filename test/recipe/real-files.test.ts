import path from 'node:path'
import { createRuntime } from 'legate'
import { loadAgentFile, recipeAgent, validateDefinition } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { folderWith } from './support/folder.ts'

// Fields of agent files that people have, each with the place where it was read. Descriptions and bodies are not theirs.

const runtime = createRuntime({ model: scriptedModel([]) })
afterAll(() => runtime.close())

const EVERYTHING = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']

interface RealFile {
  /** Repository, commit and path. */
  readonly from: string
  readonly fields: string
  /** What the agent is, in part. */
  readonly is: object
  /** Requests and how they are decided for an agent that may do everything. */
  readonly decided?: Readonly<Record<string, 'allow' | 'ask' | 'deny'>>
  /** Why it is not started, where it is not. */
  readonly unmet?: string
}

const rule = (action: string, resource: string, effect: string) =>
  `  - action: ${action}\n    resource: ${JSON.stringify(resource)}\n    effect: ${effect}\n`

const OPENBOOK = 'clock-worked/OpenBook-Svelte@7522f779cfc5bd495b196e112397cd8a2b0dac0c:.opencode/agents'
const ATLAS = 'Sal-Faris/attention-head-atlas@ddc405a91aab0e52cece1028a6721147d39ec24b:.opencode/agents'
const ATLAS_BEFORE = 'Sal-Faris/attention-head-atlas@22461a81d65ccc8a2c2f458ea530acaa55433767:.opencode/agents'

const READ_ONLY = `mode: subagent\npermissions:\n${rule('edit', '*', 'deny')}${rule('shell', '*', 'deny')}`
const CHANGES_NOTHING = {
  'file.read:/workspace/a.ts': 'allow',
  'file.write:/workspace/a.ts': 'deny',
  'exec:ls': 'deny',
} as const

const FINAPP = 'luisda-291105/finApp-back@f9a346be46aa9a9a37948bd79a3df7eec7b54e4d:.opencode/agents'
const FINAPP_LATER = 'luisda-291105/finApp-back@1fa8af53878b9dbe02e119317954778f7e6cac0b:.opencode/agents'
const ARGGON = 'Arggon/ArggonManager@0cd3a324030e1ca55824b61c074f653a0bae0e30:.opencode/agents'
const ARGGON_BEFORE = 'Arggon/ArggonManager@a88cf8e5f25478f1f0098fb7c7962d0f8d2a4251:.opencode/agents'
const JADE = 'sea2709/jade-court@76e67b2f56ca62a6561d2ca4f6372738065192ec:.opencode/agents'
const FORGE = 'bananaback/swarm-forge-lite-design-boosted@60561bbbb63d94d14065b91df4ee14961a4193ac:.opencode/agents'

const denied = (action: string, ...resources: readonly string[]) =>
  resources.map((one) => rule(action, one, 'deny')).join('')
const allowed = (action: string, ...resources: readonly string[]) =>
  resources.map((one) => rule(action, one, 'allow')).join('')
const nothingOf = (...actions: readonly string[]) => actions.map((one) => denied(one, '*')).join('')
const ofTracker = ['create', 'update', 'handoff', 'start', 'branch', 'cleanup', 'priority', 'sync', 'import_issues']
// Its lists are not indented.
const FORGE_FIELDS = `mode: all\nmodel: opencode-go/deepseek-v4.1-flash#high\nrequest:\n  body:\n    temperature: 1\n    top_p: 0.95\nhidden: false\ndisabled: false\npermissions:\n${`${denied('edit', '.swarmforge/**', 'swarm-forge-lite/.swarmforge/**')}${denied('shell', 'crap4py*', '*/tools/refactorer/crap4py*', 'dry4py*', '*/tools/shared/dry4py*', 'ruff4py*', '*/tools/shared/ruff4py*', '*pytest*', '*run_acceptance*')}`.replaceAll(/^ {2}/gm, '')}`

const TERRA = 'openai/gpt-5.6-terra'
const PROGRAMS = ['python -m pytest *', 'python -m ruff check *', 'python -m unittest *', 'git status *', 'git diff *']
const RULES_BEFORE = `permission:\n  edit: allow\n  task: deny\n  doom_loop: ask\n  bash:\n    "*": ask\n${PROGRAMS.map((one) => `    ${JSON.stringify(one)}: allow\n`).join('')}    "git push *": deny\n    "git reset --hard *": deny\n    "git clean *": deny\n`

const OPENCODE: readonly RealFile[] = [
  ...['crystal-architect', 'crystal-contract', 'crystal-guardian', 'crystal-scribe'].map((name) => ({
    from: `${OPENBOOK}/${name}.md`,
    fields: READ_ONLY,
    is: { name, isHidden: false },
    decided: CHANGES_NOTHING,
  })),
  {
    from: `${ATLAS}/research-engineer.md`,
    fields: `mode: subagent\nmodel: ${TERRA}\nsteps: 80\npermissions:\n${rule('edit', '*', 'allow')}${PROGRAMS.map((one) => rule('shell', one, 'allow')).join('')}${rule('shell', 'git push *', 'deny')}${rule('subagent', '*', 'deny')}`,
    is: { model: TERRA, budget: { modelCalls: 80 } },
    decided: {
      'exec:python -m pytest -q': 'allow',
      'exec:git push origin': 'deny',
      'agent:lab': 'deny',
      'file.write:/workspace/a.py': 'allow',
    },
  },
  {
    from: `${ATLAS}/research.md`,
    fields: `mode: primary\nmodel: openai/gpt-5.6-sol\nsteps: 60\npermissions:\n${rule('subagent', '*', 'deny')}${['lab', 'scientific-critic', 'explore'].map((one) => rule('subagent', one, 'allow')).join('')}${rule('edit', '*', 'deny')}${rule('edit', 'RESEARCH_PROGRAM.md', 'ask')}${rule('edit', 'docs/experiments/*', 'ask')}`,
    is: { isHidden: true, budget: { modelCalls: 60 } },
    decided: {
      'agent:lab': 'allow',
      'agent:other': 'deny',
      'file.write:/workspace/src/a.py': 'deny',
      'file.write:/workspace/RESEARCH_PROGRAM.md': 'ask',
    },
  },
  {
    from: `${FINAPP}/implementer.md`,
    fields: `mode: subagent\npermissions:\n${allowed('shell', '*')}${nothingOf('webfetch', 'subagent')}`,
    is: { isHidden: false },
    decided: { 'exec:./mvnw test': 'allow', 'net:example.com': 'deny', 'agent:planner': 'deny' },
  },
  {
    from: `${FINAPP}/reviewer.md`,
    fields: `mode: subagent\npermissions:\n${denied('edit', '*')}${rule('shell', '*', 'ask')}${allowed('shell', './mvnw test*', './mvnw package*', 'git diff*', 'git status*')}${nothingOf('webfetch', 'subagent')}`,
    is: { isHidden: false },
    decided: {
      // Of a file that you run, only the brackets of Claude free a program from being asked for.
      'exec:git diff HEAD': 'ask',
      'exec:npm install': 'ask',
      'net:example.com': 'deny',
      'file.write:/workspace/a.java': 'deny',
      'agent:planner': 'deny',
    },
  },
  {
    from: `${FINAPP_LATER}/coordinator.md`,
    fields: `mode: primary\npermissions:\n${nothingOf('edit', 'shell', 'webfetch', 'websearch', 'subagent')}${allowed('subagent', 'planner', 'implementer', 'reviewer')}`,
    is: { isHidden: true },
    decided: { ...CHANGES_NOTHING, 'agent:planner': 'allow', 'agent:other': 'deny' },
  },
  {
    from: `${ARGGON_BEFORE}/arggon-reviewer.md`,
    fields: `mode: subagent\npermissions:\n${nothingOf('edit', 'subagent')}`,
    is: { isHidden: false },
    decided: { 'file.write:/workspace/a.ts': 'deny', 'agent:maker': 'deny', 'exec:npm test': 'allow' },
  },
  {
    from: `${ARGGON}/arggon-maker.md`,
    fields: `mode: subagent\npermissions:\n${nothingOf('subagent', 'arggon_create', 'arggon_arggon_create')}`,
    is: { isHidden: false },
    decided: { 'agent:verifier': 'deny', 'tool:arggon_create': 'deny', 'file.write:/workspace/a.ts': 'allow' },
  },
  {
    from: `${ARGGON}/arggon-verifier.md`,
    fields: `mode: subagent\npermissions:\n${nothingOf('edit', 'subagent', ...ofTracker.map((one) => `arggon_${one}`), ...ofTracker.slice(0, 3).map((one) => `arggon_arggon_${one}`))}${denied('shell', 'git commit*', 'git push*', 'git merge*', 'git rebase*')}`,
    is: { isHidden: false },
    decided: {
      'exec:npm test': 'allow',
      'exec:git commit -m x': 'deny',
      'tool:arggon_sync': 'deny',
      'file.write:/workspace/a.ts': 'deny',
    },
  },
  {
    from: `${JADE}/ui-ux-designer.md`,
    fields: `mode: subagent\npermissions:\n${denied('edit', '*')}${allowed('edit', 'docs/reports/design/**')}${denied('edit', '.cursor/**', '.opencode/**', '.env')}${allowed('shell', '*')}${denied('shell', 'git push *')}`,
    is: { isHidden: false },
    decided: {
      'file.write:/workspace/docs/reports/design/a/spec.md': 'allow',
      'file.write:/workspace/apps/web/a.ts': 'deny',
      'file.write:/workspace/.env': 'deny',
      'exec:pnpm dev': 'allow',
      'exec:git push origin main': 'deny',
    },
  },
  {
    from: `${JADE}/adversarial-reviewer.md`,
    fields: `mode: subagent\nmodel: opencode/deepseek-v4-pro\npermissions:\n${denied('edit', '*')}${allowed('edit', 'docs/reports/adversarial-review/**')}${allowed('shell', '*')}${denied('shell', 'git commit *', 'git push *', 'git checkout *', 'git reset *', 'pnpm add *', 'pnpm install *')}`,
    is: { model: 'opencode/deepseek-v4-pro' },
    decided: {
      'file.write:/workspace/docs/reports/adversarial-review/x/report.md': 'allow',
      'file.write:/workspace/apps/server/a.ts': 'deny',
      'exec:git diff HEAD': 'allow',
      'exec:pnpm add left-pad': 'deny',
    },
  },
  ...['interrogator', 'critic'].map((name) => ({
    from: `${FORGE}/${name}.md`,
    fields: FORGE_FIELDS,
    is: { isHidden: false, isDisabled: false },
    decided: {
      'file.write:/workspace/.swarmforge/a': 'deny',
      'file.write:/workspace/src/a.py': 'allow',
      'exec:crap4py src': 'deny',
      'exec:python -m pytest -q': 'deny',
      'exec:git status': 'allow',
    } as const,
  })),
  {
    from: `${ATLAS_BEFORE}/research-engineer.md`,
    fields: `mode: subagent\nmodel: ${TERRA}\nsteps: 80\n${RULES_BEFORE}`,
    is: { budget: { modelCalls: 80 } },
    decided: { 'exec:git push origin': 'deny', 'exec:git clean -fd': 'deny', 'agent:lab': 'deny' },
  },
  {
    from: `${ATLAS_BEFORE}/routine-worker.md`,
    fields: `mode: subagent\nmodel: openai/gpt-5.6-luna\nsteps: 60\n${RULES_BEFORE}`,
    is: { model: 'openai/gpt-5.6-luna', budget: { modelCalls: 60 } },
    decided: { 'exec:git reset --hard HEAD': 'deny' },
  },
  {
    from: `${ATLAS_BEFORE}/scientific-critic.md`,
    fields: `mode: subagent\nmodel: ${TERRA}\nsteps: 35\npermission:\n  edit: deny\n  bash: deny\n  task: deny\n  websearch: allow\n  webfetch: allow\n  skill:\n    "*": deny\n    scientific-adversary: allow\n`,
    is: { budget: { modelCalls: 35 } },
    decided: { ...CHANGES_NOTHING, 'agent:lab': 'deny' },
  },
  {
    from: `${ATLAS_BEFORE}/sol-reviewer.md`,
    fields:
      'mode: subagent\nmodel: openai/gpt-5.6-sol\nsteps: 35\npermission:\n  edit: deny\n  bash: deny\n  task: deny\n  websearch: allow\n  webfetch: allow\n',
    is: { model: 'openai/gpt-5.6-sol' },
    decided: { ...CHANGES_NOTHING, 'agent:lab': 'deny' },
  },
  {
    from: `${ATLAS_BEFORE}/lab.md`,
    fields: `mode: all\nmodel: ${TERRA}\nsteps: 80\npermission:\n  task:\n    "*": deny\n    routine-worker: allow\n    explore: allow\n  edit:\n    "*": deny\n    "docs/experiments/*": allow\n`,
    is: { isHidden: false, budget: { modelCalls: 80 } },
    decided: { 'agent:other': 'deny', 'file.write:/workspace/src/a.py': 'deny' },
  },
]

const EXAMPLES = 'agentscope-ai/agentscope-java@c2d43f86e668a21ca4aa0120adf2296251eefa2e:agentscope-examples/agents'
const WORKBENCH =
  'yuanfu999/agent-scope-workbench@4ed1be94f35933f6198617ac42deb68aabaf27af:src/main/resources/workspace/subagents'

const AGENTSCOPE: readonly RealFile[] = [
  {
    from: `${EXAMPLES}/agentscope-dataagent/src/main/resources/shared/agents/data-agent/subagents/data-explorer.md`,
    fields: 'maxIters: 30\n',
    is: { budget: { modelCalls: 30 } },
    decided: { 'exec:ls': 'allow' },
  },
  {
    from: `${EXAMPLES}/agentscope-dataagent/src/main/resources/shared/agents/data-agent/subagents/report-writer.md`,
    fields: 'maxIters: 25\n',
    is: { budget: { modelCalls: 25 } },
  },
  {
    from: `${EXAMPLES}/agentscope-paw/src/main/resources/templates/customer-support/subagents/escalation-router.md`,
    fields: 'name: escalation-router\ntools: [read_file, grep_files, glob_files, session_search, session_history]\n',
    is: { title: 'escalation-router', budget: { modelCalls: 10 } },
    decided: { 'tool:read_text_file': 'allow', 'tool:shell': 'deny', 'agent:other': 'deny' },
  },
  {
    from: `${EXAMPLES}/agentscope-paw/src/main/resources/templates/research-assistant/subagents/fact-checker.md`,
    fields: 'name: fact-checker\ntools: [read_file, grep_files, glob_files]\n',
    is: { title: 'fact-checker' },
    decided: { 'tool:search_text': 'allow', 'tool:write_file': 'deny' },
  },
  {
    from: `${WORKBENCH}/researcher.md`,
    fields: 'workspace:\n  mode: isolated\ntemperature: 0.5\nsteps: 15\n',
    is: { settings: { temperature: 0.5 }, budget: { modelCalls: 15 } },
    unmet: 'workspace.mode: isolated',
  },
  {
    from: `${WORKBENCH}/note-taker.md`,
    fields: 'workspace:\n  mode: shared\npersistSession: true\ntemperature: 0.3\nsteps: 5\n',
    is: { settings: { temperature: 0.3 }, budget: { modelCalls: 5 }, properties: { persistSession: true } },
  },
  {
    from: `${WORKBENCH}/reviewer.md`,
    fields:
      'workspace:\n  mode: isolated\ntemperature: 0.2\nsteps: 8\ntools: [read_file, grep_files, glob_files, list_files, execute]\n',
    is: { budget: { modelCalls: 8 } },
    unmet: 'workspace.mode: isolated',
  },
]

describe.each([
  ['opencode', '.opencode/agents', OPENCODE],
  ['agentscope', 'workspace/subagents', AGENTSCOPE],
] as const)('files of %s', (dialect, place, files) => {
  test.each(files.map((file) => [file.from, file] as const))(
    '%s',
    async (from, { fields, is, decided = {}, unmet }) => {
      const named = path.join(place, path.basename(from))
      const file = path.join(folderWith({ [named]: `---\ndescription: d\n${fields}---\n\nDo it.\n` }), named)
      const agent = await loadAgentFile(file)
      const found = await validateDefinition(file)

      expect(agent).toMatchObject({ dialect, instructions: 'Do it.', ...is })
      expect(agent.unmet.map(({ field }) => field)).toEqual(unmet === undefined ? [] : [unmet])
      expect(found.notices.filter(({ level }) => level === 'error').map(({ code }) => code)).toEqual(
        unmet === undefined ? [] : ['unmet'],
      )
      if (unmet !== undefined) return
      const made = await recipeAgent(agent, { grant: { use: EVERYTHING } })
      for (const [request, verdict] of Object.entries(decided)) {
        expect([request, (await runtime.explain(made, request)).verdict]).toEqual([request, verdict])
      }
    },
  )
})
