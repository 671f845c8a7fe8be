import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { useCounter } from '../crash/support/counter.ts'
import { figure } from '../crash/support/figure.ts'
import { isFull } from '../crash/support/full.ts'
import { noPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts'
import { Cable } from './support/cable.ts'
import { CrewCase, told } from './support/crew.ts'

const ROUNDS = isFull ? 10 : 1
const JOBS = isFull ? 100 : 12

describe.skipIf(noPostgres !== undefined)('failover', async () => {
  const counter = await useCounter()

  test(`to a synchronous replica, ${ROUNDS} times under load: nothing acknowledged is lost`, async () => {
    const totals: string[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const { primary, replica, way } = await pairOfServers()
      await setSynchronous(primary)
      const crew = new CrewCase({ counter, url: urlBy(primary, way.port) }, { jobs: JOBS })
      const workers = [crew.start(), crew.start()]
      await crew.untilEnded(JOBS / 4, workers)

      await primary.stop('immediate')
      await replica.promote()
      lead(way, replica)

      const found = await crew.check(workers)
      expect(found.wrong).toEqual([])
      totals.push(told(found))
      await crew.crash.drop()
    }
    figure('D-5 on PostgreSQL', `${ROUNDS} failovers to a synchronous replica; the last: ${totals.at(-1)}`)
  })

  test('to an asynchronous replica that was behind: the checker reports what is lost', async () => {
    const { primary, replica, way, between } = await pairOfServers()
    const crew = new CrewCase({ counter, url: urlBy(primary, way.port) }, { jobs: 12 })
    const workers = [crew.start(), crew.start()]
    await crew.untilEnded(1, workers)
    between.cut()
    const before = crew.ended()
    await crew.untilEnded(before + 2, workers)
    for (const worker of workers) worker.signal('SIGKILL')
    for (const worker of workers) await crew.crash.ended(worker)

    await primary.stop('immediate')
    await replica.promote()
    lead(way, replica)

    const { wrong } = await crew.check([crew.start(), crew.start()])
    const lost = wrong.filter((text) => /^lost .* is not in the chain$/.test(text))
    expect(lost.length).toBeGreaterThan(0)
    figure('D-5 with an asynchronous replica', `${lost.length} acknowledged commits were lost, and all reported`)
    await crew.crash.drop()
  })
})

interface Servers {
  readonly primary: PostgresServer
  readonly replica: PostgresServer
  /** The way of the processes. */
  readonly way: Cable
  /** The way of the replica to the primary. */
  readonly between: Cable
}

async function pairOfServers(): Promise<Servers> {
  const primary = await startPostgres()
  onTestFinished(() => primary.drop())
  const between = await Cable.open(primary.port)
  const replica = await primary.follow(between.port)
  onTestFinished(() => replica.drop())
  const way = await Cable.open(primary.port)
  onTestFinished(async () => {
    await way.close()
    await between.close()
  })
  return { primary, replica, way, between }
}

/** A commit is acknowledged when the replica has it on its disk. */
async function setSynchronous(primary: PostgresServer): Promise<void> {
  const client = new pg.Client({ connectionString: primary.url() })
  await client.connect()
  await client.query(`ALTER SYSTEM SET synchronous_standby_names = '*'`)
  await client.query('SELECT pg_reload_conf()')
  const isSynchronous = async () => {
    const { rows } = await client.query(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)
    return rows.length === 1
  }
  while (!(await isSynchronous())) await sleep(50)
  await client.end()
}

function urlBy(server: PostgresServer, port: number): string {
  return server.url().replace(`:${server.port}/`, `:${port}/`)
}

/** From now on the way leads to the other server. */
function lead(way: Cable, to: PostgresServer): void {
  way.to = to.port
  way.heal()
}
