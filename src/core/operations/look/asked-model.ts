import { messagesOf } from '../../agent/request/messages.ts'
import type { AskedModel } from '../../conversation/trace/messages.ts'
import { collectContext } from '../../graph/context.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id } from '../../graph/rows.ts'
import type { ShownRequest } from './request-of.ts'

/** The two ways to a request: with the code of this process, and from rows alone. */
export interface AskedSources {
  readonly requestOf: (nodeId: Id) => Promise<ShownRequest>
  readonly inTree: <T>(nodeId: Id, read: (tree: TreeReader) => T) => Promise<T>
}

/**
 * The request of a model call for a trace. Instructions, tools and settings are code: they are in it only where this process has
 * the definition that the conversation was last run with. The messages of the conversation are rows.
 */
export async function askedModel({ requestOf, inTree }: AskedSources, nodeId: Id): Promise<AskedModel | undefined> {
  // Whatever its code does wrong: a trace can do without it.
  const shown = await requestOf(nodeId).catch(() => undefined)
  if (shown !== undefined && !shown.isChanged) return shown.request
  return inTree(nodeId, (tree) => {
    const node = tree.node(nodeId)
    const messages = node === undefined ? [] : messagesOf('', collectContext(tree, node))
    return messages.length === 0 ? undefined : { messages, tools: null, settings: null }
  })
}
