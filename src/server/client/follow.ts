import type { RunEvent } from '../../core/graph/event.ts'
import { ClientError } from './error.ts'
import type { Frame } from './frame-reader.ts'
import { readJson } from './read-json.ts'
import { type ClientStreamOptions, readStream, type StreamPlace } from './stream.ts'
import type { QueryValues, ServerRequests } from './transport.ts'
import { reduceTree } from './tree/reduce.ts'
import { emptyTree, type TreeState } from './tree/tree-state.ts'

/** A stream of a run's events, and how to read it. */
export interface EventsPlace {
  readonly path: string
  readonly query?: QueryValues
  /** Only events after this number. */
  readonly after?: number | undefined
}

/**
 * The events of a stream, in order: each stored event once, however often the stream is cut. After a cut a `live` event says
 * again what a node that streams has said so far; it replaces what you have of the node.
 */
export async function* readEvents(
  transport: ServerRequests,
  place: EventsPlace,
  options: ClientStreamOptions,
): AsyncGenerator<RunEvent, void> {
  for await (const frames of readStream(transport, streamOf(place), options)) yield* frames.map(eventIn)
}

/** The states of a tree: one for each piece of the stream that changed it. */
export async function* readTreeStates(
  transport: ServerRequests,
  path: string,
  options: ClientStreamOptions,
): AsyncGenerator<TreeState, void> {
  let state = emptyTree()
  for await (const frames of readStream(transport, streamOf({ path }), options)) {
    const before = state
    for (const frame of frames) state = reduceTree(state, eventIn(frame))
    if (state !== before) yield state
  }
}

function streamOf({ path, query = {}, after }: EventsPlace): StreamPlace {
  const lastId = after === undefined || after === 0 ? undefined : String(after)
  return { path, query, lastId, isOld: ({ id }, last) => last !== undefined && Number(id) <= Number(last) }
}

function eventIn(frame: Frame): RunEvent {
  return dataIn(frame) as RunEvent
}

/** The data of a frame. */
export function dataIn({ data, event }: Frame): unknown {
  const value = readJson(data)
  if (value !== undefined) return value
  throw new ClientError(`A frame "${event}" of the stream is not JSON.`, { status: 0, code: 'no_json' })
}
