import { ConflictError } from '../base/error.ts'
import type { Conversation, Id, Turn } from '../graph/rows.ts'
import type { Removal, Tombstone, WholeTree } from './archive.ts'
import { tombstoneFor, wasDeleted } from './not-found.ts'

/** What is to be known of a tree before it goes. */
export interface LeavingTree {
  readonly rootId: Id
  readonly hash: string
  readonly seq: number
  readonly conversations: readonly Conversation[]
  readonly turns: readonly Turn[]
}

export function tombstoneOf({ rootId, hash, seq, conversations, turns }: LeavingTree, removal: Removal): Tombstone {
  const runs = new Map<Id, Id[]>(conversations.map(({ id }) => [id, []]))
  for (const { id, conversationId } of turns) runs.get(conversationId)?.push(id)
  return {
    rootId,
    hash,
    seq,
    agent: conversations.find(({ id }) => id === rootId)?.agent.name ?? '',
    at: removal.at,
    reason: removal.reason,
    conversations: conversations.map(({ id, parentConversationId }) => ({
      id,
      parentId: parentConversationId,
      runs: runs.get(id) ?? [],
    })),
  }
}

/** The tombstone that a tree takes away when it comes back. Throws ConflictError when it is not what was deleted. */
export function liftedBy(
  stones: readonly Tombstone[],
  { rootId, rows }: Pick<WholeTree, 'rootId' | 'rows'>,
  hash: string,
): Tombstone | undefined {
  if (stones.length === 0) return undefined
  const lifted = stones.find((stone) => stone.rootId === rootId && stone.hash === hash)
  if (lifted !== undefined) return lifted
  const ids = new Set(rows.filter(({ letter }) => letter === 'c' || letter === 't').map(({ id }) => id))
  const other = tombstoneFor(stones, (id) => ids.has(id))
  if (other === undefined) return undefined
  const message = `The tree ${rootId} is not taken: what has its ids here ${wasDeleted(other)} This one ends in ${hash}: take the one that was deleted.`
  throw new ConflictError('conflict', message, { details: { rootId, hash, deleted: other.hash, stale: false } })
}
