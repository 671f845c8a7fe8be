/** A failure at once is the same as one later. */
export function attempt<T>(run: () => T | Promise<T>): T | Promise<T> {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}
