import { NotFoundError } from '../base/error.ts'
import type { Id } from '../graph/rows.ts'
import type { Tombstone } from './archive.ts'
import type { Store } from './store.ts'

/** For an id that is not in the store: it never was, or it was deleted, when and why. */
export function notFound({ archive }: Pick<Store, 'archive'>, what: string, id: Id): NotFoundError {
  const stone = archive?.tombstone(id)
  if (stone === undefined) return new NotFoundError('not_found', `There is no ${what} ${id} in this store.`)
  return new NotFoundError('not_found', `The ${what} ${id} ${wasDeleted(stone)}`, { details: { deleted: stone } })
}

/** Has this run ended? So has one that was deleted; one that is still to be recorded has not. */
export function isOver(store: Pick<Store, 'archive' | 'turn'>, runId: Id): boolean {
  const turn = store.turn(runId)
  return turn === undefined ? store.archive?.tombstone(runId) !== undefined : turn.state === 'ended'
}

/** The newest tombstone that names a conversation or run. */
export function tombstoneFor(stones: readonly Tombstone[], isMeant: (id: Id) => boolean): Tombstone | undefined {
  return stones.findLast(({ conversations }) => conversations.some(({ id, runs }) => isMeant(id) || runs.some(isMeant)))
}

/** Of a tombstone, in words, after the name of what is gone. */
export function wasDeleted({ rootId, at, reason, hash }: Tombstone): string {
  return `was deleted at ${new Date(at).toISOString()} (${reason}). The last commit of its tree ${rootId} has the hash ${hash}.`
}
