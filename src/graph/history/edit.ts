import { type Content, textOf } from '../content.ts'
import type { Draft } from '../draft.ts'
import { nodeOf, refused, requireIdle, requireOwn } from '../refused.ts'
import type { Id, Node } from '../rows.ts'
import { isSkipped } from './lane.ts'
import { type ChangeScope, descendantsOf, type Remade } from './remake-turn.ts'
import { newestVersion, replaceTurn } from './replace-turn.ts'

/**
 * Says something else than was said. What was answered to it, and all turns after it, are set aside and can be adopted
 * again; it is answered anew.
 */
export function planEdit(draft: Draft, nodeId: Id, { content, ...scope }: ChangeScope & { content: Content }): Remade {
  const node = nodeOf(draft, scope.conversationId, nodeId)
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
