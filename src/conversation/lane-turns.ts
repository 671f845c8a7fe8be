import { rangeOf } from '../graph/history/lane.ts'
import type { Reader } from '../graph/reader.ts'
import type { Conversation, Turn } from '../graph/rows.ts'

type Turns = Pick<Reader, 'turnsOf'>

/** The newest turns of a lane that count, up to an ordinal, oldest first. */
export function turnsBackward(
  store: Turns,
  row: Conversation,
  { last, limit }: { last: number; limit: number },
): Turn[] {
  const found: Turn[] = []
  for (let at = last; at >= 0 && found.length < limit; ) {
    const range = rangeOf(row.lane, at)
    if (range !== undefined) {
      at = range[0] - 1
      continue
    }
    const first = (row.lane?.skips.findLast(([, to]) => to < at)?.[1] ?? -1) + 1
    const turns = store.turnsOf(row.id, { last: at, limit: Math.min(limit - found.length, at - first + 1) })
    if (turns.length === 0) return found
    found.unshift(...turns)
    at = (turns[0]?.ordinal ?? 0) - 1
  }
  return found
}

/** The oldest turns of a lane that count, from an ordinal on, oldest first. */
export function turnsForward(
  store: Turns,
  row: Conversation,
  { first, limit }: { first: number; limit: number },
): Turn[] {
  const found: Turn[] = []
  for (let at = first; at < row.turnCount && found.length < limit; ) {
    const range = rangeOf(row.lane, at)
    if (range !== undefined) {
      at = range[1] + 1
      continue
    }
    const end = row.lane?.skips.find(([from]) => from > at)?.[0] ?? row.turnCount
    const last = Math.min(end - 1, at + limit - found.length - 1)
    const turns = store.turnsOf(row.id, { last, limit: last - at + 1 })
    if (turns.length === 0) return found
    found.push(...turns)
    at = (turns.at(-1)?.ordinal ?? last) + 1
  }
  return found
}
