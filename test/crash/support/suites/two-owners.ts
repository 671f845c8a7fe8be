import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { postgresStore } from 'legate/store/postgres'
import { sqliteStore } from 'legate/store/sqlite'
import { CrashCase, type TreeRows, type WorkerProcess } from 'legate/testing'
import { expect, test } from 'vitest'
import { eachTree } from '../../../../src/core/audit/load-tree.ts'
import { isPostgresUrl } from '../../../../src/stores/postgres/index.ts'
import { figure } from '../figure.ts'
import { isFull } from '../full.ts'
import { heldFile } from '../held.ts'
import { inParallel } from '../parallel.ts'
import { caseOptions, isSmall, type SuitePlace } from './place.ts'

const PLACES = ['pure', 'model', 'effectful', 'spawn'] as const
/** Longer than the lease of the program's engines. */
const STOPPED_MS = 700

/** a process that was stopped past its lease, and another that took over. */
export function twoOwnersSuite(where: SuitePlace): void {
  const count = roundsOf(where)
  const awake = isSmall(where) ? PLACES.slice(0, 1) : PLACES.filter((place) => place !== 'effectful')

  test(`R-12: a process that was stopped past its lease writes nothing, in ${count} rounds`, async () => {
    const rounds = Array.from({ length: count }, (_, round) => PLACES[round % PLACES.length] ?? 'pure')

    const late = await inParallel(rounds, (place) => stopAndTakeOver(where, place))

    const noted = late.reduce((sum, found) => sum + found, 0)
    figure(`R-12${where.on}`, `${count} rounds, 0 writes of a stale owner, ${noted} late results noted`)
  })

  test.each(awake)('R-12: it writes nothing either while the next owner is at the same place (%s)', async (place) => {
    const test = new CrashCase(caseOptions(where, 'owner'))
    const first = await stoppedAt(test, place)
    const second = test.start({ role: `${place}/awake` })
    expect(await second.hears('held')).toBe(true)
    // What was sent before it was stopped may be acknowledged after it woke.
    const { events } = await rowsOf(test)

    wake(first)
    await sleep(200)
    const told = toldBy(test, first).filter(({ seq }) => seq > events.length)
    rmSync(heldFile(second.pid))
    for (const worker of [first, second]) await test.ended(worker)

    expect(told.filter(({ body }) => body.type !== 'late-result')).toEqual([])
    await test.conclude()
  })
}

function roundsOf(where: SuitePlace): number {
  if (isFull) return 100
  return isSmall(where) ? 2 : 5
}

/** How many late results the first owner noted when it woke after the run had ended. */
async function stopAndTakeOver(where: SuitePlace, place: string): Promise<number> {
  const test = new CrashCase(caseOptions(where, 'owner'))
  const first = await stoppedAt(test, place)

  const second = await test.ended(test.start())
  expect(second).toMatchObject({ code: 0, errors: '' })
  const before = await rowsOf(test)

  wake(first)
  await test.ended(first)
  const after = await rowsOf(test)

  const added = after.events.slice(before.events.length)
  expect(added.filter(({ body }) => body.type !== 'late-result')).toEqual([])
  expect({ ...after, events: [] }).toEqual({ ...before, events: [] })
  expect([...after.turns.values()].every(({ outcome }) => outcome?.status === 'completed')).toBe(true)
  await test.conclude()
  return added.length
}

/** A worker that was stopped at this place for longer than its lease. */
async function stoppedAt(test: CrashCase, place: string): Promise<WorkerProcess> {
  const worker = test.start({ role: place })
  expect(await worker.hears('held')).toBe(true)
  worker.signal('SIGSTOP')
  await sleep(STOPPED_MS)
  return worker
}

function wake(worker: WorkerProcess): void {
  rmSync(heldFile(worker.pid))
  worker.signal('SIGCONT')
}

/** The events of the commits of a worker. */
function toldBy(test: CrashCase, { pid }: WorkerProcess) {
  const { lines } = test.evidence()
  return lines.flatMap((line) => (line.type === 'commit' && line.pid === pid ? line.events : []))
}

/** Read while the store is open: events are read when they are asked for. */
async function rowsOf({
  database,
}: CrashCase): Promise<Pick<TreeRows, 'turns' | 'nodes' | 'links' | 'conversations' | 'events'>> {
  const store = isPostgresUrl(database) ? postgresStore({ url: database, readOnly: true }) : sqliteStore(database)
  try {
    for await (const { turns, nodes, links, conversations, events } of eachTree(store)) {
      return { turns, nodes, links, conversations, events }
    }
    throw new Error('there is no tree')
  } finally {
    await store.close()
  }
}
