import { StoreError } from '../base/error.ts'
import { type Commit, emptyCommit } from '../graph/commit.ts'
import type { EventRow } from '../graph/event.ts'
import type { Conversation, Id, Link, Node, Turn } from '../graph/rows.ts'
import type { WholeTree } from './archive.ts'
import { unpackEvents } from './sqlite/events.ts'
import { parseRow } from './sqlite/parse.ts'
import { toConversation, toLink, toNode, toTurn } from './sqlite/rows.ts'

/** The rows of a whole tree, in its order and at the versions they have, and all of its events. */
export function unpackTree({ rootId, rows, edges, bodies, records }: WholeTree): Commit {
  const conversations: Conversation[] = []
  const turns = new Map<Id, Turn>()
  const nodes: Node[] = []
  const links: Link[] = []
  for (const { text, turnId, id } of rows) {
    const packed = parseRow(text)
    if ('conversation' in packed) conversations.push(toConversation(packed))
    else if ('turn' in packed) turns.set(packed.turn, toTurn(packed))
    else if ('node' in packed) nodes.push(toNode(packed, turnOf(turns, turnId, id)))
    else if ('link' in packed) links.push(toLink(packed, turnOf(turns, turnId, id)))
  }
  const events: EventRow[] = []
  for (const record of records) for (const event of unpackEvents(record.events, record.seq)) events.push(event)
  const at = records.at(-1)?.at ?? 0
  return {
    ...emptyCommit('mutate', at, rootId),
    conversations,
    turns: [...turns.values()],
    nodes,
    links,
    edges,
    bodies,
    events,
  }
}

function turnOf(turns: ReadonlyMap<Id, Turn>, turnId: Id | null, id: Id): Turn {
  const turn = turns.get(turnId ?? '')
  if (turn === undefined) throw new StoreError('store', `The row ${id} is of the turn ${turnId}, which is not there.`)
  return turn
}
