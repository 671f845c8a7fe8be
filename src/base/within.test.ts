import { expect, test, vi } from 'vitest'
import { within } from './abort.ts'

test('gives what the work gives in time, and fails as it does', async () => {
  await expect(within(Promise.resolve('done'), 1_000)).resolves.toBe('done')
  await expect(within('at once', 1_000)).resolves.toBe('at once')
  await expect(within(Promise.reject(new Error('no')), 1_000)).rejects.toThrow('no')
})

test('gives undefined when the work takes longer', async () => {
  await expect(within(new Promise<never>(() => undefined), 10)).resolves.toBeUndefined()
})

test('keeps no timer when the work is done in time', async () => {
  const set = vi.spyOn(globalThis, 'setTimeout')
  const clear = vi.spyOn(globalThis, 'clearTimeout')
  await within(Promise.resolve(), 987_654)
  const timer = set.mock.results[set.mock.calls.findIndex(([, ms]) => ms === 987_654)]?.value

  expect(timer).toBeDefined()
  expect(clear).toHaveBeenCalledWith(timer)
  vi.restoreAllMocks()
})
