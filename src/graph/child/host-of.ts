import type { Reader } from '../reader.ts'
import type { Conversation, Turn } from '../rows.ts'

/** A run, and the conversation it is of. */
export interface Place {
  readonly turn: Turn
  readonly conversation: Conversation
}

/** The run that asked for this one, or made its conversation; undefined at the root. */
export function hostOf(store: Reader, { turn, conversation }: Place): Place | undefined {
  if (conversation.parentTurnId === null) return undefined
  const host = store.turn(store.link(turn.id)?.hostTurnId ?? conversation.parentTurnId)
  const its = host === undefined ? undefined : store.conversation(host.conversationId)
  return host === undefined || its === undefined ? undefined : { turn: host, conversation: its }
}
