import { availableParallelism } from 'node:os'

/** Runs `work` on every item, one per processor at a time, and gives the results in order. The next item is asked for when there is room for it. */
export async function inParallel<T, R>(items: Iterable<T>, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const waiting = items[Symbol.iterator]()
  let next = 0
  const lane = async (): Promise<void> => {
    for (let item = waiting.next(); item.done !== true; item = waiting.next()) {
      const at = next++
      results[at] = await work(item.value)
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, lane))
  return results
}
