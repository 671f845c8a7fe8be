import type { FieldPath, FieldValue } from '../fields/field-path.ts'
import type { RunEvent } from '../graph/event.ts'
import type { Outcome } from '../graph/outcome.ts'
import type { Id } from '../graph/rows.ts'
import type { FieldResult } from './fields/field-handlers.ts'
import type { RunField } from './fields/run-field.ts'
import type { FieldsOptions } from './fields/run-fields.ts'
import type { FieldOptions } from './fields/wait-for-field.ts'

/** An outcome whose `output` has the type of the agent's output schema. It is null unless the run completed. */
export type RunOutcome<Out = unknown> = Omit<Outcome, 'output'> & { readonly output: Out | null }

/** The outcome of a run that completed. */
export type CompletedOutcome<Out = unknown> = Omit<Outcome, 'output' | 'status'> & {
  readonly status: 'completed'
  readonly output: Out
}

/**
 * A turn seen from outside. Iterate it for its events, await `result` for its outcome. `Written` is what the model writes,
 * `Out` what the output schema makes of it.
 */
export interface Run<Out = unknown, Written = Out> extends AsyncIterable<RunEvent> {
  readonly id: Id
  readonly conversationId: Id
  /** Resolves with any outcome; rejects only if nothing could be recorded. The process stays alive while it is awaited. */
  readonly result: Promise<RunOutcome<Out>>
  /** Events after a sequence number, as in `event.seq`: to go on where another reader stopped. */
  events(options?: EventsOptions): AsyncIterable<RunEvent>
  /** Asks the run and everything it started to stop. Resolves when the request is recorded. */
  cancel(reason?: string): Promise<void>
  /**
   * The fields of its answer at a path, each when it is complete; without a path, all. Any number of readers, each from
   * the beginning, also when the run is over. A reader that stops stops nothing else.
   */
  fields(): AsyncIterable<RunField>
  fields<Self, P extends FieldPath<WrittenIn<Self>>>(
    this: Self,
    path: P,
  ): AsyncIterable<RunField<FieldValue<WrittenIn<Self>, P>>>
  fields(path: string | undefined, options: FieldsOptions): AsyncIterable<RunField>
  /** The first value at a path that is complete and fits. Rejects with a FieldError that says why there is none. */
  field<Self, P extends FieldPath<WrittenIn<Self>>, Default = never>(
    this: Self,
    path: P,
    options?: FieldOptions<Default>,
  ): Promise<FieldValue<WrittenIn<Self>, P> | Default>
  /** Calls the handler with each value at a path that is complete and fits, while the answer goes on. */
  onField<Self, P extends FieldPath<WrittenIn<Self>>>(
    this: Self,
    path: P,
    handler: FieldHandler<FieldValue<WrittenIn<Self>, P>>,
  ): Self
  /** When the run and all handlers are over: what each made, in the order in which the fields were complete. */
  settled(): Promise<FieldResult[]>
  /** Never there: it tells the compiler which paths there are. */
  readonly [written]?: () => Written
}

declare const written: unique symbol

/** Paths are taken from the run at hand, so that any run is a `Run`, whatever it writes. */
export type WrittenIn<Self> = Self extends { readonly [written]?: () => infer Written } ? Written : unknown

export type FieldHandler<Value = unknown> = (value: Value, field: RunField<Value>) => unknown

export interface EventsOptions {
  /** Only those after this sequence number, as in `event.seq`. */
  readonly after?: number
  /** Also a `field` event for each field of an answer, behind the event that completes it. */
  readonly fields?: boolean
}
