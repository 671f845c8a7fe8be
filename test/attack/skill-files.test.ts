import { symlinkSync } from 'node:fs'
import path from 'node:path'
import { agent, createRuntime, type Grant, type Json } from 'legate'
import { discoverSkills, openSubagents, skillsTools } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { diskFiles } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { type Call, resultsIn } from '../recipe/open/support.ts'
import { folderWith } from '../recipe/support/folder.ts'

const CANARY = 'CANARY-4711'
const ALL = ['tool:*', 'agent:*', 'model:*']
const FILES = [...ALL, 'file.*:/workspace/**']

function skill(name: string, body = `Do ${name}.`): string {
  return `---\nname: ${name}\ndescription: about ${name}\n---\n${body}\n`
}

/** A project that is the workspace, a secret in it, one beside it, and a home with a skill. */
function machine(files: Readonly<Record<string, string>> = {}) {
  const top = folderWith({
    'secret.md': skill('secret', CANARY),
    'far/SKILL.md': skill('far', CANARY),
    'project/.env': `KEY=${CANARY}`,
    'project/private/SKILL.md': skill('private', CANARY),
    'project/private/key.txt': CANARY,
    'project/.agents/skills/deploy/SKILL.md': skill('deploy'),
    'project/.agents/skills/deploy/steps.md': 'one, two',
    'project/.agents/skills/deploy/keys/prod.txt': CANARY,
    'home/.agents/skills/own/SKILL.md': skill('own'),
    ...files,
  })
  return { top, project: path.join(top, 'project'), home: path.join(top, 'home') }
}

type Machine = ReturnType<typeof machine>

/** What an agent is told by each of these calls, one after the other. */
async function told({ project, home }: Machine, grant: Grant, calls: readonly Call[]): Promise<readonly string[]> {
  const model = scriptedModel((request) => {
    const call = calls[resultsIn(request).length]
    return call === undefined ? 'done' : { calls: [call] }
  })
  await using runtime = createRuntime({ files: diskFiles({ workspace: project }) })
  const tools = {
    ...skillsTools({ cwd: project, home, env: {} }),
    ...openSubagents({ cwd: project, discover: true, surfaces: ['delegate'] }),
  }
  await runtime.run(agent({ name: 'a', instructions: '', model, tools, grant }), 'go').result
  expect(JSON.stringify(model.requests)).not.toContain(CANARY)
  return resultsIn(model.requests.at(-1) ?? { messages: [] })
}

const call = (name: string, input: Json = {}): Call => ({ name, input })
const skills = (name: string, input: Json = {}): Call => call(`skills_${name}`, input)

describe('I11: a skill is its own folder, and no link leads out of it', () => {
  const find = ({ project, home }: Machine) => discoverSkills({ cwd: project, home, env: {} })

  test.each<[string, string]>([
    ['a file of the project', '../../../private/SKILL.md'],
    ['a file outside of it', '../../../../secret.md'],
    ['a skill beside it', '../deploy/SKILL.md'],
  ])('a SKILL.md that is a link to %s is not read as a skill', async (_, target) => {
    const place = machine({ 'project/.agents/skills/evil/x': '' })
    symlinkSync(target, path.join(place.project, '.agents/skills/evil/SKILL.md'))
    const { skills: found, notices } = await find(place)

    expect(found.map(({ name }) => name)).toEqual(['deploy', 'own'])
    expect(JSON.stringify(notices)).not.toContain(CANARY)
  })

  test('the same in the home of the user, with a word on it', async () => {
    const place = machine({ 'home/.agents/skills/evil/x': '' })
    symlinkSync('../../../../secret.md', path.join(place.home, '.agents/skills/evil/SKILL.md'))
    const { skills: found, notices } = await find(place)

    expect(found.map(({ name }) => name)).toEqual(['deploy', 'own'])
    expect(notices.map(({ message }) => message)).toEqual([
      'this SKILL.md is a link that leads out of the folder of the skill',
    ])
  })

  test('a SKILL.md that is a link within its folder is one, and so is a folder of the user that is a link', async () => {
    const place = machine({ 'project/.agents/skills/alias/text.md': skill('alias'), 'dotfiles/x/SKILL.md': skill('x') })
    symlinkSync('text.md', path.join(place.project, '.agents/skills/alias/SKILL.md'))
    symlinkSync('../../../dotfiles/x', path.join(place.home, '.agents/skills/x'))

    expect((await find(place)).skills.map(({ name }) => name)).toEqual(['alias', 'deploy', 'own', 'x'])
  })

  test('a folder of the project that links to a folder outside of the project holds no skills', async () => {
    const place = machine()
    symlinkSync('../../../far', path.join(place.project, '.agents/skills/far'))
    symlinkSync('../../far', path.join(place.project, '.agents/far'))

    expect((await find(place)).skills.map(({ name }) => name)).toEqual(['deploy', 'own'])
  })

  test.each(['../../../.env', '/etc/hostname', 'out.txt', 'up/.env', 'steps.md/../../../../.env', './steps.md'])(
    'no file beside it is %j',
    async (file) => {
      const place = machine()
      symlinkSync('../../../.env', path.join(place.project, '.agents/skills/deploy/out.txt'))
      symlinkSync('../../..', path.join(place.project, '.agents/skills/deploy/up'))
      const grant = { use: FILES, deny: ['file.*:/workspace/.agents/skills/deploy/keys/**'] }
      const [answer] = await told(place, grant, [skills('read', { name: 'deploy', file })])

      expect(answer).toMatch(/^Error: deploy has no file .* It has: steps\.md$/)
    },
  )
})

describe('I11: what rules keep from an agent is no skill of it', () => {
  const rest = [
    skills('list'),
    skills('load', { name: 'deploy' }),
    skills('read', { name: 'deploy', file: 'keys/prod.txt' }),
    skills('read', { name: 'deploy', file: 'steps.md' }),
  ]

  test('a file beside a skill that is denied is not there', async () => {
    const grant = { use: FILES, deny: ['file.read:/workspace/**/keys/**'] }
    const [list, load, denied, open] = await told(machine(), grant, rest)

    expect(list).toBe('deploy - about deploy\nown - about own')
    expect(load).toContain('Files for skills_read: steps.md')
    expect(denied).toBe('Error: deploy has no file "keys/prod.txt". It has: steps.md')
    expect(open).toBe('one, two')
  })

  test.each<[string, Grant]>([
    ['denied', { use: FILES, deny: ['file.read:/workspace/.agents/**'] }],
    ['asked for', { use: FILES, ask: ['file.read:/workspace/.agents/**'] }],
    ['not among those it may read', { use: [...ALL, 'file.read:/workspace/docs/**'] }],
  ])('a skill that is %s is not there, under no name of it', async (_, grant) => {
    const calls = [...rest, call('load', { source: 'deploy' }), call('delegate', { source: 'deploy' }), call('load')]
    const [list, load, ...others] = await told(machine(), grant, calls)

    expect(list).toBe('own - about own')
    expect(load).toBe('Error: there is no skill "deploy". There are: own')
    expect(others.slice(2, 4).join('\n')).toMatch(/Source 'deploy' not found.*\n.*Source 'deploy' not found/)
    expect(others[4]).not.toContain('deploy')
  })

  test('the folder that a link leads to is what rules are asked about', async () => {
    const place = machine()
    symlinkSync('../../private', path.join(place.project, '.agents/skills/private'))
    const deny = ['file.*:/workspace/private/**', 'file.*:/workspace/**/keys/**']
    const [list, load] = await told(place, { use: FILES, deny }, [skills('list'), skills('load', { name: 'private' })])

    expect(list).toBe('deploy - about deploy\nown - about own')
    expect(load).toMatch(/there is no skill "private"/)
  })

  test('a definition that is denied cannot be loaded or started either, nor read of in the description', async () => {
    const text = `---\nname: boss\ndescription: ${CANARY}\n---\n${CANARY}\n`
    const grant = { use: FILES, deny: ['file.read:/workspace/.claude/**', 'file.*:/workspace/**/keys/**'] }
    const calls = [call('load'), call('load', { source: 'boss' }), call('delegate', { source: 'boss' })]
    const answers = await told(machine({ 'project/.claude/agents/boss.md': text }), grant, calls)

    expect(answers[0]).not.toContain('boss')
    expect(answers.slice(1).join('\n')).toMatch(/Source 'boss' not found.*\n.*Source 'boss' not found/)
  })

  test('a grant without a rule for files says nothing of skills', async () => {
    const [list, , , open] = await told(
      machine({ 'project/.agents/skills/deploy/keys/prod.txt': 'k' }),
      { use: ALL },
      rest,
    )

    expect([list, open]).toEqual(['deploy - about deploy\nown - about own', 'one, two'])
  })
})
