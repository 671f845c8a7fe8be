// Frames of server-sent events. An event becomes bytes once, and all its readers share them.
//
// Stays true:
// - Only durable events have an `id:`. It is their whole `seq`, so a client that comes back names nothing that can be lost.
// - A frame is never longer than its event needs, and no text of an event can end a frame: JSON has no raw line breaks.

import type { RunEvent } from '../../index.ts'

const shared = new WeakMap<RunEvent, Buffer>()
const sharedSlim = new WeakMap<RunEvent, Buffer>()

/** The frame of an event. `slim`: deltas carry their node and their text only. */
function eventFrame(event: RunEvent, slim: boolean): Buffer {
  const isSlim = slim && isDelta(event)
  const known = isSlim ? sharedSlim : shared
  const ready = known.get(event)
  if (ready !== undefined) return ready
  const made = frame(event.type, isSlim ? slimOf(event) : event, Number.isInteger(event.seq) ? event.seq : undefined)
  known.set(event, made)
  return made
}

/** An item of a stream that is not an event of one run: its id is an opaque place to come back to. */
export interface PlacedItem {
  readonly cursor: string
  readonly type: string
  readonly data: object
}

/** A frame of another protocol, as it is. */
export interface PlainItem {
  readonly plain: string
}

export type StreamItem = RunEvent | PlacedItem | PlainItem

/** The frame of any item. */
export function itemFrame(item: StreamItem, slim: boolean): Buffer {
  if ('plain' in item) return Buffer.from(item.plain)
  if (!('cursor' in item)) return eventFrame(item, slim)
  return frame(item.type, item.data, item.cursor === '' ? undefined : item.cursor)
}

/** A frame with any data. */
export function frame(type: string, data: unknown, id?: number | string): Buffer {
  const head = id === undefined ? '' : `id: ${id}\n`
  return Buffer.from(`${head}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`)
}

/** The first frame of a stream: how soon to come back after a loss, and where the stream begins. */
export function helloFrame(hello: unknown, place?: string): Buffer {
  return Buffer.concat([Buffer.from('retry: 1000\n'), frame('hello', hello, place)])
}

/** Says nothing; proxies and clients see that the stream lives. */
export const COMMENT: Buffer = Buffer.from(':\n\n')

type Delta = Extract<RunEvent, { type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta' }>

function isDelta(event: RunEvent): event is Delta {
  return event.type === 'text-delta' || event.type === 'reasoning-delta' || event.type === 'tool-input-delta'
}

function slimOf(event: Delta): object {
  const { type, nodeId, text } = event
  const call = event.type === 'tool-input-delta' ? { callId: event.callId } : {}
  return { type, nodeId, ...call, text, ...(event.cumulative === true ? { cumulative: true } : {}) }
}

/** Two pieces of one text as one; undefined where they do not belong together. */
export function joinDeltas(first: StreamItem, second: StreamItem): RunEvent | undefined {
  if ('cursor' in first || 'cursor' in second || 'plain' in first || 'plain' in second) return undefined
  if (!isDelta(first) || !isDelta(second)) return undefined
  if (first.type !== second.type || first.nodeId !== second.nodeId) return undefined
  if (first.cumulative === true || second.cumulative === true) return undefined
  if (first.type === 'tool-input-delta' && second.type === 'tool-input-delta' && first.callId !== second.callId)
    return undefined
  return { ...second, text: first.text + second.text }
}
