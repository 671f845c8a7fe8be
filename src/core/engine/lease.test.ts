import { expect, test } from 'vitest'
import { systemClock } from '../base/clock.ts'
import { ConflictError } from '../base/error.ts'
import type { Commit } from '../graph/commit.ts'
import { memoryStore } from '../store/memory/index.ts'
import type { Store } from '../store/store.ts'
import { Lease } from './lease.ts'

const TOLD = {}

/** A lease in a memory store whose commits go through `commit`. */
function leaseOn(memory: Store, commit: (commit: Commit) => Promise<void>, agents = new Set<string>()): Lease {
  const store: Store = { ...memory, commit }
  return new Lease({ engineId: 'e-1', leaseMs: 15_000, agents, store, clock: systemClock, tell: () => TOLD })
}

test('a renewal that is under way when the lease ends leaves no row behind', async () => {
  const memory = memoryStore()
  const held: (() => void)[] = []
  let isSlow = false
  const commit = async (given: Commit) => {
    if (isSlow) await new Promise<void>((resolve) => held.push(resolve))
    await memory.commit(given)
  }
  const agents = new Set<string>()
  const lease = leaseOn(memory, commit, agents)
  await lease.renew()
  // It knows one more agent: that is news.
  agents.add('new')
  isSlow = true
  const renewed = lease.renew()
  await expect.poll(() => held.length).toBe(1)
  const ended = lease.end()
  isSlow = false
  for (const go of held) go()
  await Promise.all([renewed, ended])
  expect(await memory.engines()).toEqual([])
  // Whoever wakes after that does not bring it back.
  await lease.renew()
  expect(await memory.engines()).toEqual([])
})

test('an end whose answer was lost, and that is refused when it is sent again, is an end', async () => {
  const memory = memoryStore()
  const lease = leaseOn(memory, async (commit) => {
    await memory.commit(commit)
    // As a database does that finds no row to delete.
    if (commit.dropEngines.length > 0) throw new ConflictError('conflict', 'The row has another version.')
  })
  await lease.renew()
  await lease.end()
  expect(await memory.engines()).toEqual([])
})

test('an end that another writer of the row is faster than is tried again', async () => {
  const memory = memoryStore()
  let others = 1
  const lease = leaseOn(memory, async (commit) => {
    const [row] = await memory.engines()
    if (commit.dropEngines.length > 0 && row !== undefined && others-- > 0) {
      await memory.commit({ ...commit, dropEngines: [], engines: [{ ...row, version: row.version + 1 }] })
    }
    await memory.commit(commit)
  })
  await lease.renew()
  await lease.end()
  expect(await memory.engines()).toEqual([])
})

test('a lease that was never held asks the store for nothing when it ends', async () => {
  const memory = memoryStore()
  const engine = () => {
    throw new Error('it asked')
  }
  await leaseOn({ ...memory, engine }, async (commit) => memory.commit(commit)).end()
})
