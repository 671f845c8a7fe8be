/** Runs work on the same path one after another; other paths do not wait. */
export type InTurn = <T>(path: string, work: () => Promise<T>) => Promise<T>

/** Serializes edits, which read and then write: two at a time would lose one. */
export function makeInTurn(): InTurn {
  const last = new Map<string, Promise<unknown>>()
  return (path, work) => {
    const done = (last.get(path) ?? Promise.resolve()).then(work, work)
    last.set(path, done)
    const forget = () => {
      if (last.get(path) === done) last.delete(path)
    }
    done.then(forget, forget)
    return done
  }
}
