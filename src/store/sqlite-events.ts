import { parseOwnJson } from '../base/json.ts'
import type { EventRow } from '../graph/event.ts'

type Place = Omit<EventRow, 'seq' | 'body'>

const NOWHERE: Place = { at: 0, conversationId: '', turnId: '', nodeId: null, path: [], parentId: null }

/** Events of a commit as JSON: without their sequence, and of their place only what differs from the event before. */
export function packEvents(events: readonly EventRow[]): string {
  let before: Place = NOWHERE
  const packed: object[] = []
  for (const event of events) {
    packed.push({ ...difference(event, before), body: event.body })
    before = event
  }
  return JSON.stringify(packed)
}

/** `last` is the sequence after them. */
export function unpackEvents(text: string, last: number): EventRow[] {
  const packed = parseOwnJson(text) as (Partial<Place> & Pick<EventRow, 'body'>)[]
  let seq = last - packed.length
  let before: Place = NOWHERE
  return packed.map(({ body, ...place }) => {
    const { at, conversationId, turnId, nodeId, path, parentId }: Place = { ...before, ...place }
    const event: EventRow = { seq: ++seq, at, conversationId, turnId, nodeId, path, parentId, body }
    before = event
    return event
  })
}

function difference(place: Place, before: Place): { -readonly [Key in keyof Place]?: Place[Key] } {
  const changed: ReturnType<typeof difference> = {}
  if (place.at !== before.at) changed.at = place.at
  if (place.conversationId !== before.conversationId) changed.conversationId = place.conversationId
  if (place.turnId !== before.turnId) changed.turnId = place.turnId
  if (place.nodeId !== before.nodeId) changed.nodeId = place.nodeId
  if (!isSamePath(place.path, before.path)) changed.path = place.path
  if (place.parentId !== before.parentId) changed.parentId = place.parentId
  return changed
}

function isSamePath(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((name, index) => name === b[index]))
}
