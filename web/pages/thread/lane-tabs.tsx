import type { ReactNode } from 'react'
import { useConversationTree, useOfTree } from '../../data/tree.ts'
import type { ConversationAnswer, ConversationTree } from '../../data/types.ts'
import { Link } from '../../parts/link.tsx'
import { pathOfRun } from '../../window/router.ts'
import { shortId } from '../../words/format.ts'

/** The lanes of a conversation, as tabs; nothing where there is one. */
export function LaneTabs({ conversation }: { readonly conversation: ConversationAnswer }): ReactNode {
  const first = useOfTree((state) => {
    let row = state.conversations.get(conversation.id)
    while (row?.from != null) row = state.conversations.get(row.from.laneId)
    return row?.id ?? conversation.id
  })
  const tree = useConversationTree(first)
  if (tree === undefined || tree.lanes.length === 0) return null
  return (
    <nav className="seg" aria-label="Lanes">
      {[tree, ...lanesBelow(tree)].map((lane) => (
        <Link
          key={lane.conversationId}
          to={pathOfRun(lane.conversationId)}
          aria-current={lane.conversationId === conversation.id ? 'true' : undefined}
        >
          {lane === tree ? 'main' : (lane.title ?? shortId(lane.conversationId))}
        </Link>
      ))}
    </nav>
  )
}

function lanesBelow({ lanes }: ConversationTree): ConversationTree[] {
  return lanes.toReversed().flatMap((lane) => [lane, ...lanesBelow(lane)])
}
