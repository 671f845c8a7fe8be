import type { Id } from '../rows.ts'
import type { Check } from './check.ts'
import { finding, type Place } from './finding.ts'
import type { TreeRows } from './tree-rows.ts'
import { placeOfTurn } from './turn-checks.ts'

/** What running nodes streamed is gone when they have ended. */
export const blocks: Check = {
  types: ['leftover_block'],
  *find({ blocks: left, nodes, rootId }) {
    const found = new Set<Id>()
    for (const { nodeId, epoch } of left) {
      const node = nodes.get(nodeId)
      if (found.has(nodeId) || (node?.state === 'running' && node.epoch === epoch)) continue
      found.add(nodeId)
      const place: Place = { subject: 'block', id: nodeId, rootId, conversationId: node?.conversationId ?? null }
      yield finding('leftover_block', place, `What ${nodeId} streamed is kept, but it is not running any more.`)
    }
  },
}

/** Events have the numbers 1, 2, 3, ... without a gap. */
export const sequence: Check = {
  types: ['event_gap'],
  *find({ events, rootId }) {
    const at = events.findIndex(({ seq }, index) => seq !== index + 1)
    const odd = events[at]
    if (odd === undefined) return
    const place: Place = { subject: 'conversation', id: rootId, rootId, conversationId: odd.conversationId }
    yield finding('event_gap', place, `Event ${at + 1} of the tree ${rootId} has the number ${odd.seq}.`)
  },
}

/** Every run that was started and has ended was told to start and to end, once each. */
export const pairs: Check = {
  types: ['unpaired_event'],
  *find(tree) {
    const told = tally(tree)
    for (const turn of tree.turns.values()) {
      const { starts, ends } = told.get(turn.id) ?? NOTHING
      const rightStarts = turn.startedAt === null ? 0 : 1
      const rightEnds = turn.state === 'ended' ? 1 : 0
      if (isPast(turn.id, told) || (starts === rightStarts && ends === rightEnds)) continue
      const message = `The turn ${turn.id} is ${turn.state}; it was told ${starts} times to start and ${ends} times to end.`
      yield finding('unpaired_event', placeOfTurn(turn), message)
    }
  },
}

interface Told {
  starts: number
  ends: number
}

const NOTHING: Told = { starts: 0, ends: 0 }

/** Turns of a session that was brought back from its document were never told of here. */
function isPast(turnId: Id, told: ReadonlyMap<Id, Told>): boolean {
  return !told.has(turnId)
}

function tally({ events }: TreeRows): Map<Id, Told> {
  const told = new Map<Id, Told>()
  for (const { turnId, body } of events) {
    const known = told.get(turnId) ?? { ...NOTHING }
    told.set(turnId, known)
    if (body.type === 'run-start') known.starts++
    if (body.type === 'run-end') known.ends++
  }
  return told
}
