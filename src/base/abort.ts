import { isLegateError, LegateError, messageOf } from './error.ts'

/** Why the signal was aborted, as an error to throw: the reason itself where it is one. */
export function abortReason(signal: AbortSignal): Error {
  const reason: unknown = signal.reason
  if (reason instanceof Error) return reason
  if (reason === undefined) return new LegateError('aborted', 'The operation was aborted.')
  return new LegateError('aborted', messageOf(reason), { cause: reason })
}

/** True for an error that says "this was cancelled". A timeout is not a cancel. Never throws. */
export function isAbort(error: unknown): boolean {
  if (isLegateError(error, 'aborted')) return true
  try {
    return error instanceof Error && error.name === 'AbortError'
  } catch {
    return false
  }
}

/** Calls `run` once when the signal aborts, at once if it already has. Returns a remover. `run` must not throw. */
export function onAbort(signal: AbortSignal | undefined, run: () => void): () => void {
  if (signal === undefined) return () => {}
  if (signal.aborted) {
    run()
    return () => {}
  }
  const listener = () => run()
  signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}
