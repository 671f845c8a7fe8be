import type { Json } from '../../base/json.ts'
import type { Content } from '../content.ts'
import type { Reader } from '../reader.ts'
import type { Id, Turn } from '../rows.ts'

/**
 * What a turn was asked with, in slots; undefined where it has none. One made anew has it on a node that it kept. A turn
 * that was put in by hand has no entry node.
 */
export function askedOf(reader: Reader, turn: Turn): Json | undefined {
  const asked = reader.node(turn.entryNodeId)?.metadata['asked']
  if (asked !== undefined || turn.history?.source == null) return asked
  return reader.nodesOf(turn.id).find(({ metadata }) => metadata['asked'] !== undefined)?.metadata['asked']
}

export function askedInRun(reader: Reader, runId: Id): Json | undefined {
  const turn = reader.turn(runId)
  return turn === undefined ? undefined : askedOf(reader, turn)
}

/** The same slots with another input: what else was asked stays. */
export function askedInOtherWords(asked: Json | undefined, content: Content): Json | undefined {
  if (typeof asked !== 'object' || asked === null || Array.isArray(asked)) return asked
  const { slots } = asked
  if (typeof slots !== 'object' || slots === null || Array.isArray(slots)) return asked
  return { ...asked, slots: { ...slots, input: content as unknown as Json } }
}
