import type { Draft } from '../draft.ts'
import type { Conversation, Id } from '../rows.ts'

type GroupState = Conversation['groups']

/** Writes which tool groups are on in a conversation: its next model call is offered what they hold. */
export function planSwitchGroups(
  draft: Draft,
  conversationId: Id,
  change: (state: GroupState) => NonNullable<GroupState>,
): NonNullable<GroupState> {
  const conversation = draft.conversation(conversationId)
  const groups = change(conversation.groups)
  draft.changeConversation(conversation, { groups })
  if (conversation.activeTurnId !== null) {
    const turn = draft.turn(conversation.activeTurnId)
    draft.event(turn, null, { type: 'graph-change', change: 'groups', detail: groups })
  }
  return groups
}
