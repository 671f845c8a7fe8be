import { beforeEach, expect, test } from 'vitest'
import { localStore } from '../support/rows.ts'
import { Place, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

const LOOKING = ['tree', 'log', 'show', 'why', 'transcript'] as const
const CHANGING = ['cancel', 'approve', 'deny', 'retry', 'fork', 'edit'] as const

test('commands that look take the newest run where no id is given, and say which that is', async () => {
  const place = new Place()
  await place.endedRuns('lead')
  const [newest = ''] = await place.parkedRuns('careful')

  const said = await Promise.all(LOOKING.map((command) => place.run([command])))
  const named = await Promise.all(LOOKING.map((command) => place.run([command, newest])))

  for (const [at, { code, stdout, stderr }] of said.entries()) {
    expect({ code, lines: stdout.split('\n').length }).toEqual({
      code: 0,
      lines: named[at]?.stdout.split('\n').length,
    })
    expect(stdout).toMatch(/careful/)
    expect(stderr).toMatch(new RegExp(`^The newest run: ${newest.slice(-8)} {2}\\w+ {2}careful {2}\\d+ s ago\n`))
    expect(named[at]?.stderr).not.toContain('newest')
  }
})

test('they say of it what ps says: a run whose process is gone is unattended', async () => {
  const place = new Place()
  const [id = ''] = await place.orphans('talker')
  const [ps, cancel, ...said] = await Promise.all(
    [['ps'], ['cancel'], ...LOOKING.map((command) => [command])].map((args) => place.run(args)),
  )

  expect(ps?.stdout).toMatch(new RegExp(`^${id.slice(-8)} {2}unattended {2}talker`, 'm'))
  expect(cancel?.stderr).toMatch(new RegExp(`${id.slice(-8)} {2}unattended {2}talker`))
  for (const { stderr } of said) expect(stderr).toMatch(/^The newest run: \w+ {2}unattended {2}talker {2}/)
})

test('commands that change need an id, and name what could be meant', async () => {
  const place = new Place()
  const [done = '', failed = ''] = await place.endedRuns('lead', 'failing')
  const [parked = ''] = await place.parkedRuns('careful')
  const [asked] = localStore(place.runtime()).openNodes(parked)
  const short = (id = '') => id.slice(-8)

  const said = await Promise.all(CHANGING.map((command) => place.run([command])))

  for (const { code, stdout } of said) expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  const [cancel = '', approve = '', deny = '', retry = '', fork = '', edit = ''] = said.map(({ stderr }) => stderr)
  expect(cancel).toMatch(
    new RegExp(
      `^legate: missing ID: legate cancel ID .*\nThe newest:\n {2}${short(parked)} {2}parked {2}careful .*\n$`,
    ),
  )
  for (const text of [approve, deny]) {
    expect(text).toMatch(new RegExp(`\nThe newest:\n {2}${short(asked?.id)} {2}careful wants look {"where":"here"}\n$`))
  }
  expect(retry).toMatch(new RegExp(`\nThe newest:\n {2}${short(failed)} {2}failed {2}failing .*\n$`))
  for (const text of [fork, edit]) {
    for (const id of [done, failed, parked]) expect(text).toContain(`\n  ${short(id)}  `)
  }
})

test('an empty store says so', async () => {
  const place = new Place()
  await place.runtime().close()
  const { code, stderr } = await place.run(['tree'])

  expect({ code, stderr }).toEqual({ code: 2, stderr: 'legate: There are no runs in this store yet.\n' })
})
