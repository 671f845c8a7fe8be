import { watchHosts } from '../child/free-host.ts'
import { answerIfOver, type WaitFacts } from '../child/join.ts'
import type { Draft } from '../draft.ts'
import type { Node, Wait } from '../rows.ts'
import { endNode } from './end-node.ts'

export interface JoinRequest extends Pick<Wait, 'refs' | 'join' | 'until'>, WaitFacts {}

/** A task waits for children in the background as a row, at no cost; it has its result at once if nothing is open. */
export function parkJoin(draft: Draft, node: Node, { refs, join, until, losers, shows }: JoinRequest): void {
  const turn = draft.turn(node.turnId)
  if (turn.cancel !== null) {
    endNode(draft, node, { state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' } })
    return
  }
  draft.watchTurn(turn)
  draft.watchConversation(draft.conversation(node.conversationId))
  const parked = draft.changeNode(node, {
    state: 'waiting',
    engineId: null,
    wait: { on: 'children', refs, join, until },
    wakeAt: until,
    metadata: { ...node.metadata, waits: shows === undefined ? { losers } : { losers, shows } },
  })
  if (until !== null) draft.due(until)
  answerIfOver(draft, parked)
  watchHosts(draft, node.turnId)
}
