import { type Content, textOf } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { isBeside } from '../../graph/kinds.ts'
import { isSkipped } from '../../graph/lane.ts'
import { nodeThatCounts, refused, requireIdle, requireOwn, requireWord } from '../../graph/refused.ts'
import type { Id, Node } from '../../graph/rows.ts'
import {
  type ChangeScope,
  descendantsOf,
  newestVersion,
  type RemakeResult,
  replaceTurn,
  requireLast,
} from './remake-turn.ts'

/** Asks again for the last answer of a lane. The old answer stays and can be adopted again. */
export function planRerun(draft: Draft, nodeId: Id, { conversationId, ...scope }: ChangeScope): RemakeResult {
  const node = nodeThatCounts(draft, conversationId, nodeId)
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

/**
 * Changes a message. Its answer and all later turns are set aside and can be adopted again; the new message gets a new answer.
 */
export function planEdit(
  draft: Draft,
  nodeId: Id,
  { content, ...scope }: ChangeScope & { content: Content },
): RemakeResult {
  const node = nodeThatCounts(draft, scope.conversationId, nodeId)
  const turn = draft.turn(node.turnId)
  const lane = draft.conversation(turn.laneId)
  requireEditable(draft, node)
  if (typeof content === 'string' ? content.trim() === '' : content.length === 0) {
    throw refused('no_text', `${nodeId} cannot be edited to nothing: delete it instead.`, { nodeId })
  }
  if (isSkipped(lane, turn.ordinal)) {
    const by = newestVersion(draft, node)
    const message = `The turn of ${nodeId} was made anew: edit ${by ?? 'what took its place'}, or adopt it first with conversation.adopt(nodeId).`
    throw refused('replaced', message, { nodeId, by: by ?? null })
  }
  requireOwn(draft, turn)
  requireIdle(draft, lane)
  if (isSame(node, content)) return { turn, nodeId }
  const nodes = draft.nodesOf(turn.id).filter(({ marks }) => marks?.replacedBy == null)
  const after = descendantsOf(draft, node)
  const others = nodes.filter(({ id }) => id !== nodeId)
  const kept = others.filter((one) => !after.has(one.id) || draft.kinds.get(one.kind)?.executable === false)
  const again = others.filter((one) => after.has(one.id) && !kept.includes(one) && one.metadata['byHand'] === true)
  const about = { about: node, kept, again, edited: { node, content }, next: null }
  return replaceTurn(draft, { change: 'edit', source: turn, ...scope, ...about })
}

function isSame({ input }: Node, content: Content): boolean {
  return typeof content === 'string' && input.content === content
}

function requireEditable(draft: Draft, { id, kind, state, input }: Node): void {
  const isMessage = draft.kinds.get(kind)?.editable === true
  if (!isMessage) {
    throw refused('wrong_kind', `The ${kind} cannot be edited: only what people said can. Rerun or retry it.`, {
      nodeId: id,
      kind,
    })
  }
  if (state === 'finished' && textOf(input.content ?? '') !== '') return
  throw refused('wrong_state', `The node ${id} is ${state} and says nothing: there is nothing to edit.`, {
    nodeId: id,
    state,
  })
}
