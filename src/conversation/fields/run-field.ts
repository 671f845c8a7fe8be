import type { CheckedSchema, Issue } from '../../base/schema/schema.ts'
import type { FieldEvent, FieldKind } from '../../fields/field-event.ts'
import type { FieldParser } from '../../fields/field-parser.ts'
import type { RunEvent } from '../../graph/event.ts'
import type { Id } from '../../graph/rows.ts'
import type { Store } from '../../store/store.ts'

/** Which answer of which run a field is of. */
export interface FieldPlace {
  readonly runId: Id
  readonly nodeId: Id
  /** Agent names from the root, root included. */
  readonly agentPath: readonly string[]
  /** Which try at the answer it is, from 1: one that does not fit, or is cut off, is asked for again. */
  readonly attempt: number
  /** Of a field of a call's arguments: which call. */
  readonly call?: { readonly id: string; readonly tool: string }
}

/** Something became known about a field of a run's answer; `reset`: what was told of earlier attempts is void. */
export class RunField<Value = unknown> implements FieldPlace {
  readonly kind: FieldKind | 'reset'
  /**
   * What is there so far; complete when `kind` is `done`. An object or list is that of this reader's document, and grows
   * with it: read, do not write.
   */
  readonly value: Value
  /** What a text grew by. */
  readonly delta: string | undefined
  readonly runId: Id
  readonly nodeId: Id
  readonly agentPath: readonly string[]
  readonly attempt: number
  readonly call?: { readonly id: string; readonly tool: string }
  private readonly event: FieldEvent | null

  constructor(event: FieldEvent | null, { runId, nodeId, agentPath, attempt, call }: FieldPlace) {
    this.kind = event?.kind ?? 'reset'
    this.value = event?.value as Value
    this.delta = event?.delta
    this.runId = runId
    this.nodeId = nodeId
    this.agentPath = agentPath
    this.attempt = attempt
    if (call !== undefined) this.call = call
    this.event = event
  }

  get isComplete(): boolean {
    return this.kind === 'done'
  }

  /** What the schema says of a value that is done: empty when it fits. Undefined where it was not asked. */
  get issues(): readonly Issue[] | undefined {
    return this.event?.issues
  }

  /** Keys and indexes from the root, which is `[]`. */
  get path(): (string | number)[] {
    return this.event?.path ?? []
  }

  /** As in `tasks[0].title`. */
  get dot(): string {
    return this.event?.dot ?? ''
  }

  /** As in `/tasks/0/title`: RFC 6901. */
  get slash(): string {
    return this.event?.slash ?? ''
  }

  /** As in `tasks[*].title`. */
  get wildcard(): string {
    return this.event?.wildcard ?? ''
  }

  /** The indexes that `wildcard` leaves out. */
  get indexes(): number[] {
    return this.event?.indexes ?? []
  }
}

/** Where the fields of a run are read from: its events, and the schemas that agents of this process have. */
export interface FieldSource {
  readonly runId: Id
  readonly store: Store
  events(): AsyncIterable<RunEvent>
  /** What the answer of a run must be; null when it may be anything, undefined when its code is not known here. */
  schemaOf(runId: Id): CheckedSchema | null | undefined
}

/** What became known at once, of one answer. */
export interface FieldBatch {
  readonly event: RunEvent
  readonly place: FieldPlace
  readonly parser: FieldParser
  readonly events: readonly FieldEvent[]
  /** What was told of earlier attempts of this run is void. */
  readonly isReset: boolean
}
