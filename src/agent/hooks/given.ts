// A hook that gives nothing has no return.
// biome-ignore lint/suspicious/noConfusingVoidType: functions without a return are hooks too
type Maybe<T> = T | null | undefined | void

/** What a hook may give: nothing, a value, a promise, or any number of values one after the other. */
export type Given<T> = Maybe<T> | Iterable<Maybe<T>> | AsyncIterable<Maybe<T>> | Promise<Maybe<T> | Iterable<Maybe<T>>>

/** Uses each value that was given, in order; at once where nothing has to be waited for. */
export function each<T>(given: Given<T>, use: (value: T) => void): void | Promise<void> {
  if (given === null || given === undefined) return undefined
  if (typeof given !== 'object') return use(given as T)
  if ('then' in given && typeof given.then === 'function') return later(given as Promise<Given<T>>, use)
  if (Symbol.asyncIterator in given) return eachLater(given, use)
  if (!(Symbol.iterator in given)) return use(given as T)
  for (const value of given) if (value !== null && value !== undefined) use(value as T)
  return undefined
}

async function later<T>(given: Promise<Given<T>>, use: (value: T) => void): Promise<void> {
  await each(await given, use)
}

async function eachLater<T>(given: AsyncIterable<Maybe<T>>, use: (value: T) => void): Promise<void> {
  for await (const value of given) if (value !== null && value !== undefined) use(value as T)
}
