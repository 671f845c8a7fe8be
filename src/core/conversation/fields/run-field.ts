import type { CheckedSchema, Issue } from '../../base/schema/schema.ts'
import type { FieldEvent, FieldKind } from '../../fields/field-event.ts'
import type { FieldParser } from '../../fields/field-parser.ts'
import type { RunEvent } from '../../graph/event.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id } from '../../graph/rows.ts'

/** The run and the answer that a field belongs to. */
export interface FieldPlace {
  readonly runId: Id
  readonly nodeId: Id
  /** Agent names from the root, root included. */
  readonly agentPath: readonly string[]
  /** Counts the attempts at the answer from 1: the model answers again when an answer does not fit or is cut off. */
  readonly attempt: number
  /** Set for a field of a call's arguments: that call. */
  readonly call?: { readonly id: string; readonly tool: string }
}

/** News about a field of a run's answer; `reset`: fields of earlier attempts no longer count. */
export class RunField<Value = unknown> implements FieldPlace {
  readonly kind: FieldKind | 'reset'
  /**
   * The value so far; complete when `kind` is `done`. An object or list belongs to this reader's document and grows
   * with it: read it, do not change it.
   */
  readonly value: Value
  /** The text that was added. */
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

  /** The schema's objections to a value that is done: empty when it fits. Undefined where nobody checked it. */
  get issues(): readonly Issue[] | undefined {
    return this.event?.issues
  }

  /** Keys and indexes from the root, which is `[]`. */
  get path(): (string | number)[] {
    return this.event?.path ?? []
  }

  /** Example: `tasks[0].title`. */
  get dot(): string {
    return this.event?.dot ?? ''
  }

  /** Example: `/tasks/0/title` (RFC 6901). */
  get slash(): string {
    return this.event?.slash ?? ''
  }

  /** Example: `tasks[*].title`. */
  get wildcard(): string {
    return this.event?.wildcard ?? ''
  }

  /** The indexes that `wildcard` leaves out. */
  get indexes(): number[] {
    return this.event?.indexes ?? []
  }
}

/** The origin of a run's fields: its events, and the schemas that agents of this process have. */
export interface FieldSource {
  readonly runId: Id
  /** The output schema of the run: see `schemaOf`. */
  readonly output: CheckedSchema | null | undefined
  /** The tree of the run, once the run is recorded; of a large one the rows that are here. */
  tree(): Promise<TreeReader>
  events(): AsyncIterable<RunEvent>
  /**
   * The output schema of a run of the tree; null when the answer may be anything, undefined when this process does not have its
   * code.
   */
  schemaOf(tree: TreeReader, runId: Id): CheckedSchema | null | undefined
}

/** The fields of one answer that one event made known. */
export interface FieldBatch {
  readonly event: RunEvent
  readonly place: FieldPlace
  readonly parser: FieldParser
  readonly events: readonly FieldEvent[]
  /** True when fields of earlier attempts of this run no longer count. */
  readonly isReset: boolean
}
