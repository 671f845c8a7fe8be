import { NotFoundError } from '../../base/error.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id, Node } from '../../graph/rows.ts'
import { lookWith } from '../../store/look.ts'
import type { Store } from '../../store/store.ts'

/** Reads a node in its tree. */
export async function inNode<T>(store: Store, nodeId: Id, read: (tree: TreeReader, node: Node) => T): Promise<T> {
  return lookWith(store, nodeId, (tree) => {
    const node = tree.node(nodeId)
    if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId} in this store.`)
    return read(tree, node)
  })
}
