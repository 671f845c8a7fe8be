import { readFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { agentsModule, Place, skipUnlessBuilt } from './support/cli.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

/** A run that has asked a person something, in a store nobody works on. */
async function asking(): Promise<{ readonly place: Place; readonly id: string }> {
  const place = new Place()
  const [id = ''] = await place.parkedRuns('curious')
  return { place, id: id.slice(-8) }
}

describe('what an agent asks a person', () => {
  test('is listed, shown and waited for by nobody; legate answer answers it, and resume goes on', async () => {
    const { place, id } = await asking()
    const [ps, shown, listed, parked] = await Promise.all([
      place.run(['ps']),
      place.run(['show', id]),
      place.run(['approvals']),
      place.run(['resume', '-m', agentsModule]),
    ])
    expect(ps.stdout).toMatch(/parked +curious .*asks: Which port\?/)
    expect(shown.stdout).toMatch(/Needs a person\n {2}Which port\?\n {2}legate answer \w{8} TEXT\n/)
    expect(listed.stdout).toMatch(
      /^(\w{8}) {2}curious\n {2}asks {3}Which port\?\n {2}since .*\n {2}legate answer \1 TEXT\n$/,
    )
    expect(parked).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/waits for a person:\n {2}Which port\?\n {4}legate answer \w{8} TEXT\n/),
    })

    const [, question = ''] = /^(\w{8})/.exec(listed.stdout) ?? []
    const approved = await place.run(['approve', question])
    expect(approved).toMatchObject({
      code: 2,
      stderr: `legate: ${question} is a question: legate answer ${question} TEXT\n`,
    })

    const answered = await place.run(['answer', id, 'Port 80.'], { env: { USER: 'ann' } })
    const late = await place.run(['approve', question])
    expect(late).toMatchObject({ code: 2, stderr: `legate: ${question} waits for no approval.\n` })
    const again = await place.run(['answer', id, 'Port 81.'])
    const told = await place.run(['answer', question, 'Port 81.'])
    expect(told).toMatchObject({ code: 1, stderr: expect.stringMatching(/no open question: ann has answered it\.\n$/) })
    const resumed = await place.run(['resume', '-m', agentsModule])

    expect(answered).toMatchObject({ code: 0, stdout: 'Answered: Which port?\n' })
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('waits for an answer') })
    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('So it is: Port 80.') })
  })

  test('is put to the person at the terminal, who answers in words', async () => {
    const { place } = await asking()
    const terminal = new Terminal(place, ['resume', '-m', agentsModule], { cols: 80, rows: 24 })
    await terminal.shows((screen) => /^curious asks: Which port\?\nYour answer, then Enter >$/m.test(screen))
    terminal.type('Port 443, bitte: für alle')
    await terminal.shows('> Port 443, bitte: für alle')
    terminal.type('\r')

    expect(await terminal.ended).toBe(0)
    expect(terminal.screen.all).toContain('So it is: Port 443, bitte: für alle')
    expect(terminal.screen.all).not.toContain('Your answer')
  })

  test('by code that may run again: exit code 3 each time, the answers are kept, and resume goes on', async () => {
    const place = new Place()
    place.more['LEGATE_TEST_MARKS'] = path.join(place.folder, 'marks')
    const first = await place.run(['run', agentsModule, '--agent', 'steady', 'Go.'])
    const ps = await place.run(['ps'])
    expect(first).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringMatching(/waits for a person:\n {2}Which port\?\n {4}legate answer \w{8} TEXT\n {2}Then: /),
    })
    expect(ps.stdout).toMatch(/parked +steady .*asks: Which port\?/)

    const id = /legate answer (\w{8})/.exec(first.stderr)?.[1] ?? ''
    await place.run(['answer', id, '80'])
    const second = await place.run(['resume', '-m', agentsModule])
    const next = /legate answer (\w{8})/.exec(second.stdout)?.[1] ?? ''
    await place.run(['answer', next, 'yes'])
    const third = await place.run(['resume', '-m', agentsModule])

    expect(second).toMatchObject({ code: 3, stdout: expect.stringContaining('Sure?') })
    expect(third).toMatchObject({ code: 0, stdout: expect.stringContaining('So it is: 80, yes') })
    expect(readFileSync(path.join(place.folder, 'marks'), 'utf8')).toBe('steady\n'.repeat(3))
  })

  test('by a child that such code waits for: exit code 3 too', async () => {
    const place = new Place()
    const ended = await place.run(['run', agentsModule, '--agent', 'waiter', 'Go.'])

    expect(ended).toMatchObject({ code: 3, stderr: expect.stringMatching(/legate answer \w{8} TEXT/) })
  })

  test('by code that must not run twice: its process says once that it waits, and how to answer', async () => {
    const place = new Place()
    place.more['LEGATE_TEST_MARKS'] = path.join(place.folder, 'marks')
    const started = place.legate(['run', agentsModule, '--agent', 'hasty', 'Go.'])
    const asks =
      /waits for a person:\n {2}(.*)\n {4}legate answer (\w{8}) TEXT\n {2}Its code must not run twice, so this process stays alive for it\.\n/g
    await started.seen(() => [...started.stderr.matchAll(asks)].length === 1)
    const ps = await place.run(['ps'])
    await place.run(['answer', [...started.stderr.matchAll(asks)][0]?.[2] ?? '', '80'])
    await started.seen(() => [...started.stderr.matchAll(asks)].length === 2)
    await place.run(['answer', [...started.stderr.matchAll(asks)][1]?.[2] ?? '', 'yes'])
    const { code, stdout, stderr } = await started.ended

    expect(ps.stdout).toMatch(/parked +hasty .*asks: Which port\?/)
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'So it is: 80, yes\n' })
    expect([...stderr.matchAll(asks)].map(([, question]) => question)).toEqual(['Which port?', 'Sure?'])
    expect(readFileSync(path.join(place.folder, 'marks'), 'utf8')).toBe('hasty\n')
  })

  test.each([
    [['answer', 'ffffffff', 'x'], /No id here ends in "ffffffff"/],
    [['answer', 'ffffffff', '  '], /The answer is empty/],
    [['answer', 'ffffffff'], /missing TEXT/],
  ])('%j is refused', async (args, message) => {
    const place = new Place()
    await place.endedRuns('talker')
    const { code, stderr } = await place.run(args)

    expect(code).toBe(2)
    expect(stderr).toMatch(message)
  })
})
