import { beforeEach, expect, test } from 'vitest'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { localStore } from '../support/rows.ts'
import { agentsModule, Place, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

test('resume, why and audit name a row that was changed behind the back of the runtime', async () => {
  const place = new Place()
  const [id = ''] = await place.parkedRuns('careful')
  const db = connectTo(place.store)
  db.run(`UPDATE rows SET data = json_set(data, '$.limits[1]', 999999) WHERE data ->> '$.turn' = ?`, [id])
  db.close()
  const named = `The turn ${id} is not what its last commit wrote`

  const why = await place.run(['why', id])
  const resumed = await place.run(['resume', id, '--module', agentsModule])
  const all = await place.run(['resume', '--module', agentsModule])
  const audited = await place.run(['audit', '--verify'])

  expect(why).toMatchObject({ code: 1, stderr: expect.stringContaining(named) })
  expect(resumed).toMatchObject({ code: 1, stderr: expect.stringContaining(named) })
  expect(all.stdout + all.stderr).toContain(named)
  expect(audited).toMatchObject({ code: 1, stdout: expect.stringContaining(`The turn ${id} is not what was written.`) })
})

/** What somebody who can write the file may do to one run. */
const CHANGES: readonly (readonly [string, string])[] = [
  ['a turn', `UPDATE rows SET data = json_set(data, '$.limits[1]', 999999) WHERE data ->> '$.turn' = ?`],
  ['a turn that is gone', `DELETE FROM rows WHERE data ->> '$.turn' = ?`],
  [
    'a conversation',
    `UPDATE rows SET data = json_set(data, '$.title', 'x') WHERE n = (SELECT keys.n FROM keys WHERE slot = 'c'
       AND id = (SELECT data ->> '$.conversationId' FROM rows WHERE data ->> '$.turn' = ?))`,
  ],
  [
    'nodes',
    `UPDATE rows SET data = json_set(data, '$.made', 'up') WHERE data ->> '$.node' IS NOT NULL
       AND n BETWEEN (SELECT n FROM rows WHERE data ->> '$.turn' = ?1)
         AND (SELECT n FROM rows WHERE data ->> '$.turn' = ?1) + 1048575`,
  ],
]

test.each(CHANGES)(
  'ps, approvals and tree list the other trees and name the one that was changed: %s',
  async (_, sql) => {
    const place = new Place()
    const [bad = '', good = ''] = await place.parkedRuns('careful', 'careful')
    const runtime = place.runtime()
    const rootId = localStore(runtime).turn(bad)?.rootId ?? ''
    const [asked] = localStore(runtime).openNodes(good)
    await runtime.close()
    const db = connectTo(place.store)
    db.run(sql, [bad])
    db.close()
    const named = new RegExp(`legate: tampered: .* the tree ${rootId} `)

    const [ps, all, approvals, tree, newest] = await Promise.all(
      [['ps'], ['ps', '--all', '--json'], ['approvals'], ['tree', bad], ['tree']].map((args) => place.run(args)),
    )

    expect(ps).toMatchObject({ code: 1, stderr: expect.stringMatching(named) })
    expect(ps?.stdout).toMatch(new RegExp(`^${good.slice(-8)} {2}parked .*\n${rootId.slice(-8)} {2}tampered `, 'm'))
    expect(all?.code).toBe(1)
    const rows = (all?.stdout ?? '').trim().split('\n')
    expect(rows.map((line) => JSON.parse(line))).toMatchObject([
      { id: good, state: 'parked' },
      { id: rootId, state: 'tampered' },
    ])
    expect(approvals).toMatchObject({ code: 1, stderr: expect.stringMatching(named) })
    expect(approvals?.stdout).toMatch(new RegExp(`^${asked?.id.slice(-8)} {2}careful\n`))
    expect(approvals?.stdout.split('wants').length).toBe(2)
    expect(tree).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(`the tree ${rootId} `) })
    expect(newest).toMatchObject({ code: 0, stdout: expect.stringContaining('needs a person') })
    for (const ended of [ps, all, approvals, tree, newest]) expect(ended?.stderr).not.toMatch(/\n {4}at /)
  },
)

test('ps and approvals name a changed tree that has ended, though nothing waits in it', async () => {
  const place = new Place()
  const [bad = ''] = await place.endedRuns('lead')
  const db = connectTo(place.store)
  db.run(`UPDATE rows SET data = json_set(data, '$.input', 'Forged.') WHERE data ->> '$.turn' = ?`, [bad])
  db.close()

  for (const command of ['ps', 'approvals']) {
    expect(await place.run([command])).toMatchObject({ code: 1, stderr: expect.stringContaining('legate: tampered: ') })
  }
})
