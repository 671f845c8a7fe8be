import type { RunEvent } from '../graph/event.ts'
import type { Id } from '../graph/rows.ts'
import type { Run, RunOutcome } from './run.ts'

export interface RunHandleOptions<Out> {
  readonly id: Id
  readonly conversationId: Id
  /** Started here: the process stays alive until it has ended, whether its result is awaited or not. */
  readonly isOwn: boolean
  /** Settles when the run is recorded; rejects when it could not be. Nothing when it is already. */
  readonly started: undefined | Promise<unknown>
  readonly result: () => Promise<RunOutcome<Out>>
  readonly follow: (after: number) => AsyncIterableIterator<RunEvent>
  readonly cancel: (reason: string | undefined) => Promise<void>
}

/** A run as its starter holds it. It keeps nothing: everything is read from the rows. */
export class RunHandle<Out> implements Run<Out> {
  readonly id: Id
  readonly conversationId: Id
  private readonly options: RunHandleOptions<Out>
  private awaited: Promise<RunOutcome<Out>> | undefined

  constructor(options: RunHandleOptions<Out>) {
    this.options = options
    this.id = options.id
    this.conversationId = options.conversationId
    if (options.isOwn) this.awaited = this.wait()
  }

  get result(): Promise<RunOutcome<Out>> {
    this.awaited ??= this.wait()
    return this.awaited
  }

  [Symbol.asyncIterator](): AsyncIterator<RunEvent> {
    return this.events()[Symbol.asyncIterator]()
  }

  events({ after = 0 }: { readonly after?: number } = {}): AsyncIterable<RunEvent> {
    const { started, follow } = this.options
    return { [Symbol.asyncIterator]: () => lateIterator(started, () => follow(after)) }
  }

  async cancel(reason?: string): Promise<void> {
    await this.options.started
    await this.options.cancel(reason)
  }

  private wait(): Promise<RunOutcome<Out>> {
    const result = this.options.result()
    result.catch(() => undefined)
    return result
  }
}

/** An iterator that begins when `ready` has settled, and fails with it. */
function lateIterator<T>(ready: undefined | Promise<unknown>, begin: () => AsyncIterator<T>): AsyncIterator<T> {
  let begun: Promise<AsyncIterator<T>> | undefined
  let iterator: AsyncIterator<T> | undefined
  let isOver = false
  const first = () => {
    begun ??= Promise.resolve(ready).then(() => {
      iterator = begin()
      return iterator
    })
    return begun
  }
  return {
    next: () => {
      if (iterator !== undefined) return iterator.next()
      return isOver ? Promise.resolve(END) : first().then((inner) => inner.next())
    },
    return: async () => {
      isOver = true
      const inner = await begun?.catch(() => undefined)
      await inner?.return?.()
      return END
    },
  }
}

const END: IteratorReturnResult<undefined> = { value: undefined, done: true }
