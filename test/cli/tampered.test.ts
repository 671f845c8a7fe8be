import { beforeEach, expect, test } from 'vitest'
import { connect } from '../../src/store/sqlite/driver.ts'
import { agentsModule, Place, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

test('resume, why and audit name a row that was changed behind the back of the runtime', async () => {
  const place = new Place()
  const [id = ''] = await place.parkedRuns('careful')
  const db = connect(place.store)
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
