import type { PathPattern } from '../../output/path-pattern.ts'
import type { FieldBatch, FieldSource } from './field-source.ts'
import { readFields, wantedBy } from './read-fields.ts'
import { RunField } from './run-field.ts'

export interface FieldsOptions {
  /** Also what is not complete: `open`, `delta` and `truncated`, and `reset` before the next attempt. */
  readonly partial?: boolean
  /** Of agents of this name in the run and below it, instead of the run's own; `*`: of all. */
  readonly agent?: string
  /** Of the arguments of calls of this tool (`*`: of all) while they are written, instead of the answer's: see `call`. */
  readonly tool?: string
}

/** The fields at a path as they become complete, checked against their part of the schema. Without a path, all. */
export async function* matchingFields(
  source: FieldSource,
  pattern: PathPattern | null,
  { partial = false, agent, tool }: FieldsOptions,
): AsyncGenerator<RunField, void> {
  const batches = tool === undefined ? readFields(source, agent) : await callFields(source, tool, agent)
  for await (const batch of batches) {
    if (batch.isReset && partial) yield new RunField(null, batch.place)
    for (const event of batch.events) {
      if (!isShown(event.kind, partial) || (pattern !== null && !event.isAt(pattern))) continue
      if (event.kind === 'done') await batch.parser.check(event)
      yield new RunField(event, batch.place)
    }
  }
}

async function callFields(source: FieldSource, tool: string, agent?: string): Promise<AsyncIterable<FieldBatch>> {
  const { readCallFields } = await import('./call-fields.ts')
  return readCallFields(source, tool, wantedBy(source, agent))
}

function isShown(kind: FieldBatch['events'][number]['kind'], partial: boolean): boolean {
  return partial || kind === 'done'
}
