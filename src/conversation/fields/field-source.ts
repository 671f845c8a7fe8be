import type { CheckedSchema } from '../../base/schema.ts'
import type { RunEvent } from '../../graph/event.ts'
import type { Id } from '../../graph/rows.ts'
import type { FieldEvent } from '../../output/field-event.ts'
import type { FieldParser } from '../../output/field-parser.ts'
import type { Store } from '../../store/store.ts'
import type { FieldPlace } from './run-field.ts'

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
