import type { Clock } from '../base/clock.ts'
import { InputError } from '../base/error.ts'
import { after, attempt, type Later } from '../base/maybe.ts'
import { flag, type NoOptions, number, type OptionRules, readOptions, text } from '../base/options.ts'
import type { CheckedSchema } from '../base/schema/schema.ts'
import type { RunEvent } from '../graph/event.ts'
import type { RunOutcome } from '../graph/outcome.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Id } from '../graph/rows.ts'
import { lookWith } from '../store/look.ts'
import type { Store } from '../store/store.ts'
import type { FieldResult } from './fields/field-handlers.ts'
import type { FieldSource, RunField } from './fields/run-field.ts'
import { eventsWithFields, type FieldsOptions, RunFields } from './fields/run-fields.ts'
import type { EventScope } from './fields/view.ts'
import { closable, type FieldOptions } from './fields/wait-for-field.ts'
import type { EventsOptions, FieldHandler, Run, TreeEventsOptions } from './run.ts'

export interface RunHandleOptions<Out> {
  readonly id: Id
  readonly conversationId: Id
  /** Its conversation, where that is certain only once the run is recorded. */
  readonly place?: { readonly conversationId: Id } | undefined
  /** Started here: the process stays alive until the run has ended, whether anybody awaits its result or not. */
  readonly isOwn: boolean
  /** Settles when the run is recorded; rejects when it could not be. Undefined when it is recorded already. */
  readonly started: undefined | Promise<unknown>
  readonly result: () => Promise<RunOutcome<Out>>
  readonly follow: (
    from: { readonly after: number; readonly live: boolean },
    sees: EventScope,
  ) => Later<AsyncIterableIterator<RunEvent>>
  readonly cancel: (reason: string | undefined) => Promise<void>
  /** The output schema; null when the answer may be anything, undefined when this process does not have the run's code. */
  readonly output: CheckedSchema | null | undefined
  /** The parts, beside its events, that reading fields needs. */
  readonly fields: FieldParts
}

export interface FieldParts {
  readonly store: Store
  readonly clock: Clock
  readonly schemaOf: FieldSource['schemaOf']
  readonly report: (error: unknown) => void
}

/** The options of `runtime.events`. */
export const TREE_EVENTS: OptionRules<TreeEventsOptions> = { after: number(), live: flag }
const EVENTS: OptionRules<EventsOptions> = { ...TREE_EVENTS, fields: flag }

/** The handle that the starter of a run gets. It keeps nothing but handlers and reads everything else from the rows. */
export class RunHandle<Out, Raw> implements Run<Out, Raw> {
  readonly id: Id
  private readonly options: RunHandleOptions<Out>
  private awaited: Promise<RunOutcome<Out>> | undefined
  private read: RunFields | undefined

  constructor(options: RunHandleOptions<Out>) {
    this.options = options
    this.id = options.id
    if (options.isOwn) this.awaited = this.wait()
  }

  get conversationId(): Id {
    const { conversationId, place } = this.options
    return place?.conversationId ?? conversationId
  }

  get result(): Promise<RunOutcome<Out>> {
    this.awaited ??= this.wait()
    return this.awaited
  }

  [Symbol.asyncIterator](): AsyncIterator<RunEvent> {
    return this.events()[Symbol.asyncIterator]()
  }

  events(options: EventsOptions = {}): AsyncIterable<RunEvent> {
    const { after = 0, fields = false, live = false } = readOptions('run.events()', options, EVENTS)
    const { started, follow } = this.options
    if (fields && live) throw new InputError('invalid_input', 'run.events(): name one of fields and live, not both.')
    if (fields)
      return { [Symbol.asyncIterator]: () => closable(this.source('all'), (source) => eventsWithFields(source, after)) }
    return { [Symbol.asyncIterator]: () => lateIterator(started, () => follow({ after, live }, 'forwarded')) }
  }

  async cancel(reason?: string): Promise<void> {
    readOptions('run.cancel()', { reason }, { reason: text })
    await this.options.started
    await this.options.cancel(reason)
  }

  fields(path?: string, options?: FieldsOptions): AsyncIterable<RunField<never>> {
    return this.reading.fields(path, options) as AsyncIterable<RunField<never>>
  }

  field(path: string, options?: FieldOptions<unknown>): Promise<never> {
    return this.reading.field(path, options) as Promise<never>
  }

  onField(path: string, handler: FieldHandler<never>): never {
    this.reading.onField(path, handler)
    return this as never
  }

  async settled(options: NoOptions = {}): Promise<FieldResult[]> {
    readOptions('run.settled()', options, {})
    return this.reading.settled()
  }

  /** Reads the fields of its answer; `legate/compat` uses it too. */
  get reading(): RunFields {
    const { clock, report } = this.options.fields
    this.read ??= new RunFields({ source: this.source('fields'), clock, report, result: () => this.result })
    return this.read
  }

  /** Reads rows of its tree: see `look`. */
  async look<T>(read: (tree: TreeReader) => T): Promise<T> {
    await this.options.started
    return lookWith(this.options.fields.store, this.id, read) as Later<Awaited<T>>
  }

  private source(sees: EventScope): FieldSource {
    const { started, follow, fields, output } = this.options
    return {
      runId: this.id,
      output,
      tree: () => this.look((tree) => tree),
      schemaOf: (tree, runId) => (runId === this.id ? output : fields.schemaOf(tree, runId)),
      events: () => ({
        [Symbol.asyncIterator]: () => lateIterator(started, () => follow({ after: 0, live: false }, sees)),
      }),
    }
  }

  private wait(): Promise<RunOutcome<Out>> {
    const result = Promise.resolve(attempt(() => this.options.result()))
    result.catch(() => undefined)
    return result
  }
}

/** An iterator that begins when `ready` has settled, and fails with it. */
export function lateIterator<T>(
  ready: undefined | Promise<unknown>,
  begin: () => Later<AsyncIterator<T>>,
): AsyncIterator<T> {
  let begun: Promise<AsyncIterator<T>> | undefined
  let iterator: AsyncIterator<T> | undefined
  let isOver = false
  const first = () => {
    begun ??= Promise.resolve(ready).then(() =>
      after(begin(), (made) => {
        iterator = made
        return made
      }),
    )
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
