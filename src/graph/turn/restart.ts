import { stopRuns } from '../child/stop-runs.ts'
import type { Draft } from '../draft.ts'
import type { Turn } from '../rows.ts'
import type { TurnRequest } from './open-turn.ts'
import { type NewConversation, planSay } from './say.ts'

/**
 * An input that takes the place of what is going on: the running turn is stopped, and what it had begun is not shown to
 * the model that answers this one; what was asked stays. A repeated one finds its turn.
 */
export function planRestart(draft: Draft, conversation: NewConversation, request: TurnRequest): Turn {
  const isKnown = draft.findTurn(request.turnId) !== undefined
  const running = draft.findConversation(conversation.id)?.activeTurnId ?? null
  const turn = planSay(draft, conversation, request)
  if (isKnown || running === null) return turn
  stopRuns(draft, running, { cause: 'restarted', reason: 'Another input took its place.' })
  return draft.turn(turn.id)
}
