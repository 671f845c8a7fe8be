import { memoryStore } from 'legate/store/memory'
import { expect, test } from 'vitest'
import { RegistryLease } from './lease.ts'

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

function two(leaseMs: number): readonly [RegistryLease, RegistryLease] {
  const { registry } = memoryStore()
  const make = (holder: string) => new RegistryLease(registry, { name: 'work', leaseMs, holder })
  return [make('a'), make('b')]
}

test('a holder of the lease keeps a note with it, and gives the lease back with the note', async () => {
  const [a, b] = two(60_000)
  expect(await a.take()).toBe(true)
  expect(await b.take()).toBe(false)
  expect(await b.keep('mine')).toBe(false)
  expect(await a.keep({ cursor: '7' })).toBe(true)
  expect(await b.take()).toBe(false)

  await a.release()

  expect(a.isHeld).toBe(false)
  expect(await b.take()).toBe(true)
  expect(b.note).toEqual({ cursor: '7' })
  expect(await a.take()).toBe(false)
})

test('who does not renew it stops before another takes it, and cannot write any more', async () => {
  const [a, b] = two(400)
  await a.take()
  await a.keep('before')
  expect(await b.take()).toBe(false)
  const began = performance.now()
  while (!(await b.take())) {
    // Never both.
    expect(a.isHeld && b.isHeld).toBe(false)
    await pause(10)
  }
  expect(performance.now() - began).toBeGreaterThanOrEqual(390)
  expect(a.isHeld).toBe(false)

  expect(await a.keep('after')).toBe(false)
  expect(b.note).toBe('before')
})

test('of many that take it at the same moment, one gets it', async () => {
  const { registry } = memoryStore()
  const all = Array.from(
    { length: 20 },
    (_, n) => new RegistryLease(registry, { name: 'w', leaseMs: 60_000, holder: `${n}` }),
  )

  expect((await Promise.all(all.map((one) => one.take()))).filter(Boolean)).toHaveLength(1)
})
