import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { discover, discoverSkills, findDefinition, mentionedIn, readSkillFile, skillInstructions } from 'legate/recipe'
import { describe, expect, test } from 'vitest'
import { folderWith, minimal, refusalOf } from './support/folder.ts'

const agent = (name: string, more = '') => `---\nname: ${name}\ndescription: about ${name}${more}\n---\n\nDo it.\n`
const recipe = (title: string) => `title: ${title}\ndescription: about ${title}\nprompt: P\n`

function places(files: Readonly<Record<string, string>>) {
  const folder = folderWith({ 'project/x': '', 'home/x': '', ...files })
  const options = {
    cwd: path.join(folder, 'project'),
    home: path.join(folder, 'home'),
    env: {} as Record<string, string>,
  }
  return { folder, options }
}

describe('discovery', () => {
  test('a broken recipe is told with its line and harms no other', async () => {
    const { options } = places({
      'project/.goose/recipes/good.yaml': recipe('Good'),
      'project/.goose/recipes/bad.yaml': 'title: Bad\ndescription: x: y\n',
      'project/.goose/recipes/untitled.yaml': 'description: D\nprompt: P\n',
    })
    const { definitions, notices } = await discover(options)

    expect(definitions.map(({ name }) => name)).toEqual(['good'])
    expect(notices.map(({ file, line, level }) => [path.basename(file), line, level])).toEqual([
      ['bad.yaml', 2, 'error'],
      ['untitled.yaml', 1, 'error'],
    ])
  })

  test('files that are no agents are passed over; broken ones are told', async () => {
    const { options } = places({
      'project/.claude/agents/README.md': '# Agents\n',
      'project/.claude/agents/notes.md': '---\ntitle: notes\n---\nx',
      'project/.claude/agents/good.md': agent('good'),
      'project/.claude/agents/bad.md': '---\nname: bad\ntools: [Read\n---\nx',
      'project/notes.yaml': 'a: 1\n',
      'project/docker-compose.yml': 'services:\n  title: x\n  prompt: y\n',
      'project/broken.yaml': 'title: [\nprompt: x\n',
    })
    const { definitions, notices } = await discover(options)

    expect(definitions.map(({ name }) => name)).toEqual(['good'])
    expect(notices.map(({ file }) => path.basename(file))).toEqual(['broken.yaml', 'bad.md'])
  })

  test('of one name the project wins, both are shown, and the spelling of a path decides nothing', async () => {
    const { folder, options } = places({
      'home/.claude/agents/a.md': agent('same'),
      'project/.claude/agents/zzz.md': agent('same'),
      'project/.goose/agents/a.md': agent('other'),
      'project/.claude/agents/a.md': agent('other'),
      'home/.agents/recipes/same.yaml': recipe('R'),
    })
    const { definitions } = await discover(options)
    const shown = definitions.map(({ name, file, shadowedBy }) => [
      name,
      path.relative(folder, file),
      shadowedBy && path.relative(folder, shadowedBy),
    ])

    expect(shown).toEqual([
      ['other', 'project/.goose/agents/a.md', null],
      ['other', 'project/.claude/agents/a.md', 'project/.goose/agents/a.md'],
      ['same', 'project/.claude/agents/zzz.md', null],
      ['same', 'home/.agents/recipes/same.yaml', 'project/.claude/agents/zzz.md'],
      ['same', 'home/.claude/agents/a.md', 'project/.claude/agents/zzz.md'],
    ])
  })

  test('the order of places: recipes and agents of the project, then those of the home folder', async () => {
    const { folder, options } = places({
      'project/r.yaml': recipe('x'),
      'project/.goose/recipes/r.yaml': recipe('x'),
      'project/.agents/recipes/r.json': JSON.stringify({ title: 'x', description: 'd', prompt: 'p' }),
      'project/.goose/agents/a.md': agent('r'),
      'project/.claude/agents/a.md': agent('r'),
      'project/.agents/agents/a.md': agent('r'),
      'named/r.yaml': recipe('x'),
      'home/.goose/recipes/r.yaml': recipe('x'),
      'home/.agents/recipes/r.yaml': recipe('x'),
      'home/.goose/agents/a.md': agent('r'),
      'home/.agents/agents/a.md': agent('r'),
      'home/.claude/agents/a.md': agent('r'),
    })
    const { definitions } = await discover({ ...options, env: { GOOSE_RECIPE_PATH: path.join(folder, 'named') } })

    expect(definitions.map(({ file }) => path.relative(folder, file))).toEqual([
      'project/r.yaml',
      'project/.goose/recipes/r.yaml',
      'project/.agents/recipes/r.json',
      'project/.goose/agents/a.md',
      'project/.claude/agents/a.md',
      'project/.agents/agents/a.md',
      'named/r.yaml',
      'home/.goose/recipes/r.yaml',
      'home/.agents/recipes/r.yaml',
      'home/.goose/agents/a.md',
      'home/.agents/agents/a.md',
      'home/.claude/agents/a.md',
    ])
  })

  test('a person finds recipes, agents and skills of their own in ~/.legate, as in a project', async () => {
    const { folder, options } = places({
      'home/.legate/recipes/r.yaml': recipe('x'),
      'home/.config/legate/recipes/r.yaml': recipe('x'),
      'home/.legate/agents/a.md': agent('a'),
      'home/.config/legate/agents/a.md': agent('a'),
      'home/.legate/skills/s/SKILL.md': agent('s'),
    })
    const { definitions } = await discover(options)

    expect(definitions.map(({ file, dialect }) => [path.relative(folder, file), dialect])).toEqual([
      ['home/.legate/recipes/r.yaml', 'recipe'],
      ['home/.config/legate/recipes/r.yaml', 'recipe'],
      ['home/.legate/agents/a.md', 'legate'],
      ['home/.config/legate/agents/a.md', 'legate'],
    ])
    expect((await discoverSkills(options)).skills.map(({ name }) => name)).toEqual(['s'])
  })

  test('.yml is taken, folders below are looked through, files that begin with _ are not taken', async () => {
    const { options } = places({
      'project/.goose/recipes/deep/er/one.yml': recipe('One'),
      'project/.gemini/agents/_draft.md': agent('draft'),
      'project/.claude/agents/team/two.md': agent('two'),
      'project/.opencode/agent/team/three.md': '---\ndescription: d\n---\nx',
    })

    expect((await discover(options)).definitions.map(({ name, dialect }) => [name, dialect])).toEqual([
      ['one', 'recipe'],
      ['two', 'claude'],
      ['team/three', 'opencode'],
    ])
  })

  test('two of one name in one folder are an error for whoever asks for the name', async () => {
    const { options } = places({
      'project/.claude/agents/a.md': agent('same'),
      'project/.claude/agents/b.md': agent('same'),
    })
    const found = await discover(options)

    expect(found.notices).toMatchObject([{ level: 'error', code: 'ambiguous' }])
    const refusal = await refusalOf(Promise.resolve().then(() => findDefinition('same', found)))
    expect(refusal).toMatchObject({
      problem: expect.stringMatching(/^"same" is the name of two definitions in one folder; the other is .*a\.md$/),
      hint: 'Rename one of them.',
      line: 1,
    })
  })

  test('of a recipe in two forms .yaml wins over .yml and .json, and a notice names the other file', async () => {
    const { options } = places({
      'project/.goose/recipes/a.json': JSON.stringify({ title: 'x', description: 'd', prompt: 'p' }),
      'project/.goose/recipes/a.yaml': recipe('x'),
    })
    const found = await discover(options)

    expect(path.basename(findDefinition('a', found).file)).toBe('a.yaml')
    expect(found.notices).toMatchObject([{ level: 'warning', code: 'shadowed' }])
  })

  test('an unknown name is answered with those that are near', async () => {
    const { options } = places({
      'project/.claude/agents/a.md': agent('deploy'),
      'project/.claude/agents/b.md': agent('review'),
    })
    const found = await discover(options)
    const asked = async (name: string) =>
      (await refusalOf(Promise.resolve().then(() => findDefinition(name, found)))).problem

    expect(await asked('deploy-prod')).toBe("Source 'deploy-prod' not found. Did you mean: deploy?")
    expect(await asked('zzz')).toBe("Source 'zzz' not found. Use load() to see available sources.")
  })

  test('an @ and a known name is a mention; what is unknown stays text', async () => {
    const { options } = places({
      'project/.claude/agents/a.md': agent('reviewer'),
      'project/.opencode/agent/team/b.md': '---\ndescription: d\n---\nx',
    })
    const { definitions } = await discover(options)
    const names = (text: string) => mentionedIn(text, definitions).map(({ name }) => name)

    expect(names('@reviewer check auth.rs')).toEqual(['reviewer'])
    expect(names('ask (@reviewer), then @team/b.')).toEqual(['reviewer', 'team/b'])
    expect(names('mail me@reviewer.org @x @reviewers')).toEqual([])
  })

  test('a file that was changed is read as it is now', async () => {
    const { options } = places({ 'project/.claude/agents/a.md': agent('a') })
    const before = await discover(options)
    writeFileSync(path.join(options.cwd, '.claude/agents/a.md'), agent('a', ', newly'))

    expect([before, await discover(options)].map((found) => findDefinition('a', found).description)).toEqual([
      'about a',
      'about a, newly',
    ])
  })

  test('from a subfolder, agents and recipes are found up to the root of the repository, the nearer first', async () => {
    const { folder, options } = places({
      'project/.git/HEAD': '',
      'project/.claude/agents/top.md': agent('top'),
      'project/.claude/agents/both.md': agent('both', ', at the top'),
      'project/packages/a/.claude/agents/both.md': agent('both', ', near'),
      'project/packages/.goose/recipes/middle.yaml': recipe('Middle'),
      'project/packages/a/src/x': '',
      'project/loose.yaml': recipe('Loose'),
      '.claude/agents/above.md': agent('above'),
      'home/.claude/agents/far.md': agent('far'),
    })
    const found = await discover({ ...options, cwd: path.join(folder, 'project/packages/a/src') })

    expect(found.definitions.map(({ name, scope }) => [name, scope])).toEqual([
      ['both', 'project'],
      ['middle', 'project'],
      ['both', 'project'],
      ['top', 'project'],
      ['far', 'home'],
    ])
    expect(findDefinition('both', found).description).toBe('about both, near')
  })

  test('the root of a worktree or submodule ends the way up; outside of a repository only the folder itself counts', async () => {
    const { folder, options } = places({
      'project/.git/HEAD': '',
      'project/.claude/agents/top.md': agent('top'),
      'project/sub/.git': 'gitdir: ../.git/modules/sub\n',
      'project/sub/deep/x': '',
      'loose/.claude/agents/top.md': agent('top'),
      'loose/deep/x': '',
    })
    const names = async (cwd: string) => {
      const { definitions } = await discover({ ...options, cwd: path.join(folder, cwd) })
      return definitions.map(({ name }) => name)
    }

    expect(await names('project/sub/deep')).toEqual([])
    expect(await names('loose/deep')).toEqual([])
    expect(await names('loose')).toEqual(['top'])
  })

  test('links to themselves and what cannot be read end nothing', async () => {
    const { options } = places({ 'project/.claude/agents/a.md': agent('a'), 'project/.claude/skills/x': '' })
    const folder = path.join(options.cwd, '.claude/agents')
    symlinkSync('self', path.join(folder, 'self'))
    symlinkSync('self.md', path.join(folder, 'self.md'))
    symlinkSync('SKILL.md', path.join(options.cwd, '.claude/skills/SKILL.md'))
    symlinkSync('.gemini', path.join(options.cwd, '.gemini'))
    writeFileSync(path.join(options.cwd, '.cursor'), 'a file where a folder is looked for')

    const { definitions } = await discover(options)

    expect(definitions.map(({ name }) => name)).toEqual(['a'])
    expect((await discoverSkills(options)).skills).toEqual([])
  })

  test('links in a circle, folders named like files and pipes are survived', async () => {
    const { options } = places({ 'project/.claude/agents/a.md': agent('a') })
    const folder = path.join(options.cwd, '.claude/agents')
    symlinkSync('..', path.join(folder, 'up'))
    symlinkSync('nowhere', path.join(folder, 'gone.md'))
    mkdirSync(path.join(folder, 'folder.md'))
    writeFileSync(path.join(folder, 'binary.md'), new Uint8Array([0, 1, 2]))

    const { definitions, notices } = await discover(options)

    expect(definitions.map(({ name }) => name)).toEqual(['a'])
    expect(notices.map(({ message }) => message)).toEqual(['this is a binary file, not text'])
  })
})

describe('skills', () => {
  const skill = (name: string, more = '', body = 'Do it.') =>
    `---\nname: ${name}\ndescription: about ${name}\n${more}---\n\n${body}\n`

  test('are found in folders below, without the files of skills inside; links out are refused', async () => {
    const { folder, options } = places({
      'project/.claude/skills/outer/SKILL.md': skill('outer'),
      'project/.claude/skills/outer/scripts/run.sh': 'echo',
      'project/.claude/skills/outer/inner/SKILL.md': skill('inner'),
      'project/.claude/skills/outer/inner/own.txt': 'x',
      'project/.claude/skills/slash/SKILL.md': skill('a/b'),
      'project/.claude/skills/none/readme.md': 'x',
      'home/.claude/skills/far/SKILL.md': skill('outer'),
      'secret.txt': 'SECRET',
    })
    symlinkSync('../../../../secret.txt', path.join(options.cwd, '.claude/skills/outer/leak.txt'))
    symlinkSync('..', path.join(options.cwd, '.claude/skills/outer/loop'))
    const { skills, notices } = await discoverSkills(options)
    const [outer] = skills

    expect(skills.map(({ name, files }) => [name, files])).toEqual([
      ['outer', ['scripts/run.sh']],
      ['inner', ['own.txt']],
    ])
    expect(notices.map(({ message }) => message)).toEqual(['the skill "a/b" has a slash in its name'])
    if (outer === undefined) throw new Error('no skill')
    expect(path.relative(folder, outer.file)).toBe('project/.claude/skills/outer/SKILL.md')
    expect(await readSkillFile(outer, 'scripts/run.sh')).toBe('echo')
    for (const name of ['leak.txt', '../../../../../secret.txt', '/etc/passwd']) {
      const { problem } = await refusalOf(readSkillFile(outer, name))
      expect(problem).toMatch(/resolves outside the skill directory|no such file/)
    }
  })

  test.each([
    ['All: $ARGUMENTS.', 'All: one "two three".'],
    ['$ARGUMENTS[1] then $1', 'two three then one'],
    ['$file at $line, $PATH', 'one at two three, $PATH'],
    ['Nothing.', 'Nothing.\n\nARGUMENTS: one "two three"'],
    ['$9!', '!'],
  ])('%s is %s', async (body, expected) => {
    const { options } = places({ 'project/.agents/skills/s/SKILL.md': skill('s', 'arguments: [file, line]\n', body) })
    const [found] = (await discoverSkills(options)).skills

    expect(found && skillInstructions(found, 'one "two three"')).toBe(expected)
    expect(found && skillInstructions(found, '')).not.toContain('ARGUMENTS:')
  })
})

test('recipes of the project folder itself are those that look like one', async () => {
  const { options } = places({
    'project/a.yaml': `${minimal}prompt: P\n`,
    'project/b.yaml': 'on: push\njobs: {}\n',
    'project/sub/c.yaml': `${minimal}prompt: P\n`,
  })

  expect((await discover(options)).definitions.map(({ name }) => name)).toEqual(['a'])
})
