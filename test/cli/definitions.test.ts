import { beforeEach, describe, expect, test } from 'vitest'
import { Place, skipUnlessBuilt } from './support/cli.ts'
import { project } from './support/project.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

const RECIPE =
  'title: T\ndescription: D\nprompt: "{{ a }}"\nparameters:\n  - {key: a, input_type: string, requirement: required, description: d}\n'
const AGENT =
  '---\nname: reviewer\ndescription: Reviews.\ntools: Read, SendMessage\nmodel: sonnet\ncolor: red\nspeed: 1\n---\n\nYou review.\n'
const KEYS = { LEGATE_MODEL: 'openai/gpt-5', OPENAI_API_KEY: 'key', ANTHROPIC_API_KEY: '' }

test('a folder that has the name of a definition does not hide it', async () => {
  const place = project({ '.claude/agents/reviewer.md': AGENT, 'reviewer/notes.txt': '', 'other/notes.txt': '' })
  const found = await place.run(['explain', 'reviewer'], { env: KEYS })
  const folder = await place.run(['explain', 'other'], { env: KEYS })

  expect(found).toMatchObject({ code: 0, stdout: expect.stringContaining('.claude/agents/reviewer.md') })
  expect(folder).toMatchObject({ code: 2, stderr: expect.stringContaining('it is a folder, not a file') })
})

describe('legate validate', () => {
  test('tells what is wrong with file and line, looks at every file, and answers with its exit code; nothing in a file can do anything to a terminal', async () => {
    const place = project({
      'good.yaml': RECIPE,
      'bad.yaml': 'title: T\nprompt: "{{ b }}"\nsettings: {temperature: warm}\n',
      '.claude/agents/a.md': AGENT,
      'evil.yaml': 'title: "\\e]0;pwned\\a"\n"\\e[31mkey": 1\n',
    })
    const files = ['good.yaml', 'bad.yaml', 'missing.yaml', '.claude/agents/a.md', 'evil.yaml']
    const { code, stdout, stderr } = await place.run(['validate', ...files], { env: KEYS })

    expect([code, stderr]).toEqual([1, ''])
    expect(stdout.split('\n').slice(0, 8)).toEqual([
      'good.yaml: ok (recipe, good; model openai/gpt-5)',
      'bad.yaml:1: error: missing field `description`. Add "description: ...".',
      'bad.yaml:3: error: settings.temperature: invalid type: string "warm", expected f32',
      'bad.yaml:2: error: Missing definitions for parameters in the recipe file: b. Define it under "parameters"; to keep the braces as text, write {% raw %}{{ b }}{% endraw %}.',
      'missing.yaml: error: cannot be read: there is no such file. Check the path; it is taken from the current folder.',
      '.claude/agents/a.md:4: warning: the tool SendMessage is not available here: the agent has it only where its host has a tool named SendMessage. Give the host such a tool, or an MCP server for it.',
      '.claude/agents/a.md:7: note: unknown key `speed`. It is kept and has no effect.',
      '.claude/agents/a.md: ok (claude, reviewer; anthropic/claude-sonnet-5: it needs a key: set ANTHROPIC_API_KEY.)',
    ])
    expect(stdout).toContain('\nevil.yaml:')
    expect(stdout).not.toMatch(/[^\P{Cc}\n]/u)
  })

  test('--json is for programs, --lenient for recipes that can still be used', async () => {
    const place = project({
      'a.yaml': `${RECIPE}  - {key: unused, input_type: string, requirement: required, description: d}\n`,
    })
    const strict = await place.run(['validate', 'a.yaml', '--json'])
    const lenient = await place.run(['validate', 'a.yaml', '--json', '--lenient'])

    expect([strict.code, lenient.code]).toEqual([1, 0])
    expect(JSON.parse(strict.stdout)).toMatchObject({
      ok: false,
      notices: [{ level: 'error', line: 6, message: 'Unnecessary parameter definitions: unused.' }],
    })
    expect(JSON.parse(lenient.stdout)).toMatchObject({
      ok: true,
      name: 'a',
      dialect: 'recipe',
      notices: [{ level: 'warning' }],
    })
  })

  test('the name of a file can do nothing to a terminal, here and in doctor', async () => {
    const place = project({ 'a\u001b]0;owned\u0007\u001b[2J.yaml': RECIPE, 'b\u001b[31m.yaml': 'title: [\n' })
    const file = 'a\u001b]0;owned\u0007\u001b[2J.yaml'
    const shown = [
      await place.run(['validate', file, 'b\u001b[31m.yaml', 'no\u001b[31m.yaml']),
      await place.run(['doctor']),
      await place.run(['doctor', '--all']),
      await place.run(['run', file]),
      await place.run(['explain', file, '-p', 'a=1']),
      await place.run(['convert', file, '--to', 'claude']),
    ]

    for (const { stdout, stderr } of shown) expect(stdout + stderr).not.toMatch(/[^\P{Cc}\n]/u)
    expect(shown[0]?.stdout).toContain(': ok (recipe')
  })

  test.each(['print()\n', 'a: [\n'])('another type of file is told as such, here and by convert: %j', async (text) => {
    const place = project({ 'a.py': text, 'good.yaml': RECIPE })
    const validated = await place.run(['validate', 'a.py', 'good.yaml'], { env: KEYS })
    const converted = await place.run(['convert', 'a.py', '--to', 'claude'])
    const what = 'neither a recipe (.yaml, .json) nor an agent file (.md, .toml). Name it by its kind, if it is one.'

    expect(validated).toMatchObject({
      code: 1,
      stdout: `a.py: error: ${what}\ngood.yaml: ok (recipe, good; model openai/gpt-5)\n`,
    })
    expect(converted).toMatchObject({ code: 2, stdout: '', stderr: `legate: a.py: ${what}\n` })
  })

  test('without a file it says how it is used', async () => {
    const { code, stderr } = await new Place().run(['validate'])

    expect([code, stderr]).toEqual([
      2,
      'legate: missing FILE: legate validate FILE... [--lenient] [--json]. See legate validate --help.\n',
    ])
  })
})

describe('legate doctor', () => {
  const files = {
    'own.yaml': RECIPE,
    '.claude/agents/a.md': AGENT,
    'home/.claude/agents/a.md': AGENT,
    '.goose/recipes/broken.yaml': 'title: [\n',
    '.goose/recipes/wrong.yaml': 'title: W\ndescription: D\nprompt: "{{ x }}"\n',
  }

  test('names a broken recipe among other files of the folder, and leaves other files alone', async () => {
    const place = project({
      'mine.yaml': 'title: Mine\ndescription: D\nprompt: [\n',
      'compose.yaml': 'services: [\n',
      'notes.yaml': '# the title of a prompt\nlist: [\n',
    })
    const { code, stdout } = await place.run(['doctor'], { env: KEYS })

    expect(code).toBe(1)
    expect(stdout).toMatch(/^mine\.yaml:\d+/m)
    expect(stdout).not.toMatch(/compose|notes/)
  })

  test('shows what is found, from where, what shadows what and what is wrong', async () => {
    const { code, stdout } = await project(files).run(['doctor'], { env: KEYS })
    const lines = stdout.split('\n')

    expect(code).toBe(1)
    expect(lines[0]).toMatch(/^NAME +DIALECT +FROM +MODEL +FILE$/)
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^own +recipe +project +openai\/gpt-5 +own\.yaml$/),
        expect.stringMatching(/^wrong +recipe +project +- +\.goose\/recipes\/wrong\.yaml {2}cannot be used$/),
        expect.stringMatching(/^ {2}wrong\.yaml:3: error: Missing definitions for parameters/),
        expect.stringMatching(/^reviewer +claude +project +anthropic\/claude-sonnet-5 +\.claude\/agents\/a\.md$/),
        expect.stringMatching(/^ {2}a\.md:4: warning: the tool SendMessage/),
        expect.stringMatching(
          /^reviewer +claude +home +anthropic\/claude-sonnet-5 +home\/\.claude\/agents\/a\.md {2}shadowed by \.claude\/agents\/a\.md$/,
        ),
        expect.stringMatching(/^\.goose\/recipes\/broken\.yaml:\d: error: not valid YAML/),
        '4 definitions, 1 shadowed, 2 broken',
      ]),
    )
    expect(stdout).toContain('note: unknown key `speed`')
  })

  test('--all shows notes too; --json is one definition a line; a sound project is code 0', async () => {
    const { 'own.yaml': own, '.claude/agents/a.md': agent } = files
    const place = project({ 'own.yaml': own, '.claude/agents/a.md': agent })
    const all = await place.run(['doctor', '--all'])
    const json = await place.run(['doctor', '--json'])

    expect([all.code, json.code]).toEqual([0, 0])
    expect(all.stdout).toContain('note: unknown key `speed`')
    expect(
      json.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toMatchObject([
      { name: 'own', kind: 'recipe', scope: 'project', isUsable: true, shadowedBy: null },
      { name: 'reviewer', kind: 'agent', dialect: 'claude', notices: [{ level: 'warning' }, { level: 'note' }] },
      { notice: { code: 'runtime_file', level: 'warning' } },
    ])
  })

  test('where there is nothing it says so', async () => {
    const { code, stdout } = await project({}).run(['doctor'])

    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^There are no recipes and no agent files here, nor in your home folder\.\n.*store, runs\.db, lies/s,
    )
  })
})

describe('legate convert', () => {
  test('writes no control character of a file to a terminal, and every one to a file', async () => {
    const place = project({
      'bad.yaml': `${HOSTILE_HEAD}parameters: [{key: k, input_type: "Z\\e]0;owned\\a", requirement: required, description: x}]\n`,
      'ok.yaml': `${HOSTILE_HEAD}`,
    })
    const terminal = new Terminal(place, ['convert', 'ok.yaml', '--to', 'claude'], { cols: 120, rows: 24 })
    const [bad, ok] = await Promise.all([
      place.run(['convert', 'bad.yaml', '--to', 'claude']),
      place.run(['convert', 'ok.yaml', '--to', 'claude']),
      terminal.ended,
    ])

    expect(bad.stderr).toContain('Z\\u001b]0;owned\\u0007')
    expect(bad.stderr).not.toContain('\u001b')
    expect(ok.stdout).toContain('Z\u001b]0;owned\u0007')
    expect(terminal.screen.all).toContain('Z\\u001b]0;owned\\u0007')
    expect(terminal.written).not.toContain('\u001b]')
  })

  test('a file that the dialect cannot say in full is not written: the error lists what would be lost', async () => {
    const place = project({ '.claude/agents/a.md': AGENT })
    const { code, stdout, stderr } = await place.run(['convert', '.claude/agents/a.md', '--to', 'codex'])

    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toBe(
      'legate: .claude/agents/a.md: `model` cannot be said in the dialect codex\n  .claude/agents/a.md: `tools`, the list of what it may use, cannot be said in the dialect codex\n  .claude/agents/a.md: that agent:* is forbidden cannot be said in the dialect codex. Use --lossy, or { lossy: true } in code, to write the rest.\n',
    )
  })

  test('a file that is switched off stays so, and is neither run nor found', async () => {
    const place = project({ '.opencode/agent/o8.md': '---\ndescription: d\ndisable: true\n---\n\nDo it.\n' })
    const file = '.opencode/agent/o8.md'

    expect((await place.run(['convert', file, '--to', 'opencode'])).stdout).toContain('disable: true\n')
    expect(await place.run(['convert', file, '--to', 'claude'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('that it is switched off cannot be said in the dialect claude'),
    })
    for (const word of [file, 'o8']) {
      const { code, stderr } = await place.run(['run', word, 'Go.', '--model', 'openai/gpt-5'])
      expect([code, stderr]).toEqual([2, expect.stringMatching(/is switched off/)])
    }
    const { code, stdout } = await place.run(['doctor'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/note: "o8" is switched off by `disable: true`/)])
  })

  test.each([
    ['.claude/agents/o.md', '---\nname: o\ndescription: d\ndisable: true\n---\n\nDo it.\n'],
    ['.codex/agents/o.toml', 'name = "o"\ndescription = "d"\ndeveloper_instructions = "Do it."\ndisable = true\n'],
  ])('`disable: true` switches a file of any dialect off: %s', async (file, text) => {
    const { code, stderr } = await project({ [file]: text }).run(['run', file, 'Go.', '--model', 'openai/gpt-5'])

    expect([code, stderr]).toEqual([2, expect.stringMatching(/is switched off/)])
  })

  test('validate and run name the file and line of an invalid schema', async () => {
    const place = project({ 'a.md': '---\nname: a\ndescription: d\ninput: { type: objct }\n---\n\nDo it.\n' })

    for (const command of [
      ['validate', 'a.md'],
      ['run', 'a.md', '{}', '--model', 'openai/gpt-5'],
    ]) {
      const { code, stdout, stderr } = await place.run(command)
      expect(stdout + stderr).toMatch(/a\.md:4: (?:error: )?`input` is not JSON Schema/)
      // As of any file with an error in it.
      expect(code).toBe(command[0] === 'validate' ? 1 : 2)
    }
  })

  test('--lossy writes the file to stdout, and to stderr a warning for each loss', async () => {
    const place = project({ '.claude/agents/a.md': AGENT })
    const { code, stdout, stderr } = await place.run(['convert', '.claude/agents/a.md', '--to', 'codex', '--lossy'])

    expect(code).toBe(0)
    expect(stdout).toBe('name = "reviewer"\ndescription = "Reviews."\ndeveloper_instructions = """\nYou review.\n"""\n')
    expect(stderr.split('\n')).toEqual([
      '.claude/agents/a.md: warning: `model` cannot be said in the dialect codex',
      '.claude/agents/a.md: warning: `tools`, the list of what it may use, cannot be said in the dialect codex',
      '.claude/agents/a.md: warning: that agent:* is forbidden cannot be said in the dialect codex',
      expect.stringMatching(/note: `color` is left out/),
      expect.stringMatching(/note: `speed` is left out/),
      '',
    ])
  })

  test.each([
    [['convert', 'a.yaml'], 'missing --to: name one of recipe, legate, goose'],
    [['convert', 'a.yaml', '--to', 'klingon'], 'There is no dialect "klingon". There are recipe, legate, goose'],
  ])('%j is refused', async (args, message) => {
    const { code, stderr } = await project({ 'a.yaml': RECIPE }).run(args)

    expect(code).toBe(2)
    expect(stderr.startsWith(`legate: ${message}`), stderr).toBe(true)
  })

  test('a file that cannot be read is told in one line', async () => {
    const { code, stderr } = await project({}).run(['convert', 'nope.md', '--to', 'claude'])

    expect(code).toBe(2)
    expect(stderr).toMatch(/^legate: .*nope\.md: cannot be read: there is no such file\. Check the path[^\n]*\n$/)
  })
})

test.each([
  ['validate', ['validate', '.claude/agents/reviewer.md'], 0],
  ['doctor', ['doctor'], 0],
  ['an error', ['run', 'bad.yaml'], 2],
] as const)('notices are wrapped at the width of a terminal, indented: %s', async (_, args, code) => {
  const agent =
    '---\nname: reviewer\ndescription: R.\ntools: Read, NotebookEdit, KillShell, ExitPlanMode\n---\n\nYou review.\n'
  const bad =
    'title: T\ndescription: D\nprompt: P\nparameters:\n  - {key: topic, input_type: nothing of the kind, requirement: required, description: d}\n'
  const place = project({ '.claude/agents/reviewer.md': agent, ...(code === 0 ? {} : { 'bad.yaml': bad }) })
  const terminal = new Terminal(place, args, { cols: 60, rows: 50, env: KEYS })

  expect(await terminal.ended).toBe(code)
  const shown = terminal.screen.all
  const lines = shown.split('\n')
  const plain = await place.run(args, { env: KEYS })
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(60)
  expect(lines.filter((line) => /^ {4,}\S/.test(line)).length).toBeGreaterThan(0)
  const words = (text: string) => text.replaceAll(/\s+/g, ' ')
  for (const line of (plain.stdout + plain.stderr)
    .split('\n')
    .filter((text) => /: (?:warning|error)?/.test(text))
    .slice(0, 2)) {
    expect(words(shown)).toContain(words(line.trim()))
  }
})

const HOSTILE_HEAD = 'title: t\ndescription: d\nprompt: "Z\\e]0;owned\\a"\n'
