/** Goes on at once with what is there, and later with what is promised: where nothing waits, nothing is allocated. */
export function after<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** A failure at once is the same as one later. */
export function attempt<T>(run: () => T | Promise<T>): T | Promise<T> {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}
