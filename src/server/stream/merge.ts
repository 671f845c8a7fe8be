/** An item of a source, or the reason why there is none. */
type NextItem<Item> = { readonly source: AsyncIterator<Item> } & (
  | { readonly result: IteratorResult<Item> }
  | { readonly error: unknown }
)

/**
 * Items of several sources as they come. Leaving it leaves all of them. A source that is silent for long costs nothing, however
 * much the others give.
 */
export function mergeSources<Item>(sources: readonly AsyncIterator<Item>[]): AsyncIterator<Item> {
  const ready: NextItem<Item>[] = []
  let wake: (() => void) | undefined
  let open = sources.length
  const put = (given: NextItem<Item>) => {
    ready.push(given)
    wake?.()
  }
  const ask = (source: AsyncIterator<Item>) => {
    source.next().then(
      (result) => put({ source, result }),
      (error: unknown) => put({ source, error }),
    )
  }
  for (const source of sources) ask(source)
  return {
    next: async () => {
      while (open > 0) {
        const given = ready.shift()
        if (given === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
          continue
        }
        if ('error' in given) throw given.error
        if (given.result.done === true) open--
        else {
          ask(given.source)
          return given.result
        }
      }
      return { value: undefined, done: true }
    },
    return: async () => {
      open = 0
      wake?.()
      await Promise.all(sources.map((source) => source.return?.()))
      return { value: undefined, done: true }
    },
  }
}
