import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, test } from 'vitest'
import { createRuntime } from '../../src/core/runtime/runtime.ts'
import { agent } from '../../src/core/runtime/standalone.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { checkStanding } from '../../src/testing/crash/aftermath.ts'
import { scriptedModel } from '../../src/testing/stand-ins/scripted-model.ts'
import { noPostgres, usePostgres } from '../support/postgres.ts'

/** About how long a look at the rows takes. */
const LOOK_MS = 160

describe.skipIf(noPostgres !== undefined)('rows that killed workers left', async () => {
  const url = noPostgres === undefined ? `${(await usePostgres()).url()}?schema=standing` : ''

  test('are not taken for lost while the server stores what a worker has sent before it was killed', async () => {
    const runtime = createRuntime({ store: postgresStore(url) })
    const clerk = agent({ name: 'clerk', instructions: '', model: scriptedModel(() => 'done') })
    const { conversationId, result } = runtime.run(clerk, 'go')
    await result
    const holder = new pg.Client({ connectionString: url })
    await holder.connect()
    for (let afterMs = 0; afterMs < LOOK_MS; afterMs += 12) {
      await holder.query('BEGIN; SELECT 1 FROM standing.trees FOR UPDATE')
      const run = runtime.run(clerk, 'again', { conversationId })
      const looked = checkStanding({ database: url, lines: [] })
      await sleep(afterMs)
      await holder.query('COMMIT')
      await looked
      await run.result
    }
    await holder.end()
    await runtime.close()
  })
})
