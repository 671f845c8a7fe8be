/** Goes on at once with what is there, and later with what is promised: where nothing waits, nothing is allocated. */
export function after<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}
