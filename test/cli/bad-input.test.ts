import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { agentsModule, type Ended, type Place, skipUnlessBuilt } from './support/cli.ts'
import { serveModel } from './support/model-server.ts'
import { project } from './support/project.ts'

beforeEach(skipUnlessBuilt)

const HEAD = 'title: T\ndescription: D\n'
const PARAMETER = 'parameters:\n  - {key: a, input_type: string, requirement: required, description: d}\n'
const BOMB = `a0: &a0 [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 12 }, (_, at) => `a${at + 1}: &a${at + 1} [${`*a${at},`.repeat(9).slice(0, -1)}]\n`).join('')}`
const AGENT = '---\nname: twin\ndescription: d\n---\n\nYou are one.\n'
/** The bound is a second. On a busy machine an empty program takes longer too: then so may we. */
const BOUND_MS = 1_000
const EMPTY = ['-e', '0']

interface Bad {
  readonly files?: Readonly<Record<string, string>>
  readonly prepare?: (place: Place) => void
  readonly args: readonly string[]
  /** All that is said, with the place and what to do. */
  readonly says: RegExp
}

const BAD: readonly (readonly [string, Bad])[] = [
  [
    'a missing file',
    { args: ['nope.yaml'], says: /^legate: nope\.yaml: cannot be read: there is no such file\. Check/ },
  ],
  ['a name that nobody has', { args: ['nobody'], says: /^legate: There is no file "nobody" here.* legate doctor/ }],
  [
    'a name that is nearly right',
    {
      files: { '.claude/agents/twin.md': AGENT },
      args: ['twi'],
      says: /no recipe or agent of that name\. Did you mean: twin\?/,
    },
  ],
  [
    'a directory',
    {
      prepare: ({ folder }) => mkdirSync(path.join(folder, 'd.yaml')),
      args: ['d.yaml'],
      says: /^legate: d\.yaml: .*it is a folder, not a file\. Name a file in it\./,
    },
  ],
  [
    'a binary file',
    {
      files: { 'b.yaml': '\u0000\u0001PNG\u0000' },
      args: ['b.yaml'],
      says: /^legate: b\.yaml: this is a binary file, not text\. Give a YAML/,
    },
  ],
  [
    '50 MB of YAML',
    {
      files: { 'big.yaml': HEAD },
      prepare: ({ folder }) => truncateSync(path.join(folder, 'big.yaml'), 50_000_000),
      args: ['big.yaml'],
      says: /^legate: big\.yaml: the file has 50000000 bytes\. A file may have/,
    },
  ],
  [
    'a pipe that nobody writes to',
    {
      prepare: ({ folder }) => execFileSync('mkfifo', [path.join(folder, 'p.yaml')]),
      args: ['p.yaml'],
      says: /^legate: p\.yaml: it is no plain file\. A pipe or a device is not read\./,
    },
  ],
  [
    'an alias bomb',
    {
      files: { 'a.yaml': `${HEAD}prompt: P\n${BOMB}` },
      args: ['a.yaml'],
      says: /^legate: a\.yaml:8: .*aliases stand for too many values/,
    },
  ],
  ['broken YAML', { files: { 'a.yaml': 'title: [\n' }, args: ['a.yaml'], says: /^legate: a\.yaml:\d: not valid YAML/ }],
  [
    'sub-recipes in a circle',
    {
      files: {
        'a.yaml': `${HEAD}prompt: P\nsub_recipes:\n  - {name: b, path: b.yaml}\n`,
        'b.yaml': `${HEAD}prompt: P\nsub_recipes:\n  - {name: a, path: a.yaml}\n`,
      },
      args: ['a.yaml'],
      says: /^legate: \w\.yaml:\d: .*(?:circle|leads back)/,
    },
  ],
  [
    'an include of a file outside',
    {
      files: { 'in/a.yaml': `${HEAD}prompt: "{% include '../secret.txt' %}"\n`, 'secret.txt': 'SECRET' },
      args: ['in/a.yaml'],
      says: /^legate: .*outside the folder of the recipe/,
    },
  ],
  [
    'an include of a link that leads out',
    {
      files: { 'in/a.yaml': `${HEAD}prompt: "{% include 'link.txt' %}"\n`, 'secret.txt': 'SECRET' },
      prepare: ({ folder }) => symlinkSync('../secret.txt', path.join(folder, 'in/link.txt')),
      args: ['in/a.yaml'],
      says: /^legate: .*outside the folder of the recipe/,
    },
  ],
  [
    'a template that never ends',
    {
      files: {
        'a.yaml': `${HEAD}prompt: "{% for a in range(100000) %}{% for b in range(100000) %}{{ b }}{% endfor %}{% endfor %}"\n`,
      },
      args: ['a.yaml'],
      says: /^legate: a\.yaml(?::\d)?: .*(?:too long|limit|repeat|too much|took)/i,
    },
  ],
  [
    'two definitions of one name',
    {
      files: { '.claude/agents/one.md': AGENT, '.claude/agents/two.md': AGENT },
      args: ['twin'],
      says: /^legate: \.claude\/agents\/two\.md:1: "twin" is the name of two definitions in one folder; .*one\.md\. Rename one of them\./,
    },
  ],
  [
    'a key twice',
    {
      files: { 'a.yaml': `${HEAD}prompt: P\nprompt: Q\n` },
      args: ['a.yaml'],
      says: /^legate: a\.yaml:4: .*"prompt" is there twice/,
    },
  ],
  [
    'two sub-recipes of one name',
    {
      files: {
        'a.yaml': `${HEAD}prompt: P\nsub_recipes:\n  - {name: b, path: b.yaml}\n  - {name: b, path: b.yaml}\n`,
        'b.yaml': `${HEAD}prompt: P\n`,
      },
      args: ['a.yaml'],
      says: /^legate: a\.yaml:6: two sub-recipes are named `b`\. Rename one\./,
    },
  ],
  [
    'a parameter without a value, where nobody can be asked',
    {
      files: { 'a.yaml': `${HEAD}prompt: "{{ a }}"\n${PARAMETER}` },
      args: ['a.yaml'],
      says: /^legate: a\.yaml:5: these parameters have no value: a \(d\)\. Give --param a=VALUE\./,
    },
  ],
  [
    'a parameter of another name',
    {
      files: { 'a.yaml': `${HEAD}prompt: "{{ a }}"\n${PARAMETER}` },
      args: ['a.yaml', '-p', 'b=1'],
      says: /^legate: The file has no parameter "b"\. It has a\./,
    },
  ],
  [
    'a parameter twice',
    {
      files: { 'a.yaml': `${HEAD}prompt: "{{ a }}"\n${PARAMETER}` },
      args: ['a.yaml', '-p', 'a=1', '--param', 'a=2'],
      says: /^legate: --param a appears twice\./,
    },
  ],
  ['a parameter without =', { args: ['a.yaml', '-p', 'a'], says: /^legate: --param needs KEY=VALUE, not "a"\./ }],
  [
    'nothing to ask, where nobody can be asked',
    {
      files: { '.claude/agents/twin.md': AGENT },
      args: ['twin'],
      says: /^legate: \.claude\/agents\/twin\.md has no prompt\. Add one to the command: legate run twin "TEXT"\./,
    },
  ],
  [
    'a model that there is not',
    {
      files: { 'a.yaml': `${HEAD}prompt: P\n` },
      args: ['a.yaml', '--model', 'nope'],
      says: /^legate: There is no model "nope"/,
    },
  ],
]

interface Refused extends Ended {
  readonly ms: number
  readonly boundMs: number
  readonly place: Place
}

/** As fast as it can be, of a few tries. */
async function refused(bad: Bad, tries = 5): Promise<Refused> {
  const place = project(bad.files ?? {})
  bad.prepare?.(place)
  const started = performance.now()
  const ended = await place.run(['run', ...bad.args])
  const ms = performance.now() - started
  const boundMs = ms < BOUND_MS ? BOUND_MS : Math.max(BOUND_MS, 5 * emptyMs())
  return ms >= boundMs && tries > 1 ? refused(bad, tries - 1) : { ...ended, ms, boundMs, place }
}

function emptyMs(): number {
  const started = performance.now()
  execFileSync(process.execPath, EMPTY)
  return performance.now() - started
}

describe('I10: legate run refuses, in under a second and with exit code 2', () => {
  test.each(BAD)('%s', async (_, bad) => {
    const { code, stdout, stderr, ms, boundMs, place } = await refused(bad)

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(bad.says)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(stderr).not.toContain('SECRET')
    expect(existsSync(place.store), 'nothing is recorded').toBe(false)
    expect(ms).toBeLessThan(boundMs)
  })

  test('what is wrong in several places is told at once, a line each; explain refuses the same in the same words', async () => {
    const place = project({ 'a.yaml': 'title: T\nprompt: "{{ b }}"\nsettings: {temperature: warm}\n' })
    const [run, explain] = await Promise.all([place.run(['run', 'a.yaml']), place.run(['explain', 'a.yaml'])])

    expect(run.code).toBe(2)
    expect(explain).toEqual(run)
    expect(run.stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^legate: a\.yaml:1: missing field `description`/),
      expect.stringMatching(/^ {2}a\.yaml:3: settings\.temperature: invalid type/),
      expect.stringMatching(/^ {2}a\.yaml:2: Missing definitions for parameters in the recipe file: b/),
    ])
  })

  test('a file that a parameter names and that is not there is told with the parameter', async () => {
    const place = project({
      'a.yaml': `${HEAD}prompt: "{{ a }}"\nparameters:\n  - {key: a, input_type: file, requirement: required, description: d}\n`,
    })
    writeFileSync(path.join(place.folder, 'x.bin'), Buffer.from([0, 1, 2]))
    const [gone, binary] = await Promise.all([
      place.run(['run', 'a.yaml', '-p', 'a=gone.txt']),
      place.run(['run', 'a.yaml', '-p', 'a=x.bin']),
    ])

    expect([gone.code, binary.code]).toEqual([2, 2])
    expect(gone.stderr).toMatch(/Failed to read parameter file gone\.txt: there is no such file/)
    expect(binary.stderr).toMatch(/Failed to read parameter file x\.bin: this is a binary file/)
  })
})

describe('what is given and cannot be used is said', () => {
  const POET = '---\nname: poet\ndescription: d\n---\n\nYou write.\n'

  test.each<[string, readonly string[], string]>([
    ['an empty stdin', ['run', 'a.yaml', '-'], 'stdin is empty'],
    ['--param for a module', ['run', agentsModule, '--agent', 'careful', '-p', 'a=b', 'x'], '--param is for a recipe'],
    ['a number below zero', ['prune', '--keep', '-1'], '--keep needs a value. If the value begins with "-"'],
    ['no text for one agent of many', ['run', agentsModule, '--agent', 'careful'], '--agent careful "TEXT".'],
    ['two wrong limits', ['validate', 'b.md'], 'not "turns" or "steps". Write "modelCalls" for "turns".'],
  ])('%s', async (_, args, words) => {
    const place = project({
      'a.yaml': `${HEAD}prompt: P\n`,
      'b.md': POET.replace('---\n\n', 'budget: {turns: 3, steps: 2}\n---\n\n'),
    })
    const { code, stdout, stderr } = await place.run(args, { input: '' })

    expect(code).toBeGreaterThan(0)
    expect(stdout + stderr).toContain(words)
    expect(existsSync(place.store)).toBe(false)
  })

  test('an import that fails leaves no store behind', async () => {
    const place = project({ 'bad.jsonl': 'no archive\n' })

    expect((await place.run(['import', 'bad.jsonl'])).code).toBeGreaterThan(0)
    expect(existsSync(place.store)).toBe(false)
  })

  test('explain names the usual limits; why names retry after a failure, and retry edit where nothing failed', async () => {
    const place = project({ 'poet.md': POET })
    await serveModel(place, (one) => {
      one.on({ userMessage: 'bad' }, { error: { message: 'broken' }, status: 400 })
      one.on({}, { content: 'Lines.' })
    })
    const explained = await place.run(['explain', agentsModule, '--agent', 'careful'])
    await place.run(['run', 'poet.md', 'bad'])
    const why = await place.run(['why'])
    await place.run(['run', 'poet.md', 'good'])
    const [id = ''] = (await place.run(['ps', '-q'])).stdout.split('\n')

    expect(explained.stdout).toMatch(/budget +the usual limits\n/)
    expect(why.stdout).toMatch(/legate retry \w{8}\n/)
    expect((await place.run(['retry', id])).stderr).toContain(`ask again: legate edit ${id} TEXT.`)
  })

  test('SIGTERM: an answer that comes while the process leaves is printed', async () => {
    const place = project({ 'poet.md': POET })
    const mock = await serveModel(place, (one) => one.on({}, { content: 'Late lines.' }, { latency: 400 }))
    const started = place.legate(['run', 'poet.md', 'go'])
    await started.seen(() => mock.getRequests().length > 0 || started.stderr.includes('input: go'))
    await new Promise((resolve) => setTimeout(resolve, 300))
    started.kill('SIGTERM')

    expect(await started.ended).toMatchObject({ code: 143, stdout: 'Late lines.\n' })
  })
})
