import { isOpen, type Kinds } from '../graph/kinds.ts'
import type { TreeRows } from '../graph/reader.ts'
import type { Conversation, Id, Link, Turn } from '../graph/rows.ts'
import { asksPerson } from '../rules/turn/question-of.ts'
import { type FindingPlace, finding } from '../store/archive.ts'
import type { Check } from './check.ts'

export function placeOfTurn({ id, rootId, conversationId }: Turn): FindingPlace {
  return { subject: 'turn', id, rootId, conversationId }
}

export function placeOfConversation({ id, rootId }: Conversation): FindingPlace {
  return { subject: 'conversation', id, rootId, conversationId: id }
}

export const outcomes: Check = {
  types: ['wrong_outcome', 'wrong_answer', 'nothing_open'],
  *find(tree, { kinds }) {
    for (const turn of tree.turns.values()) {
      const { id, state, outcome } = turn
      const place = placeOfTurn(turn)
      const hasEnded = state === 'ended'
      if (hasEnded !== (outcome !== null) || hasEnded !== (turn.endedAt !== null)) {
        const said = outcome === null ? 'has no outcome' : `has the outcome ${outcome.status}`
        yield finding('wrong_outcome', place, `The turn ${id} is ${state} and ${said}.`)
      } else if (outcome?.status === 'completed' && !isAnswered(tree, turn, kinds)) {
        yield finding(
          'wrong_answer',
          place,
          `The turn ${id} completed, but its answer is not one of its finished nodes.`,
        )
      } else if (state === 'running' && !hasOpen(tree, id)) {
        yield finding(
          'nothing_open',
          place,
          `The turn ${id} is running, but nothing in it is open: it waits for nothing.`,
        )
      }
    }
  },
}

/** True where a completed turn has an answer, or asked nobody for one. */
function isAnswered({ nodes, nodesOf }: TreeRows, { id, outcome }: Turn, kinds: Kinds): boolean {
  const isSilent = (nodesOf.get(id) ?? []).every(({ kind }) => kinds.get(kind)?.executable === false)
  const answer = nodes.get(outcome?.answerNodeId ?? '')
  if (answer?.state !== 'finished' || answer.turnId !== id) return isSilent && outcome?.answerNodeId === null
  return isSilent || answer.metadata['leaf'] === true || kinds.get(answer.kind)?.leaf !== false
}

function hasOpen(tree: TreeRows, id: Id): boolean {
  const nodes = tree.nodesOf.get(id) ?? []
  return nodes.some(({ state }) => isOpen(state)) || openLinks(tree, id).length > 0
}

function openLinks({ linksOf }: TreeRows, turnId: Id): Link[] {
  return (linksOf.get(turnId) ?? []).filter(({ outcome }) => outcome === null)
}

export const accounts: Check = {
  types: ['wrong_account'],
  *find(tree) {
    for (const turn of tree.turns.values()) {
      const { children, live } = rightAccount(tree, turn.id)
      const { account } = turn
      if (account.children === children && account.live === live) continue
      const counted = `${account.children} children, of which ${account.live} may run`
      const message = `The turn ${turn.id} counts ${counted}; there are ${children} and ${live}.`
      yield finding('wrong_account', placeOfTurn(turn), message)
    }
  },
}

export function rightAccount(tree: Pick<TreeRows, 'linksOf'>, turnId: Id): { children: number; live: number } {
  const links = tree.linksOf.get(turnId) ?? []
  const live = links.filter(({ outcome, released }) => outcome === null && released).length
  return { children: links.length, live }
}

export const lanes: Check = {
  types: ['wrong_lane', 'two_running', 'turn_order', 'wrong_turn_count'],
  *find({ conversations, turnsOf }) {
    for (const conversation of conversations.values()) {
      const turns = turnsOf.get(conversation.id) ?? []
      const place = placeOfConversation(conversation)
      const running = turns.filter(({ state }) => state === 'running')
      const active = running[0]?.id ?? null
      if (running.length > 1) {
        const message = `The conversation ${conversation.id} has ${running.length} running turns; one at a time may run.`
        yield finding('two_running', place, message)
      } else if (conversation.activeTurnId !== active) {
        const message = `The conversation ${conversation.id} says that ${conversation.activeTurnId} runs; it is ${active}.`
        yield finding('wrong_lane', place, message)
      }
      const at = turns.findIndex(({ ordinal }, index) => ordinal !== index)
      const odd = turns[at]
      if (odd !== undefined) {
        const message = `The turn ${odd.id} has the place ${odd.ordinal} in its conversation; the next was to be ${at}.`
        yield finding('turn_order', placeOfTurn(odd), message)
      } else if (conversation.turnCount !== turns.length) {
        const message = `The conversation ${conversation.id} counts ${conversation.turnCount} turns of ${turns.length}.`
        yield finding('wrong_turn_count', place, message)
      }
    }
  },
}

export const nodeOrder: Check = {
  types: ['node_order', 'wrong_node_count'],
  *find({ turns, nodesOf }) {
    for (const turn of turns.values()) {
      const nodes = nodesOf.get(turn.id) ?? []
      const at = nodes.findIndex(({ ordinal }, index) => ordinal !== index)
      const odd = nodes[at]
      if (odd !== undefined) {
        const message = `The ${odd.kind} ${odd.id} has the place ${odd.ordinal} in its turn; the next was to be ${at}.`
        const { id, rootId, conversationId } = odd
        yield finding('node_order', { subject: 'node', id, rootId, conversationId }, message)
      } else if (nodes.length !== turn.nodeCount) {
        const message = `The turn ${turn.id} counts ${turn.nodeCount} nodes and has ${nodes.length}.`
        yield finding('wrong_node_count', placeOfTurn(turn), message)
      }
    }
  },
}

/** A clock stops for as many questions as are open, here and below. */
export const clocks: Check = {
  types: ['wrong_pause'],
  *find(tree) {
    const asks = rightAsks(tree)
    for (const turn of tree.turns.values()) {
      const right = asks.get(turn.id) ?? 0
      const counted = turn.paused?.asks ?? 0
      if (turn.state === 'ended' || right === counted) continue
      const message = `The clock of the turn ${turn.id} stands still for ${counted} people; ${right} are awaited.`
      yield finding('wrong_pause', placeOfTurn(turn), message)
    }
  },
}

export function rightAsks(tree: TreeRows): Map<Id, number> {
  const asks = new Map<Id, number>()
  for (const node of tree.nodes.values()) {
    if (node.state !== 'awaiting_approval' && !asksPerson(node)) continue
    for (const { id } of lineIn(tree, node.turnId)) asks.set(id, (asks.get(id) ?? 0) + 1)
  }
  return asks
}

/** Every amount that a turn holds back belongs to an open call of it or below it. */
export const holds: Check = {
  types: ['leftover_hold'],
  *find(tree) {
    const needed = holders(tree)
    for (const turn of tree.turns.values()) {
      const held = turn.spend?.held
      if (held === undefined || (held.tokens === 0 && held.usd < 1e-9) || needed.has(turn.id)) continue
      const message = `The turn ${turn.id} holds back ${held.tokens} tokens and $${held.usd}, but nothing that runs needs them.`
      yield finding('leftover_hold', placeOfTurn(turn), message)
    }
  },
}

/** Turns at or above a node for which money is held back. */
function holders(tree: TreeRows): Set<Id> {
  const found = new Set<Id>()
  for (const node of tree.nodes.values()) {
    if (node.metadata['held'] === undefined || !isOpen(node.state)) continue
    for (const { id } of lineIn(tree, node.turnId)) found.add(id)
  }
  return found
}

/** A run and the runs above it up to the root. Stops where damaged rows form a circle. */
export function lineIn({ turns, links }: Pick<TreeRows, 'turns' | 'links'>, turnId: Id): Turn[] {
  const line: Turn[] = []
  const seen = new Set<Id>()
  for (let id: Id | null = turnId; id !== null && !seen.has(id); ) {
    const turn: Turn | undefined = turns.get(id)
    if (turn === undefined) return line
    seen.add(id)
    line.push(turn)
    id = links.get(id)?.hostTurnId ?? turn.wokenBy
  }
  return line
}

/** A node that has ended has no streamed blocks. */
export const blocks: Check = {
  types: ['leftover_block'],
  *find({ blocks: left, nodes, rootId }) {
    const found = new Set<Id>()
    for (const { nodeId, epoch } of left) {
      const node = nodes.get(nodeId)
      if (found.has(nodeId) || (node?.state === 'running' && node.epoch === epoch)) continue
      found.add(nodeId)
      const place: FindingPlace = { subject: 'block', id: nodeId, rootId, conversationId: node?.conversationId ?? null }
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
    const place: FindingPlace = { subject: 'conversation', id: rootId, rootId, conversationId: odd.conversationId }
    yield finding('event_gap', place, `Event ${at + 1} of the tree ${rootId} has the number ${odd.seq}.`)
  },
}

/** Every run has one event for its start and one for its end. */
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

interface EventCounts {
  starts: number
  ends: number
}

const NOTHING: EventCounts = { starts: 0, ends: 0 }

/** True for a turn that a session brought along from its document: it has no events here. */
function isPast(turnId: Id, told: ReadonlyMap<Id, EventCounts>): boolean {
  return !told.has(turnId)
}

function tally({ events }: TreeRows): Map<Id, EventCounts> {
  const told = new Map<Id, EventCounts>()
  for (const { runId, body } of events) {
    const known = told.get(runId) ?? { ...NOTHING }
    told.set(runId, known)
    if (body.type === 'run-start') known.starts++
    if (body.type === 'run-end') known.ends++
  }
  return told
}
