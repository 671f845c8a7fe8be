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

describe('cybros A77: what an agent asks a person', () => {
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

    const answered = await place.run(['answer', id, 'Port 80.'])
    const again = await place.run(['answer', id, 'Port 81.'])
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

  test.each([
    [['answer', 'ffffffff', 'x'], /No id in this store ends in "ffffffff"/],
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
