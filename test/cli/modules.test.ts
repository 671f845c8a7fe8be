import { beforeEach, describe, expect, test } from 'vitest'
import { agentsModule, skipUnlessBuilt } from './support/cli.ts'
import { project } from './support/project.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

const ONE = `export { lead } from '${agentsModule}'\n`
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const READS_TYPES = major > 22 || (major === 22 && minor >= 18)

describe('an agent written in code', () => {
  test.each([
    ['the only one of a file', ['run', 'one.mjs', 'Look.']],
    ['the only one of --module', ['run', '--module', 'one.mjs', 'Look.']],
    ['one of many, by its name', ['run', agentsModule, '--agent', 'lead', 'Look.']],
  ])('runs, with its subagents: %s', async (_, args) => {
    const place = project({ 'one.mjs': ONE })
    place.open()

    expect(await place.run(args)).toMatchObject({ code: 0, stdout: 'All of them saw it: 2.\n' })
  })

  test('takes JSON where it has an input schema, and text from stdin', async () => {
    const place = project({})
    place.open()
    const typed = await place.run(['run', agentsModule, '--agent', 'typed', '-'], { input: '{"place":"Rome"}' })
    const wrong = await place.run(['run', agentsModule, '--agent', 'typed', 'Rome'])
    const nothing = await place.run(['run', agentsModule, '--agent', 'lead'])

    expect(typed).toMatchObject({ code: 0, stdout: expect.stringContaining('Asked 1 times') })
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('takes JSON') })
    expect(nothing).toMatchObject({ code: 2, stderr: expect.stringContaining('say what it shall do') })
  })

  test('asks in a terminal what its grant asks for; elsewhere it waits, and the command that goes on names the module', async () => {
    const place = project({ 'careful.mjs': `export { careful } from '${agentsModule}'\n` })
    place.open()
    const parked = await place.run(['run', 'careful.mjs', 'Look.'])
    const [, approve = '', resume = ''] =
      /legate (approve \w{8}), [\s\S]*Then: legate (resume \w{8} --module careful\.mjs)\n/.exec(parked.stderr) ?? []
    await place.run(approve.split(' '))
    const resumed = await place.run(resume.split(' '))
    const terminal = new Terminal(place, ['run', 'careful.mjs', 'Look.'], { cols: 100, rows: 24 })
    await terminal.shows((screen) => /then Enter >$/m.test(screen))
    terminal.type('y\r')

    expect(parked.code).toBe(3)
    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('Done: It is blue.') })
    expect(await terminal.ended).toBe(0)
    expect(terminal.screen.all).toMatch(/Done: It is blue\.$/)
  })

  test('can be talked with, and gone on with', async () => {
    const place = project({})
    place.open()
    const module = ['--module', agentsModule, '--agent', 'lead']
    const { code, stdout, stderr } = await place.run(['chat', ...module], { input: 'Look.\n' })
    const [, again = ''] = /Continue with: legate (chat .* --agent lead --continue \w{8})\n$/.exec(stderr) ?? []
    const more = await place.run(again.split(' '), { input: 'Go on where you stopped.\n' })

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'All of them saw it: 2.\n' })
    expect(more).toMatchObject({ code: 0, stdout: 'I went on after 1 question.\n' })
  })

  test.each<[string, readonly string[], RegExp]>([
    [
      'several agents',
      ['run', agentsModule, 'x'],
      /exports 8 agents: say which with --agent\. There are: .*lead, .*talker/,
    ],
    [
      'a name that there is not',
      ['run', agentsModule, '--agent', 'x', 'x'],
      /exports no agent "x"\. There are: .*lead/,
    ],
    ['no agent', ['run', 'none.mjs', 'x'], /exports no agent/],
    ['a file that is not there', ['run', 'no.mjs', 'x'], /There is no module/],
    ['another kind of file', ['run', 'a.py', 'x'], /a\.py is neither a recipe .* nor a module/],
    ['--agent without a module', ['run', 'a.yaml', '--agent', 'x'], /--agent is for a module/],
    ['explain of a module', ['explain', 'none.mjs'], /none\.mjs is a module/],
    ['nothing', ['run'], /missing FILE/],
    ['a model for one that has its own', ['run', 'one.mjs', 'x', '--model', 'openai/gpt-5'], /has a model in its code/],
  ])('is told in a line what is wrong: %s', async (_, args, message) => {
    const place = project({
      'none.mjs': 'export const x = 1\n',
      'a.py': 'print()',
      'a.yaml': 'title: T\n',
      'one.mjs': ONE,
    })
    const { code, stderr } = await place.run(args)

    expect(code).toBe(2)
    expect(stderr).toMatch(message)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  })

  test('in TypeScript it runs where Node can read it; elsewhere one line says what to do', async () => {
    const place = project({ 'one.ts': `${ONE}export const unused: number = 1\n`, 'package.json': '{"type":"module"}' })
    place.open()
    const { code, stdout, stderr } = await place.run(['run', 'one.ts', 'Look.'])

    if (READS_TYPES) expect({ code, stdout }).toEqual({ code: 0, stdout: 'All of them saw it: 2.\n' })
    else {
      expect(code).toBe(2)
      expect(stderr).toMatch(
        /^legate: Node v.* cannot load .*one\.ts: use Node 22\.18 or newer, or compile it to a \.mjs file\.\n$/,
      )
    }
  })
})
