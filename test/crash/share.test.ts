import { setTimeout as sleep } from 'node:timers/promises'
import { sqliteStore } from 'legate/store/sqlite'
import { CrashCase, type WorkerProcess } from 'legate/testing'
import { expect, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { PROMPTLY_MS } from '../support/pace.ts'
import { useCounter } from './support/counter.ts'
import { figure } from './support/figure.ts'
import { programFile } from './support/program.ts'

const program = programFile('share')
const counter = await useCounter()

test('two processes on one file share the work of one tree', async () => {
  const test = new CrashCase({ program, counter })
  const workers = await startTwo(test, 'crew')

  for (const worker of workers) await test.ended(worker)

  const { lines, trees } = await test.conclude()
  const answers = lines.filter((line) => line.type === 'commit' && (line.kind === 'expand' || line.kind === 'end'))
  expect(new Set(answers.map(({ pid }) => pid))).toEqual(new Set(workers.map(({ pid }) => pid)))
  const outcomes = trees.flatMap(({ turns }) => [...turns.values()].map(({ outcome }) => outcome?.status))
  expect(outcomes).toEqual(Array.from({ length: 9 }, () => 'completed'))
})

test('a third process cancels a tree that two run, and all of it ends within a second', async () => {
  const test = new CrashCase({ program, counter })
  const workers = await startTwo(test, 'dormant')
  await looking(test, (store) => {
    const busy = store.engines().filter(({ id }) => store.claimedBy(id, 1).length > 0)
    return busy.length === 2
  })

  workers.push(test.start({ role: 'dormant/cancel' }))
  for (const worker of workers) await test.ended(worker)

  const { trees } = await test.conclude()
  const turns = trees.flatMap((tree) => [...tree.turns.values()])
  expect(new Set(turns.map(({ outcome }) => outcome?.status))).toEqual(new Set(['cancelled']))
  const root = turns.find(({ cancel }) => cancel?.cause === 'cancelled')
  const tookMs = (root?.endedAt ?? Number.POSITIVE_INFINITY) - (root?.cancel?.at ?? 0)
  figure('cancel from a third process', `${turns.length} runs of 2 processes ended in ${tookMs} ms`)
  // Two processes, each of which looks every second at the latest; a busy machine takes longer.
  expect(tookMs).toBeLessThan(PROMPTLY_MS)
})

test('a parent waits for its child while all processes are killed again and again', async () => {
  const test = new CrashCase({ program, counter })

  for (let round = 0; round < 5; round++) {
    const worker = test.start({ role: 'patient/wait' })
    expect(await worker.hears('waiting')).toBe(true)
    await sleep(50)
    worker.signal('SIGKILL')
    await test.ended(worker)
    await test.checkStanding()
  }
  await looking(test, (store) => store.engines().every(({ id }) => store.claimedBy(id, 1).length === 0))
  await test.ended(test.start({ role: 'patient/answer' }))

  const calls = test.evidence().effects?.filter(({ name }) => name === 'model') ?? []
  const { trees } = await test.conclude()
  expect(calls.map(({ key }) => key).toSorted()).toEqual(['patient', 'patient', 'patient/careful', 'patient/careful'])
  const results = trees.flatMap(({ events }) => events.filter(({ body }) => body.type === 'tool-result'))
  expect(results).toHaveLength(2)
  expect(trees.flatMap(({ nodes }) => [...nodes.values()]).every(({ recoveries }) => recoveries === 0)).toBe(true)
})

async function startTwo(test: CrashCase, title: string): Promise<WorkerProcess[]> {
  const second = test.start({ role: `${title}/help` })
  expect(await second.hears('ready')).toBe(true)
  return [test.start({ role: `${title}/start` }), second]
}

/** Waits until the rows are as wanted, as a process that only reads. */
async function looking(test: CrashCase, isSo: (store: LocalStore) => boolean): Promise<void> {
  const store = sqliteStore(test.database)
  try {
    for (const giveUpAt = performance.now() + 10_000; !isSo(store); await sleep(5)) {
      if (performance.now() > giveUpAt) throw new Error('the rows did not become as wanted within 10 s')
    }
  } finally {
    await store.close()
  }
}
