import { beforeEach, expect, test } from 'vitest'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { Place, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

test('one tree goes by its run, with a reason, and is known to have been deleted', async () => {
  const place = new Place()
  const [gone = '', kept = ''] = await place.endedRuns('lead', 'lead')

  const deleted = await place.run(['forget', gone.slice(-8), '--reason', 'asked for'])
  const again = await place.run(['show', gone])
  const other = await place.run(['show', kept])
  const unknown = await place.run(['forget', 'ffffffff'])
  const twice = await place.run(['forget', gone.slice(-8)])

  expect([deleted.code, deleted.stderr]).toEqual([0, ''])
  expect(deleted.stdout).toMatch(/^deleted: \w{8} lead, 3 runs \(asked for\)\n$/)
  expect(again.stderr).toContain('(asked for)')
  expect([other.code, unknown.code]).toEqual([0, 2])
  expect(unknown.stderr).toContain('No id here ends in "ffffffff"')
  expect(twice).toMatchObject({ code: 1, stderr: expect.stringMatching(/was deleted on .* \(asked for\)/) })
})

test('a tree that was changed from outside cannot be cancelled: what is said names the command that deletes it', async () => {
  const place = new Place()
  const [runId = ''] = await place.endedRuns('lead')
  const db = connectTo(place.store)
  db.run(`UPDATE rows SET data = json_set(data, '$.input', 'Forged.') WHERE data ->> '$.turn' = ?`, [runId])
  db.close()

  const cancelled = await place.run(['cancel', runId])
  const [, command = ''] = /`legate (forget \S+)`/.exec(cancelled.stderr) ?? []
  const deleted = await place.run(command.split(' '))
  const audit = await place.run(['audit', '--verify'])

  expect(cancelled.code).not.toBe(0)
  expect(deleted).toMatchObject({ code: 0, stderr: '' })
  expect(audit).toMatchObject({ code: 0, stdout: expect.stringContaining('no errors') })
})
