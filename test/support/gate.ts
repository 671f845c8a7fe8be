/** Something to wait for that a test decides: to hold a tool or a model at one place. */
export interface Gate<T = void> {
  readonly opened: Promise<T>
  open(value: T): void
}

export function makeGate<T = void>(): Gate<T> {
  let open: (value: T) => void = () => undefined
  const opened = new Promise<T>((resolve) => {
    open = resolve
  })
  return { opened, open }
}
