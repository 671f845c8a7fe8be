import { InputError, StoreError } from '../base/error.ts'
import type { Id } from '../graph/rows.ts'
import type { Archive } from '../store/archive.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import { toLines } from '../store/tree-lines.ts'

/** All of a tree as lines of JSON. */
export async function exportTree(store: Store, rootId: Id): Promise<Iterable<string>> {
  const conversation = store.conversation(rootId)
  if (conversation === undefined) throw notFound(store, 'conversation', rootId)
  if (conversation.rootId !== rootId) {
    const message = `${rootId} is a child of the tree ${conversation.rootId}: trees are exported whole. Name its root.`
    throw new InputError('invalid_input', message, { details: { rootId: conversation.rootId } })
  }
  const whole = await archiveOf(store).read(rootId)
  if (whole === undefined) throw notFound(store, 'tree', rootId)
  return toLines(whole)
}

/** Whole trees of the store. */
export function archiveOf({ archive, name }: Store): Archive {
  if (archive !== undefined) return archive
  throw new StoreError(
    'store',
    `The store "${name}" has no archive: trees can be neither exported nor imported nor deleted.`,
  )
}
