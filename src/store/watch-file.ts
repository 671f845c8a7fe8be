import { isLegateError } from '../base/error.ts'

/**
 * Asks every 100 ms whether another process has committed, while somebody wants to know. That the file is gone is the
 * last news there is. Keeps no process alive.
 */
export function watchFile(version: () => number): { add(changed: () => void): () => void; end(): void } {
  const watchers = new Set<{ readonly changed: () => void }>()
  let timer: ReturnType<typeof setInterval> | undefined
  let known = 0
  const end = (): void => {
    clearInterval(timer)
    timer = undefined
    watchers.clear()
  }
  const look = (): void => {
    const seen = versionOr(version, known)
    if (seen === known) return
    known = seen
    const told = [...watchers]
    if (seen === GONE) end()
    for (const { changed } of told) changed()
  }
  const add = (changed: () => void): (() => void) => {
    const watcher = { changed }
    watchers.add(watcher)
    if (timer === undefined) {
      known = versionOr(version, known)
      timer = setInterval(look, 100).unref()
    }
    return () => {
      watchers.delete(watcher)
      if (watchers.size === 0) end()
    }
  }
  return { add, end }
}

const GONE = -1

/** Any other failure now is no news; whoever reads next is told of it. */
function versionOr(version: () => number, known: number): number {
  try {
    return version()
  } catch (error) {
    return isLegateError(error, 'store_gone') ? GONE : known
  }
}
