import type { Draft } from '../draft.ts'
import type { CancelRequest, Id, Link, Turn } from '../rows.ts'
import { stopNode } from '../turn/end-node.ts'
import { CANCEL_GRACE_MS } from './cancel-grace.ts'

/**
 * Asks a run and its subtree to stop. What is not running is stopped here, so nothing is released by it; what runs is
 * told by signal. Of a run that has ended, what it left in the background is stopped.
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

/** The same for delegations in the background, but for those that go on without their host. `settle` must follow. */
export function stopBackground(draft: Draft, links: readonly Link[], request: Omit<CancelRequest, 'at'>): void {
  for (const { id, onParentClose } of links) if (onParentClose === 'cancel') stopRuns(draft, id, request)
}

/** What of a run's subtree may still run: its delegations, those that an ended child left behind, a turn that tells of them. */
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
      draft.due(draft.now + CANCEL_GRACE_MS)
      continue
    }
    stopNode(draft, node, cancel.reason ?? 'The run was asked to stop.')
  }
}
