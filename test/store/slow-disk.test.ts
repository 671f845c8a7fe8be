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

/** Commits in two rounds, and says for how long the event loop stood still at most, and what was refused. */
function writer(path: string, name: string): string {
  return `
    const store = sqliteStore({ path: ${JSON.stringify(path)}, durability: 'power' })
    let [last, longest] = [performance.now(), 0]
    const look = () => {
      const now = performance.now()
      longest = Math.max(longest, now - last)
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
    console.log(JSON.stringify({ longest, refused }))
  `
}

test('three processes take turns on a slow disk: nobody is refused, and no event loop waits for two flushes in a row', async ({
  skip,
}) => {
  const folder = tempFolder()
  const env = slowDisk(folder)
  if (env === null) return skip('gcc is missing: it builds the slow disk')
  const path = join(folder, 'legate.db')
  const store = sqliteStore(path)

  const writers = ['ann', 'ben', 'cho'].map((name) => programs.start(writer(path, name), env))
  await Promise.all(writers.map(({ ended }) => ended))

  const told = writers.map(({ said }) => JSON.parse(said[0] ?? '{}') as { longest: number; refused: string[] })
  expect(told.map(({ refused }) => refused)).toEqual([[], [], []])
  expect(Math.max(...told.map(({ longest }) => longest))).toBeLessThan((AT_ONCE - 1) * FLUSH_MS)
  expect(store.roots({ limit: 100 })).toHaveLength(3 * 2 * AT_ONCE)
  await store.close()
}, 60_000)

test('opening takes the flushes that come once, so that each commit takes one', async ({ skip }) => {
  const folder = tempFolder()
  const env = slowDisk(folder)
  if (env === null) return skip('gcc is missing: it builds the slow disk')
  const path = join(folder, 'legate.db')
  await sqliteStore(path).close()
  const code = `
    const store = sqliteStore({ path: ${JSON.stringify(path)}, durability: 'power' })
    const times = []
    for (const name of ['a', 'b', 'c']) {
      const begun = performance.now()
      store.commit(treeCommit(name))
      times.push(performance.now() - begun)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    console.log(JSON.stringify(times))
  `

  const times = JSON.parse(programs.run(code, { env })) as number[]

  expect(times).toHaveLength(3)
  expect(Math.min(...times)).toBeGreaterThan(FLUSH_MS - 1)
  expect(Math.max(...times)).toBeLessThan(2 * FLUSH_MS)
}, 60_000)
