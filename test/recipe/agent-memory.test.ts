import path from 'node:path'
import { agent, createRuntime, type Grant } from 'legate'
import { convert, loadAgentFile, loadDefinition, openSubagents, recipeAgent } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { type Call, childRequests, delegating, resultsIn, subagent, systemOf } from './open/support.ts'
import { folderWith, refusalOf } from './support/folder.ts'

const GRANT: Grant = { use: ['tool:*', 'agent:*', 'model:*'] }
const FILE = '.claude/agents/helper.md'
const markdown = (fields: string, name = 'helper') =>
  `---\nname: ${name}\ndescription: Helps\n${fields}\n---\n\nYou help.\n`
const remember = (text: string): Call => ({ name: 'memory_remember', input: { category: 'notes', text } })

interface Asked {
  readonly directory: string
  readonly fields?: string
  readonly name?: string
  readonly folder?: string
  readonly owner?: string
  readonly calls?: readonly Call[]
}

/** Runs an agent once, and gives the system prompt of its first call and the tools it was offered. */
async function runOnce({
  directory,
  fields = 'memory: user',
  name = 'helper',
  folder = folderWith({}),
  owner,
  calls = [],
}: Asked) {
  const file = path.join(folderWith({ [FILE]: markdown(fields, name) }), FILE)
  const model = scriptedModel((request) => (resultsIn(request).length === 0 && calls.length > 0 ? { calls } : 'Done.'))
  await using runtime = createRuntime({ model })
  const made = await recipeAgent(file, { grant: GRANT, memory: { directory }, cwd: folder })
  await runtime.run(made, 'Go.', owner === undefined ? {} : { owner }).result
  return {
    system: systemOf(model.requests[0] ?? { messages: [] }),
    tools: model.requests[0]?.tools.map((tool) => tool.name) ?? [],
  }
}

describe('the memory of an agent of Claude Code', () => {
  test('is told in later runs, and the tools for it are there beside its own list', async () => {
    const directory = folderWith({})
    const first = await runOnce({ directory, fields: 'memory: user\ntools: Read', calls: [remember('likes tests')] })
    const second = await runOnce({ directory, fields: 'memory: user\ntools: Read' })

    expect(first.system).toContain('You have remembered nothing yet.')
    expect(second.system).toContain('- likes tests')
    expect(second.tools).toEqual(
      expect.arrayContaining(['memory_remember', 'memory_recall', 'memory_forget', 'read_text_file']),
    )
    expect(second.tools).not.toContain('write_file')
  })

  test('belongs to the agent and to the owner', async () => {
    const directory = folderWith({})
    await runOnce({ directory, owner: 'ann', calls: [remember('secret of ann')] })

    expect((await runOnce({ directory, owner: 'ann' })).system).toContain('secret of ann')
    expect((await runOnce({ directory, owner: 'bob' })).system).not.toContain('secret of ann')
    expect((await runOnce({ directory })).system).not.toContain('secret of ann')
    expect((await runOnce({ directory, owner: 'ann', name: 'other' })).system).not.toContain('secret of ann')
  })

  test.each(['project', 'local'])('`memory: %s` counts in its project only', async (memory) => {
    const [directory, folder] = [folderWith({}), folderWith({})]
    await runOnce({ directory, folder, fields: `memory: ${memory}`, calls: [remember('uses pnpm')] })

    expect((await runOnce({ directory, folder, fields: `memory: ${memory}` })).system).toContain('uses pnpm')
    expect((await runOnce({ directory, fields: `memory: ${memory}` })).system).not.toContain('uses pnpm')
  })

  test('is deleted with its owner', async () => {
    const directory = folderWith({})
    await runOnce({ directory, owner: 'ann', calls: [remember('secret of ann')] })
    const file = path.join(folderWith({ [FILE]: markdown('memory: user') }), FILE)
    const made = await recipeAgent(file, { grant: GRANT, memory: { directory } })
    await using runtime = createRuntime({ model: scriptedModel(['Done.']), agents: [made] })
    await runtime.forgetOwner('ann')

    expect((await runOnce({ directory, owner: 'ann' })).system).not.toContain('secret of ann')
  })

  test('is told up to 200 lines, the newest, with a hint at the others', async () => {
    const directory = folderWith({})
    const many = Array.from({ length: 210 }, (_, at) => remember(`fact ${at + 1}.`))
    for (let at = 0; at < many.length; at += 30) await runOnce({ directory, calls: many.slice(at, at + 30) })
    const { system } = await runOnce({ directory })

    expect(system).toContain('- fact 210.')
    expect(system.match(/- fact \d+\./g)).toHaveLength(200)
    expect(system).toContain('memory_recall finds it')
  })

  test('is the memory of the agent as a subagent too', async () => {
    const directory = folderWith({})
    await runOnce({ directory, calls: [remember('likes tests')] })
    const model = delegating([subagent({ subrecipe: 'helper' })])
    const subRecipes = { helper: path.join(folderWith({ [FILE]: markdown('memory: user') }), FILE) }
    const host = agent({
      name: 'host',
      instructions: 'You delegate.',
      model,
      tools: openSubagents({ subRecipes, memory: { directory } }),
      grant: GRANT,
    })
    await using runtime = createRuntime({})
    await runtime.run(host, 'Go.').result

    expect(systemOf(childRequests(model)[0] ?? { messages: [] })).toContain('- likes tests')
  })

  test('in a form that is not known keeps the agent from starting', async () => {
    const file = path.join(folderWith({ [FILE]: markdown('memory: team') }), FILE)

    expect(await refusalOf(loadDefinition(file))).toMatchObject({
      problem: expect.stringContaining('`memory: team` in helper.md'),
    })
  })

  test('is kept by a conversion or refuses it', async () => {
    const agent = await loadAgentFile(path.join(folderWith({ [FILE]: markdown('memory: project') }), FILE))

    expect((await convert(agent, 'claude')).text).toContain('memory: project')
    await expect(convert(agent, 'cursor')).rejects.toThrow('`memory` cannot be said')
  })
})
