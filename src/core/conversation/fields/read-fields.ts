import type { FieldEvent } from '../../fields/field-event.ts'
import type { RunEvent } from '../../graph/event.ts'
import { onceLoaded } from '../../store/look.ts'
import type { FieldBatch, FieldSource } from './run-field.ts'

/**
 * Reads the answers of a run, and with `agent` those of runs below it, from their streams and records. It parses only
 * while somebody reads; each reader has its own parser and sees everything from the beginning.
 */
export async function* readFields(source: FieldSource, agent?: string): AsyncGenerator<FieldBatch, void> {
  const { AnswerReader } = await import('./answers.ts')
  const answers = new AnswerReader(source, await source.tree())
  const isWanted = wantedBy(source, agent)
  for await (const event of source.events()) {
    if (!isWanted(event)) continue
    const taken = onceLoaded(() => answers.take(event))
    const batch = taken instanceof Promise ? await taken : taken
    if (batch !== undefined) yield batch
  }
}

export interface DoneField extends Pick<FieldBatch, 'place' | 'parser'> {
  readonly event: FieldEvent
  /** How many values of its attempt were complete before. */
  readonly at: number
}

/** The complete fields of a run's own answers, in order. */
export async function* doneFields(source: FieldSource): AsyncGenerator<DoneField, void> {
  let attempt = 0
  let at = 0
  for await (const { events, parser, place } of readFields(source)) {
    if (place.attempt !== attempt) at = 0
    attempt = place.attempt
    for (const event of events) if (event.kind === 'done') yield { event, parser, place, at: at++ }
  }
}

/** Selects the events of the run itself, or of agents of a name in it and below it. */
export function wantedBy({ runId }: FieldSource, agent: string | undefined): (event: RunEvent) => boolean {
  if (agent === undefined) return (event) => event.runId === runId
  return ({ path }) => agent === '*' || path.at(-1) === agent
}
