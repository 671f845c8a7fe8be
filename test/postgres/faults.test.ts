import { setTimeout as sleep } from 'node:timers/promises'
import type { WorkerProcess } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { useCounter } from '../crash/support/counter.ts'
import { figure } from '../crash/support/figure.ts'
import { isFull } from '../crash/support/full.ts'
import { noPostgres, type PostgresServer, postgresVersions, usePostgres } from '../support/postgres.ts'
import { Cable } from './support/cable.ts'
import { CrewCase, told } from './support/crew.ts'
import type { CrewRole } from './support/crew-role.ts'
import { HOME, Machines, noMachines } from './support/machines.ts'

const KILLS = isFull ? 200 : 4
const CRASHES = isFull ? 20 : 2
const CUTS = isFull ? 20 : 1
const JOBS = isFull ? 400 : 20
const HOUR_MS = 3_600_000
const LEASE_MS = 1_500

describe.skipIf(noPostgres !== undefined).each(postgresVersions)('faults on $name', async ({ name, options }) => {
  const server = noPostgres === undefined ? await usePostgres(options) : (undefined as unknown as PostgresServer)
  const counter = await useCounter()
  const crewOf = (role: Partial<CrewRole> = {}, at = `127.0.0.1:${server.port}`) => {
    const url = server.url().replace(`127.0.0.1:${server.port}`, at)
    return new CrewCase({ counter, url }, { jobs: JOBS, ...role })
  }

  test(`${KILLS} kills of workers on one database: nothing is lost, doubled or left open`, async () => {
    const crew = crewOf()
    for (let kills = 0; kills < KILLS && crew.ended() < JOBS; kills += 2) {
      const pair = [crew.start(), crew.start()]
      const moment = 200 + Math.random() * 800
      await Promise.all(pair.map((worker) => crew.crash.kill(worker, { afterMs: moment })))
      await crew.crash.checkStanding()
    }
    await conclude(crew, `D-2 on ${name}`, [crew.start(), crew.start()])
  })

  test(`${CRASHES} crashes of the database under load: nothing is lost, doubled or left open`, async () => {
    const crew = crewOf()
    const workers = [crew.start(), crew.start()]
    for (let crash = 1; crash <= CRASHES; crash++) {
      await crew.untilEnded((crash * JOBS) / (CRASHES + 2), workers)
      await server.stop('immediate')
      await sleep(300)
      await server.start()
    }
    await conclude(crew, `D-3 on ${name}`, workers, `${CRASHES} crashes of the database under load`)
  })

  test(`${CUTS} times a machine is cut off past its lease: another takes over, and its late answers are refused`, async () => {
    const cable = await Cable.open(server.port)
    const crew = crewOf()
    const workers = [crew.start({}, cable.port), crew.start()]
    for (let cut = 1; cut <= CUTS; cut++) {
      await crew.untilEnded(((cut - 1) * JOBS) / CUTS + 1, workers)
      faultOf(cable, cut)
      await sleep(LEASE_MS + 1_000 + (isFull ? Math.random() * 4_000 : 0))
      cable.heal()
    }
    await conclude(crew, `D-4 on ${name}`, workers, `one of two machines cut off ${CUTS} times, lease ${LEASE_MS} ms`)
    await cable.close()
  })

  test.runIf(isFull && noMachines === undefined)(
    'the same with machines of their own whose wires are pulled',
    async () => {
      const machines = new Machines(3)
      onTestFinished(() => machines.drop())
      const way = await Cable.open(server.port, HOME)
      const crew = crewOf({}, `${HOME}:${way.port}`)
      const workers = [0, 1, 2].map((at) => machines.on(at, () => crew.start()))
      for (let cut = 1; cut <= CUTS; cut++) {
        await crew.untilEnded(((cut - 1) * JOBS) / CUTS + 1, workers)
        const chosen = [0, 1, 2].filter((at) => at === cut % 3 || Math.random() < 0.3)
        for (const at of chosen) machines.setWire(at, 'down')
        await sleep(1_000 + Math.random() * 6_000)
        for (const at of chosen) machines.setWire(at, 'up')
      }
      await conclude(
        crew,
        `D-4, namespaces on ${name}`,
        workers,
        `the wires of 1 to 3 of three machines pulled ${CUTS} times`,
      )
      await way.close()
    },
  )

  test(`${CUTS} times connections are half-open, with bytes that vanish in one direction: both machines go on`, async () => {
    const cables = [await Cable.open(server.port), await Cable.open(server.port)]
    const crew = crewOf()
    const workers = cables.map(({ port }) => crew.start({}, port))
    for (let cut = 1; cut <= CUTS; cut++) {
      await crew.untilEnded(((cut - 1) * JOBS) / CUTS + 1, workers)
      for (const [at, cable] of cables.entries()) cable.forget((at + cut) % 2 === 0 ? 'questions' : 'answers')
    }
    const what = `all connections of two machines half-open ${CUTS} times, in one direction each`
    await conclude(crew, `D-4, half-open on ${name}`, workers, what)
    await Promise.all(cables.map((cable) => cable.close()))
  })

  test('machines that are 50 to 200 ms away, each time another, under load', async () => {
    const cable = await Cable.open(server.port)
    // Half of it each way.
    Object.assign(cable, { delayMs: 25, jitterMs: 75 })
    const crew = crewOf()
    const workers = [crew.start({}, cable.port), crew.start({}, cable.port)]
    await conclude(crew, `D-4, far away on ${name}`, workers, 'two machines 50 to 200 ms away')
    await cable.close()
  })

  test('machines whose clocks are an hour ahead and behind, one of which stands still past its lease', async () => {
    const crew = crewOf()
    const ahead = crew.start({ aheadMs: HOUR_MS })
    const behind = crew.start({ aheadMs: -HOUR_MS })
    for (let stop = 1; stop <= CUTS; stop++) {
      await crew.untilEnded(((stop - 1) * JOBS) / CUTS + 1, [ahead, behind])
      ahead.signal('SIGSTOP')
      await sleep(LEASE_MS + 1_000)
      ahead.signal('SIGCONT')
    }
    await conclude(
      crew,
      `D-6 on ${name}`,
      [ahead, behind],
      `clocks +1 h and -1 h, ${CUTS} times SIGSTOP past the lease`,
    )
  })
})

/** Nothing passes, or only what the machine sends. */
function faultOf(cable: Cable, cut: number): void {
  if (cut % 2 === 1) cable.cut()
  else cable.loseAnswers()
}

async function conclude(crew: CrewCase, name: string, workers: readonly WorkerProcess[], what?: string): Promise<void> {
  const found = await crew.check(workers)
  expect(found.wrong).toEqual([])
  figure(name, `${what ?? `${found.kills} kills of workers`}: ${told(found)}`)
  await crew.crash.drop()
}
