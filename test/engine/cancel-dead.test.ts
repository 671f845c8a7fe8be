import { beforeEach, expect, test } from 'vitest'
import { Place, skipUnlessBuilt } from '../cli/support/cli.ts'
import { localStore } from '../support/rows.ts'

beforeEach(skipUnlessBuilt)

test('a run whose process was killed ends when it is cancelled, without anybody who works on it', async () => {
  const place = new Place()
  const [id = ''] = await place.orphans('lead')
  const runtime = place.runtime()
  const run = await runtime.attach(id)

  await run.cancel('enough')

  expect(await run.result).toMatchObject({ status: 'cancelled' })
  expect(localStore(runtime).openTurns(99)).toEqual([])
})
