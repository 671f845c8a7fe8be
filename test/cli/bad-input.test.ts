import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Ended, type Place, skipUnlessBuilt } from './support/cli.ts'
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
