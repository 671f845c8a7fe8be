import type { Part } from './model.ts'

/** Reads what is still to be opened. Not a generator: one that waits cannot be left. */
export function lateIterator(opening: Promise<AsyncIterator<Part>>): AsyncIterator<Part> {
  let opened: AsyncIterator<Part> | undefined
  let isOver = false
  const leave = async () => {
    isOver = true
    await opened?.return?.()
    return END
  }
  return {
    next: async () => {
      opened ??= await opening
      return isOver ? leave() : opened.next()
    },
    return: leave,
  }
}

const END: IteratorReturnResult<undefined> = { value: undefined, done: true }
