// Values that are there at once or later (`T | Promise<T>`). A memory store and a local engine answer at once; a file or a
// remote store later.
//
// Owns:      the two functions that wait only for real promises.
// Called by: hot paths (commit, step, spawn). Functions off the hot path use `await`.
// Must stay true:
//   - A value that is there costs nothing: awaiting it would cost a promise and a turn of the event loop per step.
//   - Nothing else comes between a value that is there and the code that uses it.

/** A value that is there at once, or later. */
export type Later<T> = T | Promise<T>

/** Calls `next` at once with a plain value, and later with the result of a promise. Allocates nothing for a plain value. */
export function after<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** Runs a function that may throw or reject, and turns a throw into a rejection: callers handle one kind of failure. */
export function attempt<T>(run: () => T | Promise<T>): T | Promise<T> {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}
