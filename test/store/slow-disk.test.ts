import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { StorePrograms } from '../support/store-programs.ts'
import { tempFolder } from '../support/temp-folder.ts'

const FLUSH_MS = 200
/** How many commits each process makes at once. */
const AT_ONCE = 4

const programs = new StorePrograms('sqlite')

/** What makes each flush of a program slow; null where it cannot be built. */
function slowDisk(folder: string): Record<string, string> | null {
  const library = join(folder, 'slow-disk.so')
  const source = join(import.meta.dirname, 'fixtures/slow-disk.c')
  const { status } = spawnSync('gcc', ['-shared', '-fPIC', '-o', library, source, '-ldl'])
  return status === 0 ? { LD_PRELOAD: library, FLUSH_MS: String(FLUSH_MS) } : null
}

/** The flushes of a program so far: however busy the machine is, they are what it waits for. */
function counting(path: string): string {
  return `
    import { statSync } from 'node:fs'
    process.env.FLUSHES = ${JSON.stringify(path)} + '-flushes-' + process.pid
    const flushes = () => statSync(process.env.FLUSHES, { throwIfNoEntry: false })?.size ?? 0
  `
}

/** Commits in two rounds, and says how many flushes the event loop waited for at once, and what was refused. */
function writer(path: string, name: string): string {
  return `
    ${counting(path)}
    const store = sqliteStore({ path: ${JSON.stringify(path)}, durability: 'power' })
    await tryCommit(store, treeCommit('${name}'))
    let [last, most] = [flushes(), 0]
    const look = () => {
      const now = flushes()
      most = Math.max(most, now - last)
      last = now
    }
    const timer = setInterval(look, 1)
    const refused = []
    const commit = (round, at) =>
      tryCommit(store, treeCommit('${name}-' + round + '-' + at)).catch((error) => refused.push(error.code))
    for (let round = 0; round < 2; round++) {
      await Promise.all(Array.from({ length: ${AT_ONCE} }, (_, at) => commit(round, at)))
      look()
    }
    clearInterval(timer)
    console.log(JSON.stringify({ most, refused }))
  `
}

test('three processes take turns on a slow disk: nobody is refused, and no event loop waits for two commits in a row', async ({
  skip,
}) => {
  const folder = tempFolder()
  const env = slowDisk(folder)
  if (env === null) return skip('gcc is missing: it builds the slow disk')
  const path = join(folder, 'legate.db')
  const store = sqliteStore(path)

  const writers = ['ann', 'ben', 'cho'].map((name) => programs.start(writer(path, name), env))
  await Promise.all(writers.map(({ ended }) => ended))

  const told = writers.map(({ said }) => JSON.parse(said[0] ?? '{}') as { most: number; refused: string[] })
  expect(told.map(({ refused }) => refused)).toEqual([[], [], []])
  // A commit takes one. Where another process has just opened or closed the file, the head of its log takes a second one.
  expect(Math.max(...told.map(({ most }) => most))).toBeLessThanOrEqual(2)
  expect(Math.min(...told.map(({ most }) => most))).toBeGreaterThan(0)
  expect(store.roots({ limit: 100 })).toHaveLength(3 * (1 + 2 * AT_ONCE))
  await store.close()
}, 60_000)

test('opening takes the flushes that come once, so that each commit takes one', async ({ skip }) => {
  const folder = tempFolder()
  const env = slowDisk(folder)
  if (env === null) return skip('gcc is missing: it builds the slow disk')
  const path = join(folder, 'legate.db')
  await sqliteStore(path).close()
  const code = `
    ${counting(path)}
    const store = sqliteStore({ path: ${JSON.stringify(path)}, durability: 'power' })
    const found = []
    for (const name of ['a', 'b', 'c']) {
      const [begun, before] = [performance.now(), flushes()]
      store.commit(treeCommit(name))
      found.push({ ms: performance.now() - begun, flushes: flushes() - before })
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    console.log(JSON.stringify(found))
  `

  const found = JSON.parse(programs.run(code, { env })) as { ms: number; flushes: number }[]

  expect(found.map(({ flushes }) => flushes)).toEqual([1, 1, 1])
  // One of them at least had the processor when it came back.
  const least = Math.min(...found.map(({ ms }) => ms))
  expect(least).toBeGreaterThan(FLUSH_MS - 1)
  expect(least).toBeLessThan(1.25 * FLUSH_MS)
}, 60_000)
