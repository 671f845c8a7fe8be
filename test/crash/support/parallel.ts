import { availableParallelism } from 'node:os'

/** Runs `work` on every item, two at a time per processor as much of it is waiting, and gives the results in order. */
export async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const waiting = items.entries()
  const lane = async (): Promise<void> => {
    for (const [at, item] of waiting) results[at] = await work(item)
  }
  await Promise.all(Array.from({ length: 2 * availableParallelism() }, lane))
  return results
}
