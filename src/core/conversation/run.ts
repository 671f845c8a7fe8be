// A run as its starter sees it: `Run` and its outcome types. `runtime.run`, `agent.start`, `attach` and changes of
// history return it; `conversation/run-handle` implements it, and `conversation/fields` reads the fields of its
// answers.
//
// Stays true:
// - A handle holds no state of the run. Two handles of one run, here or in another process, show the same.
// - `result` resolves with every outcome, also a failed one. It rejects only where nothing could be recorded.
// - Readers are independent: one that stops, or is slow, changes nothing for the run or for other readers.

import type { NoOptions } from '../base/options.ts'
import type { FieldPath, FieldValue } from '../fields/field-path.ts'
import type { RunEvent } from '../graph/event.ts'
import type { RunOutcome } from '../graph/outcome.ts'
import type { Id } from '../graph/rows.ts'
import type { FieldResult } from './fields/field-handlers.ts'
import type { RunField } from './fields/run-field.ts'
import type { FieldsOptions } from './fields/run-fields.ts'
import type { FieldOptions } from './fields/wait-for-field.ts'

/**
 * A turn seen from outside. Iterate it for its events, await `result` for its outcome. `Raw` is the type that the model
 * writes, `Out` the type after the output schema has read it.
 */
export interface Run<Out = unknown, Raw = Out> extends AsyncIterable<RunEvent> {
  readonly id: Id
  readonly conversationId: Id
  /**
   * Resolves with any outcome; rejects only if nothing could be recorded. The process stays alive while somebody awaits
   * it.
   */
  readonly result: Promise<RunOutcome<Out>>
  /** Yields events after a sequence number, as in `event.seq`: to continue where another reader stopped. */
  events(options?: EventsOptions): AsyncIterable<RunEvent>
  /** Asks the run and everything it started to stop. Resolves when the request is recorded. */
  cancel(reason?: string): Promise<void>
  /**
   * Yields the fields of its answer at a path, each when it is complete; without a path, all. Takes any number of
   * readers, each from the beginning, also when the run is over. A reader that stops does not stop anything else.
   */
  fields(): AsyncIterable<RunField>
  fields<Self, P extends FieldPath<RawOf<Self>>>(
    this: Self,
    path: P,
  ): AsyncIterable<RunField<FieldValue<RawOf<Self>, P>>>
  fields(path: string | undefined, options: FieldsOptions): AsyncIterable<RunField>
  /** The first value at a path that is complete and fits. Rejects with a FieldError that explains why there is none. */
  field<Self, P extends FieldPath<RawOf<Self>>, Default = never>(
    this: Self,
    path: P,
    options?: FieldOptions<Default>,
  ): Promise<FieldValue<RawOf<Self>, P> | Default>
  /** Calls the handler with each value at a path that is complete and fits, while the answer continues. */
  onField<Self, P extends FieldPath<RawOf<Self>>>(
    this: Self,
    path: P,
    handler: FieldHandler<FieldValue<RawOf<Self>, P>>,
  ): Self
  /**
   * Resolves when the run and all handlers have ended: their results, in the order in which the fields were complete.
   */
  settled(options?: NoOptions): Promise<FieldResult[]>
  /** Never set: it tells the compiler which paths exist. */
  readonly [written]?: () => Raw
}

declare const written: unique symbol

/** Takes the paths from the run at hand, so that every run is a `Run`, whatever its model writes. */
export type RawOf<Self> = Self extends { readonly [written]?: () => infer Written } ? Written : unknown

export type FieldHandler<Value = unknown> = (value: Value, field: RunField<Value>) => unknown

export interface EventsOptions {
  /** Only events after this sequence number, as in `event.seq`. */
  readonly after?: number
  /**
   * True: the reader continues the text of nodes that speak right now, wherever it comes in. When it has caught up it gets one
   * `live` event for each of them, with everything so far, and from then on the deltas that come after it.
   */
  readonly live?: boolean
  /** True: adds a `field` event for each field of an answer, behind the event that completes it. */
  readonly fields?: boolean
}

/** How to read the events of a whole tree. */
export type TreeEventsOptions = Pick<EventsOptions, 'after' | 'live'>
