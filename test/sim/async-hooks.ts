// Stands in for `node:async_hooks` in the simulation. Node 20 calls hooks for every promise once anybody asks for the current call;
// the agents of the simulation do not, and a seed makes thousands of promises.

export class AsyncLocalStorage<T> {
  private current: T | undefined

  run<R>(value: T, code: () => R): R {
    const before = this.current
    this.current = value
    try {
      return code()
    } finally {
      this.current = before
    }
  }

  getStore(): T | undefined {
    return this.current
  }
}
