import type { Id } from '../graph/rows.ts'
import type { Ledger } from '../store/ledger.ts'
import type { AgentCore } from './agent.ts'

/** A changed definition goes on with the live code, inside the frozen ceiling, and says so once. */
export async function noteChange(ledger: Ledger, conversationId: Id, agent: AgentCore): Promise<void> {
  const { name, hash } = agent.identity.ref
  const rootId = ledger.store.conversation(conversationId)?.rootId ?? conversationId
  await ledger.commit({
    kind: 'note',
    rootId,
    plan: (draft) => {
      const row = draft.conversation(conversationId)
      if (row.agent.hash === hash || row.activeTurnId === null) return
      const turn = draft.turn(row.activeTurnId)
      draft.event(turn, null, { type: 'definition-changed', agent: name, from: row.agent.hash, to: hash })
      draft.changeConversation(row, { agent: agent.identity.ref })
    },
  })
}
