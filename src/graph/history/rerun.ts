import { isBeside } from '../child/is-eager.ts'
import type { Draft } from '../draft.ts'
import { nodeOf, refused, requireIdle, requireOwn, requireWord } from '../refused.ts'
import type { Id, Node } from '../rows.ts'
import { isSkipped } from './lane.ts'
import type { ChangeScope, Remade } from './remake-turn.ts'
import { newestVersion, replaceTurn, requireLast } from './replace-turn.ts'

/** Asks once more for the last answer of a lane. The one that was given stays, to be adopted again. */
export function planRerun(draft: Draft, nodeId: Id, { conversationId, ...scope }: ChangeScope): Remade {
  const node = nodeOf(draft, conversationId, nodeId)
  requireWord(node)
  requireRerunnable(draft, node)
  const turn = draft.turn(node.turnId)
  const lane = draft.conversation(turn.laneId)
  if (isSkipped(lane, turn.ordinal)) {
    const by = newestVersion(draft, node)
    throw refused(
      'replaced',
      `The turn of ${nodeId} was made anew: adopt it first with conversation.adopt(nodeId), or rerun ${by ?? 'what took its place'}.`,
      {
        nodeId,
        by: by ?? null,
      },
    )
  }
  requireOwn(draft, turn)
  requireIdle(draft, lane)
  requireLast(draft, turn)
  const kept = draft
    .nodesOf(turn.id)
    .filter((one) => one.id !== nodeId && one.marks?.replacedBy == null && !isBeside(one))
  const about = { about: node, kept, again: [node], edited: null, next: null }
  return replaceTurn(draft, { change: 'rerun', source: turn, ...scope, ...about })
}

function requireRerunnable(draft: Draft, { id, kind, state }: Node): void {
  if (draft.kinds.get(kind)?.rerunnable !== true) {
    throw refused('wrong_kind', `The ${kind} cannot be rerun: only answers are. Fork before it to do it again.`, {
      nodeId: id,
      kind,
    })
  }
  if (state !== 'finished') {
    const instead = state === 'skipped' ? 'Retry what it depended on.' : 'Retry it once it has ended.'
    throw refused('wrong_state', `The node ${id} is ${state}: only what finished is rerun. ${instead}`, {
      nodeId: id,
      state,
    })
  }
  const follower = draft.edgesFrom(id).find(({ type }) => type !== 'branch')?.to
  if (follower === undefined) return
  const message = `${follower} goes on from ${id}: only the last answer of a turn is rerun. Fork at ${id} instead.`
  throw refused('has_followers', message, { nodeId: id, by: follower })
}
