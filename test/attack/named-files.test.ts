import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent, createRuntime, type Json } from 'legate'
import { discover, discoverSkills, type OpenOptions, openSubagents, recipeAgent } from 'legate/recipe'
import { diskFiles } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { type Call, calling, childRequests, delegating, subagent } from '../recipe/open/support.ts'
import { folderWith } from '../recipe/support/folder.ts'

const CANARY = 'CANARY-4711'
const ALL = ['tool:*', 'agent:*', 'model:*']

/** A machine with a secret beside the project, and one inside that the rules keep from the agent. */
function machine(files: Readonly<Record<string, string>> = {}) {
  const top = folderWith({
    'secret.txt': CANARY,
    'secret.yaml': recipeText(CANARY),
    'project/.env': `KEY=${CANARY}`,
    ...files,
  })
  return { top, project: path.join(top, 'project') }
}

function recipeText(prompt: string, more = ''): string {
  return `title: T\ndescription: D\nprompt: ${JSON.stringify(prompt)}\n${more}`
}

const FILE_PARAMETER = 'parameters:\n  - { key: doc, input_type: file, requirement: required, description: d }\n'

async function tries(
  call: Call,
  parts: { project: string; use?: readonly string[]; options?: OpenOptions; child?: Call },
) {
  const { project, use = ['file.*:/workspace/**'], options, child } = parts
  const model = delegating([call], (request) => {
    if (child === undefined || request.messages.some(({ role }) => role === 'tool')) return 'done'
    return calling(child.name, child.input)
  })
  await using runtime = createRuntime({ files: diskFiles({ workspace: project }) })
  const grant = { use: [...ALL, ...use], deny: ['file.*:/workspace/.env'] }
  const tools = { ...openSubagents({ cwd: project, nested: true, ...options }) }
  const { text } = await runtime.run(agent({ name: 'host', instructions: '', model, tools, grant }), 'go').result
  return { text, seen: JSON.stringify(model.requests), children: childRequests(model) }
}

describe('I11: what a recipe includes is read under the rules of the run that loads it', () => {
  const INCLUDING = 'title: T\ndescription: D\nprompt: |\n  {% include "NAME" %}\n'
  const loading = (source: string): Call => ({ name: 'load', input: { source } })
  const delegated = (source: string): Call => ({ name: 'delegate', input: { source, instructions: 'go' } })

  test.each<[string, string, (source: string) => Call, OpenOptions]>([
    ['of a sub-recipe', '.env', (source) => subagent({ subrecipe: source }), { subRecipes: { r: 'r.yaml' } }],
    ['by a link', 'link', (source) => subagent({ subrecipe: source }), { subRecipes: { r: 'r.yaml' } }],
    ['of one that was found', '.env', delegated, { surfaces: ['delegate'], discover: true }],
    ['of one that is only read', '.env', loading, { surfaces: ['delegate'], discover: true }],
  ])('a file that they keep is not there: %s', async (_, name, call, options) => {
    const { project } = machine({ 'project/r.yaml': INCLUDING.replace('NAME', name) })
    symlinkSync('.env', path.join(project, 'link'))
    const { text, seen, children } = await tries(call('r'), { project, options })

    expect([seen.includes(CANARY), text.includes(CANARY), children]).toEqual([false, false, []])
  })

  test('what they do not keep is included', async () => {
    const { project } = machine({
      'project/r.yaml': INCLUDING.replace('NAME', 'part.txt'),
      'project/part.txt': 'a part',
    })
    const options = { subRecipes: { r: 'r.yaml' } }
    const { children } = await tries(subagent({ subrecipe: 'r' }), { project, options })

    expect(JSON.stringify(children)).toContain('a part')
  })
})

describe('I11: a file that a model names as a value is one of the runtime’s files', () => {
  const parts = (project: string) => ({ project, use: ['file.read:**'], options: { subRecipes: { r: 'r.yaml' } } })

  test.each<[string, (top: string) => string]>([
    ['outside', (top) => `${top}/secret.txt`],
    ['above', () => '../secret.txt'],
    ['above, from the workspace', () => '/workspace/../secret.txt'],
    ['in other letters', () => '/workspace/%2e%2e/secret.txt'],
    ['with backslashes', () => '/workspace\\..\\..\\secret.txt'],
    ['behind a link', () => 'link.txt'],
    ['behind a folder that is a link', () => 'up/secret.txt'],
    ['the same with its real path', (top) => `${top}/project/r.yaml`],
    ['denied', () => '.env'],
    ['denied, with a dot', () => './.env'],
    ['a pattern', () => '/workspace/*'],
    ['with a slash at its end', () => '/workspace/.env/'],
    ['of the user', () => '~/.profile'],
    ['with a NUL', () => '/workspace/a\0b'],
  ])('%s', async (_, named) => {
    const { top, project } = machine({ 'project/r.yaml': recipeText('Do {{ doc }}', FILE_PARAMETER) })
    symlinkSync('../secret.txt', path.join(project, 'link.txt'))
    symlinkSync('..', path.join(project, 'up'))
    const { text, seen, children } = await tries(
      subagent({ subrecipe: 'r', parameters: { doc: named(top) } }),
      parts(project),
    )

    expect(text).toMatch(/^Failed to build subrecipe: Failed to read parameter file/)
    expect([seen.includes(CANARY), children]).toEqual([false, []])
  })

  test('and what it may read there it gets', async () => {
    const { project } = machine({
      'project/r.yaml': recipeText('Do {{ doc }}', FILE_PARAMETER),
      'project/a.txt': 'this',
    })

    for (const doc of ['a.txt', './a.txt', '/workspace/a.txt']) {
      const { children } = await tries(subagent({ subrecipe: 'r', parameters: { doc } }), parts(project))
      expect(JSON.stringify(children[0]?.messages)).toContain('Do this')
    }
  })
})

describe('I11: what a recipe names is in its folder', () => {
  const subs = (place: string, values = '') =>
    `sub_recipes:\n  - name: inner\n    path: ${JSON.stringify(place)}\n${values === '' ? '' : `    values: ${values}\n`}`

  test.each<[string, (top: string) => string]>([
    ['a recipe beside the folder', () => '../secret.yaml'],
    ['the same by its path', (top) => `${top}/secret.yaml`],
    ['what is not a recipe', () => '../secret.txt'],
    ['a link to one', () => 'linked.yaml'],
    ['a folder that is a link', () => 'up/secret.yaml'],
  ])('a sub-recipe is not %s, and nothing of it is shown', async (_, place) => {
    const { top, project } = machine()
    symlinkSync('../secret.yaml', path.join(project, 'linked.yaml'))
    symlinkSync('..', path.join(project, 'up'))
    writeFileSync(path.join(project, 'evil.yaml'), recipeText('Go', subs(place(top))))
    const inner = { name: 'subagent', input: { subrecipe: 'inner' } as Json }
    const { text, seen } = await tries(subagent({ subrecipe: 'evil' }), {
      project,
      options: { discover: true },
      child: inner,
    })

    expect(text).toMatch(/Failed to build subrecipe: Sub-recipe file is outside of the folder of the recipe/)
    expect(seen).not.toContain(CANARY)
    await expect(recipeAgent(path.join(project, 'evil.yaml'))).rejects.toThrow(/outside of the folder of the recipe/)
  })

  test.each(['.env', 'notes.txt', 'data.json', 'odd.md', 'odd.toml', 'broken.yaml'])(
    'an error shows nothing of %s in that folder',
    async (name) => {
      const { project } = machine({
        'project/notes.txt': `${CANARY} as one long text\nand more\n`,
        'project/data.json': `{"title": ["${CANARY}"], "${CANARY}": 1}`,
        'project/odd.md': `---\n${CANARY}: [\n---\n`,
        'project/odd.toml': `${CANARY} = = 1\n`,
        'project/broken.yaml': `title: T\n  bad: "${CANARY}\n`,
      })
      writeFileSync(path.join(project, 'evil.yaml'), recipeText('Go', subs(name)))
      const inner = { name: 'subagent', input: { subrecipe: 'inner' } as Json }
      const { seen, children } = await tries(subagent({ subrecipe: 'evil' }), {
        project,
        options: { discover: true },
        child: inner,
      })

      expect(children.length).toBeGreaterThan(0)
      expect(JSON.stringify(children)).toMatch(/Failed to (?:build|load) subrecipe/)
      expect(seen).not.toContain(CANARY)
    },
  )

  test('a value names a file beside the recipe, or one of the runtime’s files, and no other', async () => {
    const { top, project } = machine({ 'project/recipes/beside.txt': 'beside', 'project/a.txt': 'of the workspace' })
    const inner = { name: 'subagent', input: { subrecipe: 'inner' } as Json }
    const run = async (doc: string) => {
      mkdirSync(path.join(project, 'recipes'), { recursive: true })
      writeFileSync(path.join(project, 'recipes/inner.yaml'), recipeText('Do {{ doc }}', FILE_PARAMETER))
      const text = recipeText('Go', subs('inner.yaml', JSON.stringify({ doc })))
      writeFileSync(path.join(project, 'recipes/outer.yaml'), text)
      const options = { subRecipes: { outer: 'recipes/outer.yaml' } }
      return tries(subagent({ subrecipe: 'outer' }), { project, options, child: inner })
    }

    expect((await run('beside.txt')).seen).toContain('Do beside')
    expect((await run('a.txt')).seen).toContain('Do of the workspace')
    // A second name beside the recipe of a file elsewhere, and one in the workspace.
    linkSync(path.join(top, 'secret.txt'), path.join(project, 'recipes/hard.txt'))
    linkSync(path.join(top, 'secret.txt'), path.join(project, 'second.txt'))
    for (const doc of [`${top}/secret.txt`, '../../secret.txt', '/etc/passwd', '.env', 'hard.txt', 'second.txt']) {
      const { seen } = await run(doc)
      expect(seen).toContain('Failed to read parameter file')
      expect(seen).not.toContain(CANARY)
    }
  })
})

describe('I11: the cwd of an Agent call is a folder of the runtime’s files', () => {
  const surfaces = ['Agent'] as const
  const call = (cwd: string): Call => ({ name: 'Agent', input: { description: 'x', prompt: 'y', cwd } })

  test.each<[string, (top: string) => string, RegExp]>([
    ['outside', (top) => top, /cwd is not a directory|cwd cannot be used/],
    ['the machine’s own', () => '/etc', /cwd is not a directory|cwd cannot be used/],
    ['a link', () => '/workspace/up', /cwd is not a directory|cwd cannot be used/],
    ['above', () => '/workspace/..', /cwd cannot be used: Invalid logical path/],
    ['a file', () => '/workspace/a.txt', /cwd is not a directory|cwd cannot be used/],
    ['denied', () => '/workspace/private', /cwd cannot be used: Access denied for operation 'list'/],
  ])('%s is refused', async (_, cwd, message) => {
    const { top, project } = machine({ 'project/a.txt': '', 'project/private/x': '' })
    symlinkSync('..', path.join(project, 'up'))
    const use = ['file.list:/workspace', 'file.list:/workspace/up', 'file.list:/workspace/a.txt', 'file.list:/etc']
    const { text, children } = await tries(call(cwd(top)), { project, use, options: { surfaces } })

    expect(text).toMatch(message)
    expect(children).toEqual([])
  })

  test('and there its programs run, while its skills stay those of the project', async () => {
    const skill = (name: string) => `---\nname: ${name}\ndescription: d\n---\nSay ${name}.\n`
    const { project } = machine({
      'project/.agents/skills/ours/SKILL.md': skill('ours'),
      'project/app/here': '',
      'project/app/.agents/skills/theirs/SKILL.md': skill('theirs'),
      'project/r.yaml': recipeText(
        'Go',
        'extensions:\n  - { type: builtin, name: skills }\nretry: { max_retries: 1, checks: [{ type: shell, command: ls here }] }\n',
      ),
    })
    const input = { description: 'x', prompt: 'y', subagent_type: 'r', cwd: '/workspace/app' }
    const use = ['file.*:/workspace/**', `exec:cd ${project}/app && ls *`]
    const options = { surfaces, subRecipes: { r: 'r.yaml' } }
    const { seen, text } = await tries(
      { name: 'Agent', input },
      { project, use, options, child: { name: 'skills_list', input: {} } },
    )

    expect(text).toContain('"status": "completed"')
    expect(seen).toContain('ours - d')
    expect(seen).not.toContain('theirs - d')
  })
})

test('I11: links of a project lead to no definition and no skill outside of it', async () => {
  const text = '---\nname: leaked\ndescription: d\n---\nx\n'
  const { top, project } = machine({
    'far/SKILL.md': text,
    'far/leaked.md': text,
    'project/.agents/skills/x': '',
    'project/.claude/agents/a.md': text.replace('leaked', 'a'),
  })
  symlinkSync(path.join(top, 'far'), path.join(project, '.agents/skills/far'))
  symlinkSync(path.join(top, 'far/leaked.md'), path.join(project, '.claude/agents/leaked.md'))
  symlinkSync('a.md', path.join(project, '.claude/agents/near.md'))
  symlinkSync(path.join(top, 'far'), path.join(project, '.gemini'))
  const options = { cwd: project, home: path.join(top, 'home'), env: {} }

  expect((await discover(options)).definitions.map(({ name }) => name)).toEqual(['a', 'a'])
  expect((await discoverSkills(options)).skills).toEqual([])
})
