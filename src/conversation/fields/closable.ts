import type { RunEvent } from '../../graph/event.ts'
import type { FieldSource } from './field-source.ts'

/** What `read` makes of the source, as an iterator that closes at once: a generator alone would wait for the next event. */
export function closable<T>(
  source: FieldSource,
  read: (source: FieldSource) => AsyncGenerator<T, void>,
): AsyncIterableIterator<T> {
  const open: AsyncIterator<RunEvent>[] = []
  const events = () => {
    const iterator = source.events()[Symbol.asyncIterator]()
    open.push(iterator)
    return { [Symbol.asyncIterator]: () => iterator }
  }
  const inner = read({ ...source, events })
  return {
    next: () => inner.next(),
    return: async () => {
      for (const iterator of open) await iterator.return?.()
      return inner.return()
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
