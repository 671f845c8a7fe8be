import { useSyncExternalStore } from 'react'

/** A value that components can watch. */
export class Cell<Value> {
  private value: Value
  private readonly listeners = new Set<() => void>()

  constructor(value: Value) {
    this.value = value
  }

  readonly get = (): Value => this.value

  set(value: Value): void {
    if (Object.is(value, this.value)) return
    this.value = value
    for (const listener of [...this.listeners]) listener()
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => {
      this.listeners.delete(listener)
    }
  }
}

/** The value of a cell; the component renders again when it changes. */
export function useCell<Value>(cell: Cell<Value>): Value {
  return useSyncExternalStore(cell.subscribe, cell.get, cell.get)
}
