import type { Issue } from '../../base/schema.ts'
import type { Id } from '../../graph/rows.ts'
import type { FieldEvent, FieldKind } from '../../output/field-event.ts'

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
