import { describe } from 'vitest'
import { useCounter } from '../crash/support/counter.ts'
import { failpointSuite } from '../crash/support/suites/failpoints.ts'
import { inDoubtSuite } from '../crash/support/suites/in-doubt.ts'
import type { SuitePlace } from '../crash/support/suites/place.ts'
import { randomKillSuite } from '../crash/support/suites/random-kill.ts'
import { twoOwnersSuite } from '../crash/support/suites/two-owners.ts'
import { noPostgres, postgresVersions, usePostgres } from '../support/postgres.ts'

/** The crash suites once more, on a database: a sample of them in `npm test`. */
describe.skipIf(noPostgres !== undefined).each(postgresVersions)('crashes on $name', async ({ name, options }) => {
  const url = noPostgres === undefined ? (await usePostgres(options)).url() : ''
  const store = url as NonNullable<SuitePlace['store']>
  const place: SuitePlace = { on: ` on ${name}`, counter: await useCounter(), store, isSample: true }

  failpointSuite(place)
  // These take an hour.
  if (name === postgresVersions[0]?.name) randomKillSuite(place)
  inDoubtSuite(place)
  twoOwnersSuite(place)
})
