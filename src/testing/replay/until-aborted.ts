/** How long a call that was stopped when it was recorded waits to be stopped again. */
const LONGEST_MS = 10_000

/** Why it was stopped; or that nobody stops it now. */
export function untilAborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve(new Error('This call was stopped before its end when it was recorded, and nobody stops it now.'))
    }, LONGEST_MS)
    const stop = () => {
      clearTimeout(timer)
      resolve(signal.reason)
    }
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
  })
}
