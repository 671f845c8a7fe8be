import type { Draft } from '../draft.ts'
import type { Link } from '../rows.ts'
import { deliver, leaveBackground } from './background.ts'
import { answerWaits } from './join.ts'
import { isTold } from './meant-session.ts'
import { tellHost } from './wake.ts'

/**
 * A background child has ended: a wait that it decides has its outcome, or a turn of the host's will, once. What was for
 * a run that was cancelled, that no longer counts, or of a lane that was archived is for nobody.
 */
export function endedInBackground(draft: Draft, link: Link): void {
  if (link.deliveredTo !== null) return
  if (draft.turn(link.hostTurnId).cancel !== null || isForNobody(draft, link)) {
    deliver(draft, link, 'undeliverable')
    return
  }
  answerWaits(draft, link)
  if (draft.link(link.id).deliveredTo !== null) return
  if (link.wake === 'auto') tellHost(draft, link)
  else leaveBackground(draft, link)
}

function isForNobody(draft: Draft, link: Link): boolean {
  const { lane, activeTurnId } = draft.conversation(link.hostConversationId)
  if (lane === null) return false
  return (lane.archivedAt !== null && activeTurnId === null) || !isTold(draft, link)
}
