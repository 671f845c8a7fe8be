import type { EventRow } from '../../graph/event.ts'
import type { Id } from '../../graph/rows.ts'
import type { Tail } from '../row-cache.ts'
import { textOf } from './driver.ts'
import { unpackEvents } from './events.ts'
import { bound, type Read, type SqliteGraph } from './graph.ts'
import { COMMITS_PER_TREE } from './rows.ts'

/** The events of a tree after one. Costs what is read, wherever in the log it is. */
export function readEvents(graph: SqliteGraph, read: Read) {
  return (rootId: Id, after: number, limit: number): EventRow[] => {
    const tail = graph.tail(rootId)
    if (tail === undefined || after >= tail.seq) return []
    const first = tail.tree * COMMITS_PER_TREE
    const last = after < 1 ? first : commitBefore(read, tail, after)
    const commits = read((db) => db.all(EVENTS, [last, first + COMMITS_PER_TREE, bound(limit)]))
    const events = commits.flatMap(([seq, text, n]) => {
      try {
        return unpackEvents(textOf(text), Number(seq))
      } catch {
        throw graph.spans().unreadableEvents(rootId, Number(n) - first)
      }
    })
    return events.filter(({ seq }) => seq > after).slice(0, Math.max(0, limit))
  }
}

/**
 * The number of a commit whose events were all before, the last but for some without events. Looks from the end in steps that
 * double, then halves what is left: readers who follow a tree have read nearly all of it.
 */
function commitBefore(read: Read, { tree, commit }: Tail, after: number): number {
  const first = tree * COMMITS_PER_TREE
  const isBefore = (n: number): boolean => Number(read((db) => db.first(SEQ, [n, first]))?.[0] ?? 0) <= after
  let high = first + commit
  let step = 1
  while (high - step > first && !isBefore(high - step)) {
    high -= step
    step *= 2
  }
  let low = Math.max(first, high - step)
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (isBefore(middle)) low = middle
    else high = middle
  }
  return low
}

const SEQ = 'SELECT seq FROM commits WHERE n <= ? AND n >= ? ORDER BY n DESC LIMIT 1'
const EVENTS = `SELECT seq, CAST(events AS BLOB), n FROM commits WHERE n > ? AND n < ? AND events <> '[]' ORDER BY n LIMIT ?`
