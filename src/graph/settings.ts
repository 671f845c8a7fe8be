import type { Draft } from './draft.ts'
import type { Id } from './rows.ts'

/** What a conversation says of its own agent, beside the agent's definition. It only narrows: the ceiling stays. */
export interface ConversationSettings {
  /** A named layer: `full`, `minimal`, `memory_only`, `skills_only`, or one of createRuntime({ profiles }). */
  readonly policyProfile?: string | undefined
  /** Rounds its model is shown, 1 to 1000. */
  readonly contextTurns?: number | undefined
}

/** Kept in the conversation's metadata under `agent`: each node reads it when it starts. */
export function planSettings(draft: Draft, id: Id, { policyProfile, contextTurns }: ConversationSettings): void {
  const conversation = draft.conversation(id)
  const known = conversation.metadata['agent']
  const agent = typeof known === 'object' && known !== null && !Array.isArray(known) ? known : { key: 'main' }
  draft.changeConversation(conversation, {
    metadata: {
      ...conversation.metadata,
      agent: {
        ...agent,
        ...(policyProfile === undefined ? {} : { policy_profile: policyProfile }),
        ...(contextTurns === undefined ? {} : { context_turns: contextTurns }),
      },
    },
  })
}
