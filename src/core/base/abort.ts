import { isLegateError, LegateError, messageOf } from './error.ts'

/** Gives the reason of an aborted signal as an error to throw: the reason itself where it is an error. */
export function abortReason(signal: AbortSignal): Error {
  const reason: unknown = signal.reason
  if (reason instanceof Error) return reason
  if (reason === undefined) return new LegateError('aborted', 'The operation was aborted.')
  return new LegateError('aborted', messageOf(reason), { cause: reason })
}

/** True for an error that means "this was cancelled". A timeout is not a cancel. Never throws. */
export function isAbort(error: unknown): boolean {
  if (isLegateError(error, 'aborted')) return true
  try {
    return error instanceof Error && error.name === 'AbortError'
  } catch {
    return false
  }
}

/** Settles as `wanted` does, or rejects with the signal's reason as soon as the signal aborts. */
export function unlessAborted<T>(wanted: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const remove = onAbort(signal, () => reject(abortReason(signal)))
    wanted.then(resolve, reject).finally(remove)
  })
}

/** Calls `run` once when the signal aborts, at once if it already has. Returns a remover. `run` must not throw. */
export function onAbort(signal: AbortSignal | undefined, run: () => void): () => void {
  if (signal === undefined) return () => {}
  if (signal.aborted) {
    run()
    return () => {}
  }
  const listener = () => run()
  const listeners = listenersOf.get(signal) ?? listen(signal)
  listeners.add(listener)
  return () => listeners.remove(listener)
}

const listenersOf = new WeakMap<AbortSignal, Listeners>()

function listen(signal: AbortSignal): Listeners {
  const listeners = new Listeners(signal)
  listenersOf.set(signal, listeners)
  return listeners
}

/** Keeps one listener of ours per signal, however many callers wait: Node warns of a leak above ten listeners. */
class Listeners {
  private readonly signal: AbortSignal
  private readonly waiting: Set<() => void> = new Set()
  private readonly ring = (): void => {
    const waiting = [...this.waiting]
    this.waiting.clear()
    for (const listener of waiting) listener()
  }

  constructor(signal: AbortSignal) {
    this.signal = signal
  }

  add(listener: () => void): void {
    if (this.waiting.size === 0) this.signal.addEventListener('abort', this.ring, { once: true })
    this.waiting.add(listener)
  }

  remove(listener: () => void): void {
    if (this.waiting.delete(listener) && this.waiting.size === 0) this.signal.removeEventListener('abort', this.ring)
  }
}

/** Gives the result of the work, or undefined when it takes longer than `ms`. Throws if the work fails within that time. */
export async function within<T>(work: T | Promise<T>, ms: number): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
