import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { figure } from '../crash/support/figure.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { Cable, checkCase, type FaultCase, Worker } from './support/faults.ts'

const isFull = process.env['LEGATE_FULL'] === '1'
const KILLS = isFull ? 200 : 20
const CRASHES = isFull ? 20 : 2
const JOBS = isFull ? 400 : 40

describe.skipIf(noPostgres !== undefined)('faults', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)

  test(`${KILLS} kills of workers on one database: nothing is lost, doubled or left open`, async () => {
    const place = caseOf(server, 'kills')
    let kills = 0
    while (kills < KILLS) {
      const pair = [new Worker(place), new Worker(place)]
      await sleep(700 + Math.random() * 800)
      for (const worker of pair) worker.kill()
      const exits = await Promise.all(pair.map(({ ended }) => ended))
      kills += exits.filter((exit) => exit === 'SIGKILL').length
      if (exits.every((exit) => exit === 0)) break
    }
    await runToEnd(place, 2)

    const found = await checkCase(place)
    figure('D-2', `kill -9 of workers on PostgreSQL: ${kills} kills, ${told(found)}`)
    expect(found.wrong).toEqual([])
    expect(found.trees).toBe(JOBS)
  })

  test(`${CRASHES} crashes of the database under load: nothing is lost, doubled or left open`, async () => {
    const place = caseOf(server, 'crashes')
    const workers = [new Worker(place), new Worker(place)]
    for (let crash = 1; crash <= CRASHES; crash++) {
      await untilEnded(workers, (crash * JOBS) / (CRASHES + 2))
      await server.stop('immediate')
      expect(endedIn(workers)).toBeLessThan(JOBS)
      await sleep(300)
      await server.start()
    }
    expect(await Promise.all(workers.map(exitOf))).toEqual([0, 0])

    const found = await checkCase(place)
    figure('D-3', `${CRASHES} crashes of the database under load: ${told(found)}`)
    expect(found.wrong).toEqual([])
  })

  test('a machine that is cut off past its lease: another takes over, and its late answers are refused', async () => {
    const cable = await Cable.open(server.port)
    const place = caseOf(server, 'partition', 1_500)
    const cutOff = new Worker({ ...place, url: place.url.replace(`:${server.port}/`, `:${cable.port}/`) })
    await sleep(1_200)
    cable.cut()
    const other = new Worker(place)
    await sleep(4_000)
    cable.heal()
    expect(await Promise.all([cutOff, other].map(exitOf))).toEqual([0, 0])
    await cable.close()

    const found = await checkCase(place)
    figure('D-4', `one of two machines cut off for 4 s, lease 1.5 s: ${told(found)}`)
    expect(found.wrong).toEqual([])
  })
})

function caseOf(server: PostgresServer, schema: string, leaseMs = 1_500): FaultCase {
  return { url: `${server.url()}?schema=${schema}`, folder: tempFolder(), jobs: JOBS, leaseMs }
}

async function runToEnd(place: FaultCase, count: number): Promise<void> {
  const workers = Array.from({ length: count }, () => new Worker(place))
  expect(await Promise.all(workers.map(exitOf))).toEqual(workers.map(() => 0))
}

/** Waits until so many jobs have ended. */
async function untilEnded(workers: readonly Worker[], jobs: number): Promise<void> {
  while (endedIn(workers) < jobs) await sleep(5)
}

function endedIn(workers: readonly Worker[]): number {
  return new Set(workers.flatMap(({ output }) => output.match(/^ended \d+$/gm) ?? [])).size
}

async function exitOf(worker: Worker): Promise<number | string> {
  const exit = await worker.ended
  if (exit !== 0) console.error(worker.output)
  return exit
}

function told({ trees, acknowledged, events, uncertain }: Awaited<ReturnType<typeof checkCase>>): string {
  return `${trees} trees, ${acknowledged} acknowledged commits, ${events} events, 0 lost, 0 doubled, 0 left open, ${uncertain} uncertain`
}
