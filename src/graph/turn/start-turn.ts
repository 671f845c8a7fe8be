import type { Draft } from '../draft.ts'
import type { Turn } from '../rows.ts'
import { isRunnable } from '../states.ts'

/** A queued turn begins: its clock starts, its lane is taken, its first node may run. */
export function startTurn(draft: Draft, turn: Turn): Turn {
  const entry = draft.node(turn.entryNodeId)
  const ends = Math.max(draft.now, entry.wakeAt ?? 0) + turn.limits.wallMs
  const started = draft.ownTurn(turn)
  started.state = 'running'
  started.startedAt = draft.now
  started.deadline = turn.deadline === null ? ends : Math.min(turn.deadline, ends)
  draft.due(started.deadline)
  const conversation = draft.ownConversation(draft.conversation(turn.conversationId))
  conversation.activeTurnId = turn.id
  draft.event(started, null, { type: 'run-start', agent: conversation.agent.name })
  const ready = draft.ownNode(entry)
  ready.blockers--
  if (isRunnable(ready, draft.now)) draft.claim(ready)
  else if (ready.wakeAt !== null) draft.due(ready.wakeAt)
  return started
}

/** It begins when its lane is free, and it may run as far as limits go. */
export function startIfIdle(draft: Draft, turn: Turn): void {
  if (turn.state !== 'queued') return
  const conversation = draft.conversation(turn.conversationId)
  if (conversation.activeTurnId !== null) return
  const link = conversation.type === 'sub_agent' ? draft.findLink(turn.id) : undefined
  if (link !== undefined && !link.released) return
  startTurn(draft, turn)
}
