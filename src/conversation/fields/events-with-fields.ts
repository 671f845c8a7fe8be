import type { LiveEvent, RunEvent } from '../../graph/event.ts'
import { View } from '../view.ts'
import type { FieldBatch, FieldSource } from './field-source.ts'

/**
 * The events of a run as its readers see them, with a `field` event behind the one that completes a field. `events` gives
 * all of the run and what is below it; what hosts do not forward is left out here.
 */
export async function* eventsWithFields(source: FieldSource, after: number): AsyncGenerator<RunEvent, void> {
  const { store, runId } = source
  const view = new View(store, runId)
  const fields = new View(store, runId, 'fields')
  const { Answers } = await import('./answers.ts')
  const answers = new Answers(source)
  for await (const event of source.events()) {
    const shown = view.show(event)
    const batch = fields.show(event) === undefined ? undefined : answers.take(event)
    if (event.seq <= after) continue
    if (shown !== undefined) yield shown
    if (batch !== undefined) yield* fieldEvents(batch)
  }
}

async function* fieldEvents({ event, events, parser, place }: FieldBatch): AsyncGenerator<LiveEvent, void> {
  const { seq, at, conversationId, turnId, nodeId, path, parentId } = event
  for (const done of events) {
    if (done.kind !== 'done') continue
    const issues = await parser.check(done)
    const { dot: field, value } = done
    const { attempt } = place
    yield { seq, at, conversationId, turnId, nodeId, path, parentId, type: 'field', field, value, issues, attempt }
  }
}
