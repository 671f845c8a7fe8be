import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { sqliteStore } from 'legate/store/sqlite'
import { CrashCase, readTrees, type TreeRows, type WorkerProcess } from 'legate/testing'
import { expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { figure } from './support/figure.ts'
import { isFull } from './support/full.ts'
import { heldFile } from './support/held.ts'
import { inParallel } from './support/parallel.ts'
import { programFile } from './support/program.ts'

const ROUNDS = isFull ? 100 : 5
const PLACES = ['pure', 'model', 'effectful', 'spawn'] as const
/** Longer than the lease of the program's engines. */
const STOPPED_MS = 700

const program = programFile('owner')
const counter = await useCounter()

test(`R-12, cybros A67: a process that was stopped past its lease writes nothing, in ${ROUNDS} rounds`, async () => {
  const rounds = Array.from({ length: ROUNDS }, (_, round) => PLACES[round % PLACES.length] ?? 'pure')

  const late = await inParallel(rounds, stopAndTakeOver)

  const noted = late.reduce((sum, count) => sum + count, 0)
  figure('R-12', `${ROUNDS} rounds, 0 writes of a stale owner, ${noted} late results noted`)
})

test.each(PLACES.filter((place) => place !== 'effectful'))(
  'R-12: it writes nothing either while the next owner is at the same place (%s)',
  async (place) => {
    const test = new CrashCase({ program, counter })
    const first = await stoppedAt(test, place)
    const second = test.start({ role: `${place}/awake` })
    expect(await second.hears('held')).toBe(true)
    const before = toldBy(test, first).length

    wake(first)
    await sleep(200)
    const told = toldBy(test, first).slice(before)
    rmSync(heldFile(second.pid))
    for (const worker of [first, second]) await test.ended(worker)

    expect(told.filter(({ body }) => body.type !== 'late-result')).toEqual([])
    test.conclude()
  },
)

/** How many late results the first owner noted when it woke after the run had ended. */
async function stopAndTakeOver(place: string): Promise<number> {
  const test = new CrashCase({ program, counter })
  const first = await stoppedAt(test, place)

  const second = await test.ended(test.start())
  expect(second).toMatchObject({ code: 0, errors: '' })
  const before = rowsOf(test)

  wake(first)
  await test.ended(first)
  const after = rowsOf(test)

  const added = after.events.slice(before.events.length)
  expect(added.filter(({ body }) => body.type !== 'late-result')).toEqual([])
  expect({ ...after, events: [] }).toEqual({ ...before, events: [] })
  expect([...after.turns.values()].every(({ outcome }) => outcome?.status === 'completed')).toBe(true)
  test.conclude()
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
function rowsOf({ database }: CrashCase): Pick<TreeRows, 'turns' | 'nodes' | 'links' | 'conversations' | 'events'> {
  const store = sqliteStore(database)
  try {
    const [tree] = readTrees(store)
    if (tree === undefined) throw new Error('there is no tree')
    const { turns, nodes, links, conversations, events } = tree
    return { turns, nodes, links, conversations, events }
  } finally {
    store.close().catch(() => undefined)
  }
}
