import type { Work } from '../engine/engine.ts'
import { KILL_AFTER_MS } from './run-process.ts'

/** How long a tool that was asked to stop may take to do so: what it runs and holds has ended when its call has. */
const STOP_MS = KILL_AFTER_MS + 150

/** The value of code; or a rejection when the node is asked to stop and its code has, or does not hear of it. */
export function orStopped<T>(value: PromiseLike<T>, work: Work): Promise<T> {
  return new Promise((resolve, reject) => {
    const { signal } = work
    let waiting: NodeJS.Timeout | undefined
    const giveUp = () => reject(signal.reason)
    const stop = () => {
      const isOurs = work.stopCause === 'cancel' || work.stopCause === 'timeout'
      if (!isOurs) return giveUp()
      waiting = setTimeout(giveUp, STOP_MS)
    }
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    Promise.resolve(value)
      .then((given) => (signal.aborted ? giveUp() : resolve(given)), reject)
      .finally(() => {
        clearTimeout(waiting)
        signal.removeEventListener('abort', stop)
      })
  })
}
