// The feed of a page: everything that begins, ends or needs somebody, and up to 16 trees whole, in one stream.
//
// Stays true:
// - Its `id:` is one opaque text for all of its sources, at most 1 kB: a reader that comes back anywhere misses nothing.
// - Changes are ordered per tree only.

import { isId } from '../../../core/base/id.ts'
import { NotFoundError, type RunEvent } from '../../../index.ts'
import type { PlacedItem } from '../../stream/frames.ts'
import { mergeSources } from '../../stream/merge.ts'
import { Problem } from '../problem/problem.ts'
import type { Answer, Route, RouteCall } from '../table/route.ts'

const MOST_TREES = 16
const PAGE = 500

/** Where a reader is: in the changes, and in each tree. */
interface Place {
  changes: string
  readonly trees: Map<string, number>
}

export const FEED_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/feed',
    scope: 'read',
    summary: 'One stream for a page: which trees went on, and the events of up to 16 trees.',
    description:
      '`event: change` names a tree in which something began, ended, or needs a person. `event: tree` has an event of a tree that you asked for. `event: cut`: changes that you missed are no longer kept, so list the runs again.',
    query: {
      tree: {
        type: 'list',
        description: 'The id of a root conversation and the `seq` after which to begin: `id:after`.',
      },
    },
    headers: { 'Last-Event-ID': 'The last `id:` that you have. It holds the place in all trees.' },
    answers: { 200: { description: 'Frames.', type: 'text/event-stream', shape: 'FeedItem' } },
    handler: openFeed,
  },
]

/** An item that has not been handed out yet. The place moves when it is: what was only read may still be lost. */
interface Waiting {
  readonly type: string
  readonly data: object
  /** Moves the place behind the item; left out where it has none of its own. */
  readonly move?: () => void
}

async function openFeed(call: RouteCall): Promise<Answer> {
  const place = await placeOf(call)
  const trees = [...place.trees.keys()]
  const sources: AsyncIterator<Waiting>[] = [changesOf(call, place)]
  for (const id of trees) sources.push(await treeOf(call, place, id))
  const cursor = cursorOf(place)
  const hello = { cursor, trees, now: Date.now() }
  const items = handedOut(mergeSources(sources), place)
  return { status: 200, stream: { hello, place: cursor, items, isSlim: false, end: {} } }
}

function handedOut(merged: AsyncIterator<Waiting>, place: Place): AsyncIterator<PlacedItem> {
  return {
    next: async () => {
      const { value, done } = await merged.next()
      if (done === true) return END
      const { type, data, move }: Waiting = value
      move?.()
      return { value: { type, data, cursor: move === undefined ? '' : cursorOf(place) }, done: false }
    },
    return: async () => {
      await merged.return?.()
      return END
    },
  }
}

const END: IteratorReturnResult<undefined> = { value: undefined, done: true }

/** The changes after the place, and then those that come. */
function changesOf({ runtime, server }: RouteCall, place: Place): AsyncIterator<Waiting> {
  const ready: Waiting[] = []
  let at = place.changes
  let isOver = false
  let stop: (() => void) | undefined
  const read = async () => {
    const { changes, cursor, isCut } = await runtime.changes(at, PAGE)
    const hasMore = cursor !== at
    at = cursor
    if (isCut) ready.push({ type: 'cut', data: {} })
    // Only the last of a page has a place: one before it would leave out the rest.
    const move = () => {
      place.changes = cursor
    }
    const last = changes.length - 1
    for (const [index, data] of changes.entries())
      ready.push({ type: 'change', data, ...(index === last ? { move } : {}) })
    if (changes.length === 0 && ready.length === 0) move()
    return hasMore
  }
  const news = () =>
    new Promise<void>((resolve) => {
      const leave = server.ticker.onNext(at, resolve)
      stop = () => {
        leave()
        resolve()
      }
    })
  return {
    next: async () => {
      while (!isOver && ready.length === 0) if (!(await read())) await news()
      const item = ready.shift()
      return item === undefined || isOver ? END : { value: item, done: false }
    },
    return: async () => {
      isOver = true
      stop?.()
      return END
    },
  }
}

async function treeOf({ runtime }: RouteCall, place: Place, id: string): Promise<AsyncIterator<Waiting>> {
  const events = await runtime.events(id, { after: place.trees.get(id) ?? 0, live: true })
  const source = events[Symbol.asyncIterator]()
  const itemOf = (event: RunEvent): Waiting => {
    const move = () => {
      place.trees.set(id, event.seq)
    }
    return { type: 'tree', data: { rootId: id, event }, ...(Number.isInteger(event.seq) ? { move } : {}) }
  }
  return {
    next: async () => {
      const result = await source.next()
      return result.done === true ? END : { value: itemOf(result.value), done: false }
    },
    return: async () => {
      await source.return?.()
      return END
    },
  }
}

/** At most 1 kB: 22 characters for each id, and its number. */
function cursorOf({ changes, trees }: Place): string {
  const parts = [...trees].map(([id, seq]) => `${packId(id)}${seq.toString(36)}`)
  return [Buffer.from(changes).toString('base64url'), ...parts].join('.')
}

const ID_LENGTH = 22

function packId(id: string): string {
  return Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')
}

function unpackId(text: string): string {
  const hex = Buffer.from(text, 'base64url').toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** The place in the header of a reader that comes back, or that of now with the trees of the query. */
async function placeOf(call: RouteCall): Promise<Place> {
  const header = call.headers.get('last-event-id')
  if (header !== null) return checked(await withoutDeleted(readCursor(header), call), call)
  const { cursor } = await call.runtime.changes(null, 0)
  const trees = new Map<string, number>()
  for (const text of call.query.list('tree') ?? []) {
    const [id = '', after = '0'] = text.split(':')
    if (!isId(id) || !/^\d{1,15}$/.test(after)) throw badPlace('"tree" of the query must be id:after.')
    trees.set(id, Number(after))
  }
  return checked({ changes: cursor, trees }, call)
}

/** A tree that was deleted meanwhile must not keep its reader from the others. */
async function withoutDeleted({ changes, trees }: Place, { runtime }: RouteCall): Promise<Place> {
  const left = new Map<string, number>()
  for (const [id, after] of trees) {
    const isThere = await runtime.lastSeq(id).then(
      () => true,
      (error: unknown) => isMissing(error),
    )
    if (isThere) left.set(id, after)
  }
  return { changes, trees: left }
}

function isMissing(error: unknown): false {
  if (NotFoundError.isInstance(error)) return false
  throw error
}

function readCursor(header: string): Place {
  const [first = '', ...parts] = header.length > MAX_CURSOR ? [] : header.split('.')
  const changes = Buffer.from(first, 'base64url').toString()
  if (changes === '' || !/^[\w.-]+$/.test(header)) throw badPlace(BAD_HEADER)
  const trees = new Map<string, number>()
  for (const part of parts) {
    const [id, after] = [unpackId(part.slice(0, ID_LENGTH)), Number.parseInt(part.slice(ID_LENGTH), 36)]
    if (!isId(id) || !Number.isSafeInteger(after) || after < 0) throw badPlace(BAD_HEADER)
    trees.set(id, after)
  }
  return { changes, trees }
}

const MAX_CURSOR = 1_000
const BAD_HEADER = 'The header Last-Event-ID is not one of this feed.'

function badPlace(detail: string): Problem {
  return new Problem('invalid_input', detail)
}

async function checked(place: Place, { runtime }: RouteCall): Promise<Place> {
  if (place.trees.size > MOST_TREES) throw badPlace(`At most ${MOST_TREES} trees at a time.`)
  for (const [id, after] of place.trees) {
    const last = await runtime.lastSeq(id)
    if (after > last) throw badPlace(`The tree ${id} has no event ${after} yet: the last one is ${last}.`)
  }
  return place
}
