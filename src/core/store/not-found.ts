// Trees that are not there: never stored, deleted, or changed from outside.
//
// Owns:      tombstones and the words about them, and the errors for unknown ids and for damaged trees.
// Called by: stores that delete, import or find damage; every door that looks up an id that somebody gave.
// Must stay true:
//   - The error for an id says whether its tree was deleted, when and why, and nothing about other trees.
//   - A deleted tree comes back only as the very tree that was deleted.

import { ConflictError, NotFoundError, StoreError } from '../base/error.ts'
import type { Conversation, Id, Turn } from '../graph/rows.ts'
import type { Removal, Tombstone, WholeTree } from './archive.ts'
import { look, rootFor } from './look.ts'
import type { Store } from './store.ts'

/** The facts about a tree that its tombstone keeps. */
export interface LeavingTree {
  readonly rootId: Id
  readonly hash: string
  readonly seq: number
  readonly conversations: readonly Conversation[]
  readonly turns: readonly Turn[]
}

export function tombstoneOf({ rootId, hash, seq, conversations, turns }: LeavingTree, removal: Removal): Tombstone {
  const root = conversations.find(({ id }) => id === rootId)
  const runs = new Map<Id, Id[]>(conversations.map(({ id }) => [id, []]))
  for (const { id, conversationId } of turns) runs.get(conversationId)?.push(id)
  return {
    rootId,
    hash,
    seq,
    agent: root?.agent.name ?? '',
    owner: root?.owner ?? null,
    at: removal.at,
    reason: removal.reason,
    conversations: conversations.map(({ id, parentConversationId }) => ({
      id,
      parentId: parentConversationId,
      runs: runs.get(id) ?? [],
    })),
  }
}

/** A tombstone as it was written; older ones do not say whose tree it was. */
export function readTombstone(written: Tombstone): Tombstone {
  return { ...written, owner: written.owner ?? null }
}

/** A tombstone that says no more than which ids are gone: its owner was forgotten. */
export function forgottenStone(stone: Tombstone): Tombstone {
  return { ...stone, owner: null, agent: '', reason: 'forgotten' }
}

/** The tombstone that an imported tree removes. Throws ConflictError when the tree is not the deleted one. */
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

/** Why a newer copy does not take the place of a tree. */
export function wentOn(rootId: Id): ConflictError {
  const message = `The tree ${rootId} is not replaced: it is not as it was a moment ago. A process works on it.`
  return new ConflictError('conflict', message, { details: { rootId, stale: true } })
}

/** The error for an id that is not in the store: it never was, or it was deleted, when and why. */
export async function notFound({ archive }: Pick<Store, 'archive'>, what: string, id: Id): Promise<NotFoundError> {
  return missingError(what, id, await archive?.tombstone(id))
}

/** The error for an id that is not there; with a tombstone it says when and why it was deleted. */
export function missingError(what: string, id: Id, stone: Tombstone | undefined): NotFoundError {
  if (stone === undefined) return new NotFoundError('not_found', `There is no ${what} ${String(id)} in this store.`)
  return new NotFoundError('not_found', `The ${what} ${id} ${wasDeleted(stone)}`, { details: { deleted: stone } })
}

/** True where this run has ended or was deleted. A run that is not recorded yet has not ended. */
export async function isOver(store: Store, runId: Id): Promise<boolean> {
  const rootId = await rootFor(store, runId)
  const turn = rootId === undefined ? undefined : await look(store, rootId, (tree) => tree.turn(runId))
  return turn === undefined ? (await store.archive?.tombstone(runId)) !== undefined : turn.state === 'ended'
}

/** The newest tombstone that names a conversation or run. */
export function tombstoneFor(stones: readonly Tombstone[], isMeant: (id: Id) => boolean): Tombstone | undefined {
  return stones.findLast(({ conversations }) => conversations.some(({ id, runs }) => isMeant(id) || runs.some(isMeant)))
}

/** Describes a deletion, as the rest of a sentence after the name. */
export function wasDeleted({ rootId, at, reason, hash }: Tombstone): string {
  return `was deleted at ${new Date(at).toISOString()} (${reason}). The last commit of its tree ${rootId} has the hash ${hash}.`
}

/** `what` names the damage, as a sentence without its end. */
export function tampered(
  what: string,
  place: {
    readonly rootId: Id | null
    readonly path: string
    /** The number of the commit in its tree whose events were changed. */
    readonly commit?: number
  },
): StoreError {
  const { rootId, path } = place
  const where = rootId === null ? path : `the tree ${rootId} in ${path}`
  const remove = rootId === null ? '' : `, or delete the tree: \`legate forget ${rootId}\``
  const message = `${what}: somebody changed ${where} outside of the runtime. Nothing more is written to that tree, not even that it is cancelled; others go on. \`legate audit --verify\` lists all that is wrong; restore the file from a backup${remove}.`
  return new StoreError('tampered', message, { details: { ...place } })
}
