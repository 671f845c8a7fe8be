import type { Draft } from '../../graph/draft.ts'
import { askerOf, CANCEL_GRACE_MS, isEager } from '../../graph/kinds.ts'
import type { EagerTask } from '../../graph/outcome.ts'
import type { CancelRequest, Id, Link, Node, Turn } from '../../graph/rows.ts'
import { endNode, stopNode } from './end-node.ts'

/**
 * Asks a run and its subtree to stop. Nodes that are not running are stopped by this commit, so nothing new starts; running
 * ones get a signal and may commit their partial result within the grace. A second request changes nothing.
 */
export function planCancel(draft: Draft, turnId: Id, request: Omit<CancelRequest, 'at'>): void {
  stopRuns(draft, turnId, request)
}

/** The code inside a node is gone: cancels the children that it started and awaited. */
export function cancelCalled(draft: Draft, node: Node): void {
  if (node.kind === 'agent_message') {
    cancelSuperseded(draft, node.turnId, NONE)
    giveUpAsking(draft, node)
  }
  for (const link of draft.openLinks(node.turnId)) {
    if (link.taskId !== node.id || link.mode !== 'called' || link.onParentClose !== 'cancel') continue
    planCancel(draft, link.id, { cause: 'parent', reason: 'What started it has ended.' })
  }
}

/** Ends open questions that nobody is left to hear the answers to. */
function giveUpAsking(draft: Draft, { id, turnId }: Node): void {
  for (const task of draft.openNodes(turnId)) {
    if (askerOf(task) === id) endNode(draft, task, { state: 'stopped', failure: GIVEN_UP })
  }
}

const GIVEN_UP = { code: 'stopped', message: 'What asked it has ended.' }

const NONE: readonly never[] = []

/**
 * Asks a run and its subtree to stop. Nodes that are not running are stopped here, so nothing new starts; running ones get a
 * signal. For an ended run, it stops the background children that it left.
 */
export function stopRuns(draft: Draft, turnId: Id, request: Omit<CancelRequest, 'at'>): void {
  const root = draft.findTurn(turnId)
  if (root === undefined) return
  const queue: [Turn, CancelRequest['cause']][] = [[root, request.cause]]
  for (let item = queue.pop(); item !== undefined; item = queue.pop()) {
    const [turn, cause] = item
    if (turn.cancel !== null) continue
    const below = openBelow(draft, turn)
    if (turn.state === 'ended' && below.length === 0) continue
    const cancel = { at: draft.now, cause, reason: request.reason }
    if (turn.state === 'ended') draft.changeTurn(turn, { cancel })
    else stopTurn(draft, turn, cancel)
    for (const id of below) queue.push([draft.turn(id), 'parent'])
  }
}

/** Stops background delegations, except those that outlive their host. `endTurns` must follow. */
export function stopBackground(draft: Draft, links: readonly Link[], request: Omit<CancelRequest, 'at'>): void {
  for (const { id, onParentClose } of links) if (onParentClose === 'cancel') stopRuns(draft, id, request)
}

/** The open runs of a run's subtree: its delegations, those that an ended child left behind, and turns that report on them. */
function openBelow(draft: Draft, turn: Turn): Id[] {
  const open = draft.openLinks(turn.id).filter(({ onParentClose }) => onParentClose === 'cancel')
  const left = turn.limits.depth > 1 ? leftBehind(draft, turn) : []
  return [...open.map(({ id }) => id), ...left, ...wokenTurns(draft, turn)]
}

function leftBehind(draft: Draft, turn: Turn): Id[] {
  return draft.stored.linksOf(turn.id).flatMap(({ outcome, childConversationId }) => {
    if (outcome === null) return []
    const background = draft.findConversation(childConversationId)?.background ?? []
    return background.filter((id) => draft.link(id).outcome === null && draft.link(id).onParentClose === 'cancel')
  })
}

function wokenTurns(draft: Draft, turn: Turn): Id[] {
  if (turn.state !== 'ended') return []
  const { activeTurnId } = draft.conversation(turn.conversationId)
  for (let id = activeTurnId; id !== null; id = draft.findTurn(id)?.wokenBy ?? null) {
    if (id === turn.id && activeTurnId !== null) return [activeTurnId]
  }
  return []
}

function stopTurn(draft: Draft, turn: Turn, cancel: CancelRequest): void {
  draft.changeTurn(turn, { cancel })
  draft.touchTurn(turn.id)
  for (const node of draft.openNodes(turn.id)) {
    if (node.state === 'running') {
      draft.aborted.push(node.id)
      draft.noteDue(draft.now + CANCEL_GRACE_MS)
      continue
    }
    stopNode(draft, node, cancel.reason ?? 'The run was asked to stop.')
  }
}

/** Cancels the children of items that the final plan no longer has. */
export function cancelSuperseded(draft: Draft, turnId: Id, kept: readonly EagerTask[]): void {
  for (const task of draft.openNodes(turnId)) {
    if (!isEager(task) || kept.some(({ taskId }) => taskId === task.id)) continue
    for (const link of task.wait?.refs ?? []) stopRuns(draft, link, { cause: 'cancelled', reason: SUPERSEDED })
    endNode(draft, draft.node(task.id), { state: 'stopped', failure: { code: 'superseded', message: SUPERSEDED } })
  }
}

const SUPERSEDED = 'Superseded: the plan ended without this item.'
