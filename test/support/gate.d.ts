/** Something to wait for that a test decides: to hold a tool or a model at one place. */
export interface Gate<T = void> {
  readonly opened: Promise<T>
  open(value: T): void
}
export declare function makeGate<T = void>(): Gate<T>
