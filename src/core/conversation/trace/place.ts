// Where a span stands, from rows alone: ids that every process makes alike.
//
// Stays true: the id of a trace is the id of the run at its top, and the id of a span is the end of the id of its run or node.
// So the same tree has the same ids live, from rows, after a crash, and in a copy of the store.

import { sha256 } from '../../base/hash.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id, Node, Turn } from '../../graph/rows.ts'
import type { SpanPlace } from '../../tool/telemetry.ts'
import { foundTraceparent } from './traceparent.ts'

/** The last 64 bits of an id: random, or a hash. */
export function spanIdOf(id: Id, attempt = 1): string {
  if (attempt === 1) return id.slice(-17, -13) + id.slice(-12)
  return sha256(`${id} ${attempt}`).slice(0, 16)
}

/** The span of a run: below the task that delegated it, or at the top. */
export function runPlace(tree: TreeReader, turn: Turn): SpanPlace {
  const link = tree.link(turn.id)
  const { traceId, parentId } = traceOf(tree, turn)
  const spanId = spanIdOf(turn.id)
  if (link !== undefined) return { traceId, spanId, parentId: spanIdOf(link.taskId), isParentForeign: false }
  return { traceId, spanId, parentId, isParentForeign: parentId !== null }
}

/** The span of a node, or of one try of it: below its run. */
export function nodePlace(tree: TreeReader, { id, turnId }: Node, attempt = 1): SpanPlace {
  const turn = tree.turn(turnId)
  const traceId = turn === undefined ? hexOf(turnId) : traceOf(tree, turn).traceId
  return { traceId, spanId: spanIdOf(id, attempt), parentId: spanIdOf(turnId), isParentForeign: false }
}

interface Trace {
  readonly traceId: string
  /** The caller's span. */
  readonly parentId: string | null
}

/** The trace of the run at the top: its caller's, or its own. */
function traceOf(tree: TreeReader, turn: Turn): Trace {
  let top = turn
  for (let link = tree.link(top.id); link !== undefined; link = tree.link(top.id)) {
    const host = tree.turn(link.hostTurnId)
    if (host === undefined) break
    top = host
  }
  const given = top.attributes === null ? null : foundTraceparent(top.attributes)
  if (given === null) return { traceId: hexOf(top.id), parentId: null }
  const [, traceId = '', parentId = ''] = given.split('-')
  return { traceId, parentId }
}

function hexOf(id: Id): string {
  return id.slice(0, 8) + id.slice(9, 13) + id.slice(14, 18) + id.slice(19, 23) + id.slice(24)
}
