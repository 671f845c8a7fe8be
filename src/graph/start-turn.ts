import type { Draft } from './draft.ts'
import type { Turn } from './rows.ts'

/** A queued turn begins: its clock starts, its lane is taken, its first node may run. */
export function startTurn(draft: Draft, turn: Turn): Turn {
  const ends = draft.now + turn.limits.wallMs
  const started = draft.changeTurn(turn, {
    state: 'running',
    startedAt: draft.now,
    deadline: turn.deadline === null ? ends : Math.min(turn.deadline, ends),
  })
  if (started.deadline !== null) draft.due(started.deadline)
  const conversation = draft.conversation(turn.conversationId)
  draft.changeConversation(conversation, { activeTurnId: turn.id })
  draft.event(started, null, { type: 'run-start', agent: conversation.agent.name })
  const entry = draft.node(turn.entryNodeId)
  const ready = draft.changeNode(entry, { blockers: entry.blockers - 1 })
  if (ready.blockers === 0) draft.claim(ready)
  return started
}
