import { deriveIds } from '../../base/id.ts'
import type { Draft } from '../../graph/draft.ts'
import { isBeside, isEager } from '../../graph/kinds.ts'
import { isSkipped } from '../../graph/lane.ts'
import { nodeThatCounts, refused, requireIdle, requireOwn, requireWord } from '../../graph/refused.ts'
import type { Id, Node, Turn } from '../../graph/rows.ts'
import { slotOf, taskIdsOf } from '../../graph/tasks.ts'
import { findBlockingDenial } from '../turn/end-node.ts'
import { bindTurn } from '../turn/open-turn.ts'
import {
  askAgain,
  type ChangeScope,
  callerOf,
  descendantsOf,
  newestVersion,
  nextAttempt,
  type RemakePlan,
  type RemakeResult,
  replaceTurn,
  requireLast,
} from './remake-turn.ts'

/**
 * Repeats a node that failed: a model call, a tool, one child among several. In a running turn the new version replaces the
 * node; an ended turn is made anew up to there, and everything else in it keeps its results. A second retry finds the first.
 */
export function planRetryNode(draft: Draft, nodeId: Id, scope: ChangeScope): RemakeResult {
  const { conversationId } = scope
  const running = replacement(draft, nodeId, conversationId)
  if (running !== undefined) return remadeAs(draft, running.id)
  const node = nodeThatCounts(draft, conversationId, nodeId)
  requireWord(node)
  requireRetriable(draft, node)
  const turn = draft.turn(node.turnId)
  const lane = draft.conversation(turn.laneId)
  if (isSkipped(lane, turn.ordinal)) return retriedBefore(draft, node)
  if (turn.state !== 'ended') return retryInPlace(draft, node, bindTurn(draft, turn, scope.caller))
  requireOwn(draft, turn)
  requireIdle(draft, lane)
  requireLast(draft, turn)
  return replaceTurn(draft, {
    change: 'retry',
    source: turn,
    about: node,
    edited: null,
    ...scope,
    ...split(draft, node),
  })
}

/** The version that replaced it in its turn, while that one is open. */
function replacement(draft: Draft, nodeId: Id, conversationId: Id): Node | undefined {
  const known = typeof nodeId === 'string' ? draft.findNode(nodeId) : undefined
  const by = known?.conversationId === conversationId ? (known.marks?.replacedBy ?? null) : null
  const version = by === null ? undefined : draft.node(by)
  return version?.endedAt === null ? version : undefined
}

function requireRetriable(draft: Draft, node: Node): void {
  const { id, kind, state } = node
  if (draft.kinds.get(kind)?.retriable !== true) {
    throw refused('wrong_kind', `The ${kind} cannot be retried: nothing was run. Edit it instead.`, {
      nodeId: id,
      kind,
    })
  }
  if (isBeside(node)) {
    const by = isEager(node) ? 'started by an item of a plan: rerun the plan' : 'asked by code: retry its message'
    const message = `The task ${id} was ${by}.`
    throw refused('wrong_kind', message, { nodeId: id, kind })
  }
  if (FAILED.includes(state) || isFailedChild(node)) return
  const instead = INSTEAD[state] ?? 'Wait until it has ended.'
  throw refused('wrong_state', `The node ${id} is ${state}: only what failed is retried. ${instead}`, {
    nodeId: id,
    state,
  })
}

const FAILED: readonly Node['state'][] = ['errored', 'rejected', 'stopped', 'uncertain']

const INSTEAD: Readonly<Partial<Record<Node['state'], string>>> = {
  finished: 'Rerun it if it is the last answer, or fork before it.',
  skipped: 'Retry what it depended on.',
}

/** A delegation finishes whatever its child's outcome, so the outcome tells whether it failed. */
function isFailedChild({ state, input, output }: Node): boolean {
  return state === 'finished' && input.delegates === true && output.isError === true
}

/** The turn was made anew since: gives the version in the new turn, while that one is open. */
function retriedBefore(draft: Draft, node: Node): RemakeResult {
  const id = newestVersion(draft, node)
  const newest = id === undefined ? undefined : draft.node(id)
  if (newest !== undefined && newest.endedAt === null) return remadeAs(draft, newest.id)
  const message = `The turn of ${node.id} was made anew: ${newest === undefined ? 'look there' : `its version is now ${newest.id}, ${newest.state}`}.`
  throw refused('replaced', message, { nodeId: node.id, by: newest?.id ?? null })
}

function remadeAs(draft: Draft, nodeId: Id): RemakeResult {
  return { turn: draft.turn(draft.node(nodeId).turnId), nodeId }
}

/** Replaces a node in a running turn. Its successors must not have begun: they then wait for the new version. */
function retryInPlace(draft: Draft, node: Node, turn: Turn): RemakeResult {
  if (turn.cancel !== null) {
    const message = `The turn ${turn.id} was asked to stop: wait until it has ended, then retry.`
    throw refused('busy', message, { runId: turn.id })
  }
  const after = [...descendantsOf(draft, node)].map((id) => draft.node(id))
  const begun = after.find(({ state, marks }) => !WAITING.includes(state) && marks?.replacedBy == null)
  if (begun !== undefined) {
    const how = begun.state === 'skipped' ? 'was skipped after' : 'has gone on from'
    const message = `The ${begun.kind} ${begun.id} ${how} ${node.id} already: wait until the turn has ended, then retry.`
    throw refused('used', message, { nodeId: node.id, by: begun.id })
  }
  const [id = node.id] = deriveIds(node.id, 'retry', 1)
  const attempt = nextAttempt(draft, node)
  const added = draft.addNode(turn, {
    ...attempt,
    id,
    metadata: node.input.call === undefined ? attempt.metadata : { ...attempt.metadata, slot: slotOf(node) },
    versionSet: node.versionSet,
    idempotencyKey: node.idempotencyKey === null ? node.id : `${node.idempotencyKey}#${node.attempt + 1}`,
  })
  draft.changeNode(node, { marks: { ...NO_MARKS, ...node.marks, replacedBy: id } })
  takeOver(draft, node, added)
  askAgain(draft, added)
  draft.event(draft.turn(turn.id), id, {
    type: 'graph-change',
    change: 'retry',
    detail: { node: node.id, turn: turn.id },
  })
  const version = draft.node(id)
  if (version.state === 'pending' && version.blockers === 0) draft.claim(version)
  return remadeAs(draft, id)
}

const WAITING: readonly Node['state'][] = ['pending', 'awaiting_approval']

export const NO_MARKS = { replacedBy: null, excludedAt: null, deletedAt: null, stop: null } as const

function takeOver(draft: Draft, old: Node, added: Node): void {
  waitFor(draft, old, added)
  for (const { to, type } of draft.edgesFrom(old.id)) {
    if (type === 'branch') continue
    const next = draft.node(to)
    if (next.marks?.replacedBy != null) continue
    draft.addEdge(added, next, type)
    // A dependency still holds the successor back because of the old node; any other edge let it go.
    if (!holdsBack(old, type)) draft.changeNode(next, { blockers: next.blockers + 1 })
  }
  draft.addEdge(old, added, 'branch')
}

/** Puts the new node behind everything that the old one was behind; one that was stopped early may have to wait. */
function waitFor(draft: Draft, old: Node, added: Node): void {
  for (const { from, type } of draft.edgesTo(old.id)) {
    const before = draft.node(from)
    if (type === 'branch' || before.marks?.replacedBy != null) continue
    draft.addEdge(before, added, type)
    if (before.endedAt !== null && !holdsBack(before, type)) continue
    requireHope(old, before)
    draft.watchNode(before)
    draft.changeNode(added, { blockers: draft.node(added.id).blockers + 1 })
  }
}

/** Refuses a retry whose predecessor failed: that one must be retried first. */
function requireHope(old: Node, before: Node): void {
  if (before.endedAt === null) return
  const message = `The node ${old.id} depends on ${before.id}, which is ${before.state}: retry that one.`
  throw refused('wrong_state', message, { nodeId: old.id, by: before.id })
}

function holdsBack(ended: Node, type: string): boolean {
  return findBlockingDenial(ended) !== undefined || (type === 'dependency' && ended.state !== 'finished')
}

type Split = Pick<RemakePlan, 'kept' | 'again' | 'next'>

/** Divides a turn into the nodes that stay, those that run again, and the model call that reads the results. */
export function split(draft: Draft, node: Node): Split {
  const nodes = draft.nodesOf(node.turnId).filter(({ marks }) => marks?.replacedBy == null)
  const after = descendantsOf(draft, node)
  const again = nodes.filter(({ id, metadata }) => id === node.id || (after.has(id) && metadata['byHand'] === true))
  // Items of a plan start their children again when the plan is written again.
  const kept = nodes.filter((one) => one.id !== node.id && !after.has(one.id) && !isBeside(one))
  return { kept, again, next: nextOf(draft, node, nodes) }
}

/** A new model call reads the results of all calls of a message together. */
function nextOf(draft: Draft, node: Node, nodes: readonly Node[]): RemakePlan['next'] {
  const caller = callerOf(nodes, node)
  if (caller === undefined) return null
  const ids = taskIdsOf(caller)
  const tasks = nodes.filter((one) => ids.includes(slotOf(one)))
  const reader = draft.edgesFrom(node.id).find(({ type }) => type !== 'branch')?.to
  const version = reader === undefined ? undefined : draft.node(reader)
  return { after: tasks, version: version?.kind === 'agent_message' ? version : null }
}
