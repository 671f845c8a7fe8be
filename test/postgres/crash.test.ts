import { describe } from 'vitest'
import { useCounter } from '../crash/support/counter.ts'
import { failpointSuite } from '../crash/support/suites/failpoints.ts'
import { inDoubtSuite } from '../crash/support/suites/in-doubt.ts'
import type { SuitePlace } from '../crash/support/suites/place.ts'
import { randomKillSuite } from '../crash/support/suites/random-kill.ts'
import { twoOwnersSuite } from '../crash/support/suites/two-owners.ts'
import { noPostgres, usePostgres } from '../support/postgres.ts'

/** The crash suites once more, on a database: a sample of them in `npm test`. */
describe.skipIf(noPostgres !== undefined)('crashes on PostgreSQL', async () => {
  const url = noPostgres === undefined ? (await usePostgres()).url() : ''
  const store = url as NonNullable<SuitePlace['store']>
  const place: SuitePlace = { on: ' on PostgreSQL', counter: await useCounter(), store, isSample: true }

  failpointSuite(place)
  randomKillSuite(place)
  inDoubtSuite(place)
  twoOwnersSuite(place)
})
