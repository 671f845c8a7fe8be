import { expect, test } from 'vitest'
import { mergeSources } from './merge.ts'

async function* numbers(...given: readonly number[]): AsyncGenerator<number, void> {
  yield* given
}

const silent: AsyncIterator<number> = { next: () => new Promise(() => undefined) }

async function take(source: AsyncIterator<number>, count = Number.POSITIVE_INFINITY): Promise<number[]> {
  const found: number[] = []
  while (found.length < count) {
    const { value, done } = await source.next()
    if (done === true) break
    found.push(value)
  }
  return found
}

test('gives the items of all sources, each in its order, and ends with the last of them', async () => {
  const found = await take(mergeSources([numbers(1, 2, 3), numbers(10, 20), numbers()]))

  expect(found.filter((one) => one < 10)).toEqual([1, 2, 3])
  expect(found.filter((one) => one >= 10)).toEqual([10, 20])
})

test('an error of a source is its own, and leaving it wakes who waits', async () => {
  const broken: AsyncIterator<number> = { next: async () => Promise.reject(new Error('gone')) }
  await expect(take(mergeSources([silent, broken]))).rejects.toThrow('gone')
  const waiting = mergeSources([silent])
  const next = waiting.next()
  await waiting.return?.()

  expect(await next).toEqual({ value: undefined, done: true })
})

test('a source that is silent holds nothing of what the others give', async () => {
  let count = 0
  const chatty: AsyncIterator<number> = { next: async () => ({ value: count++, done: false }) }
  const merged = mergeSources([silent, chatty])
  await take(merged, 10_000)
  const before = process.memoryUsage().heapUsed
  for (let round = 0; round < 50; round++) await take(merged, 10_000)
  const grown = process.memoryUsage().heapUsed - before

  expect(count).toBeGreaterThanOrEqual(510_000)
  expect(grown).toBeLessThan(60_000_000)
})
