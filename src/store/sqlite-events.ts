import { parseOwnJson } from '../base/json.ts'
import type { EventRow } from '../graph/event.ts'

type Place = Omit<EventRow, 'seq' | 'body'>

const NOWHERE: Place = { at: 0, conversationId: '', turnId: '', nodeId: null, path: [], parentId: null }

/** Events of a commit as JSON: without their sequence, and of their place only what differs from the event before. */
export function packEvents(events: readonly EventRow[]): string {
  let before: Place = NOWHERE
  const packed = events.map((event) => {
    const difference = {
      at: unless(event.at, before.at),
      conversationId: unless(event.conversationId, before.conversationId),
      turnId: unless(event.turnId, before.turnId),
      nodeId: unless(event.nodeId, before.nodeId),
      path: isSamePath(event.path, before.path) ? undefined : event.path,
      parentId: unless(event.parentId, before.parentId),
      body: event.body,
    }
    before = event
    return difference
  })
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

function unless<T>(value: T, usual: T): T | undefined {
  return value === usual ? undefined : value
}

function isSamePath(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((name, index) => name === b[index]))
}
