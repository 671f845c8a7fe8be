import type { RunEvent } from '../../core/graph/event.ts'
import type { Id } from '../../core/graph/rows.ts'
import type { TreeChange } from '../../core/store/feed.ts'
import { dataIn } from './follow.ts'
import { type ClientStreamOptions, readStream } from './stream.ts'
import type { ServerRequests } from './transport.ts'

/** The trees and changes to hear of. */
export interface FeedOptions extends ClientStreamOptions {
  /** Trees whose events to hear, by the id of a conversation, each after the number of an event: at most 16. */
  readonly trees?: { readonly [conversationId: Id]: number }
  /** `cursor` of the last item that you have. It holds the place in all trees, so `trees` does not count beside it. */
  readonly after?: string
}

/** One thing that happened. */
export type FeedItem = FeedPlace &
  (
    | {
        /** A tree went on: something in it began, ended, or needs a person. */
        readonly type: 'change'
        readonly data: TreeChange
      }
    | {
        /** An event of a tree that you asked for. */
        readonly type: 'tree'
        readonly data: { readonly rootId: Id; readonly event: RunEvent }
      }
    | {
        /** Changes that you missed are no longer kept: list the runs again. */
        readonly type: 'cut'
        readonly data: object
      }
  )

/** Where a feed goes on. */
export interface FeedPlace {
  /** Begins a later feed after this item; null where it has no place of its own. */
  readonly cursor: string | null
}

/** Reads the feed. Its cursor is opaque: a new connection begins after the last one. */
export async function* readFeed(transport: ServerRequests, options: FeedOptions): AsyncGenerator<FeedItem, void> {
  const { trees = {}, after, ...stream } = options
  const tree = Object.entries(trees).map(([id, seq]) => `${id}:${seq}`)
  const place = { path: '/v1/feed', query: { tree: tree.length === 0 ? undefined : tree }, lastId: after }
  for await (const frames of readStream(transport, place, stream)) {
    for (const frame of frames) {
      const cursor = frame.hasId ? (frame.id ?? null) : null
      yield { type: frame.event, data: dataIn(frame), cursor } as FeedItem
    }
  }
}
