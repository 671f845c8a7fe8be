import { expect, test, vi } from 'vitest'
import { within } from './within.ts'

test('gives what the work gives in time, and fails as it does', async () => {
  await expect(within(Promise.resolve('done'), 1_000)).resolves.toBe('done')
  await expect(within('at once', 1_000)).resolves.toBe('at once')
  await expect(within(Promise.reject(new Error('no')), 1_000)).rejects.toThrow('no')
})

test('gives undefined when the work takes longer, and keeps no timer either way', async () => {
  vi.useFakeTimers()
  const late = within(new Promise<never>(() => undefined), 1_000)
  await vi.advanceTimersByTimeAsync(1_000)
  await expect(late).resolves.toBeUndefined()
  await within(Promise.resolve(), 1_000)
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})
