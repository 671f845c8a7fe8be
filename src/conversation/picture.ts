import { oneOf, readOptions } from '../base/options.ts'
import { readTree } from '../graph/audit/tree-rows.ts'
import { drawGraph, drawTree } from '../graph/picture/draw-graph.ts'
import { toDot } from '../graph/picture/to-dot.ts'
import { toMermaid } from '../graph/picture/to-mermaid.ts'
import type { Id } from '../graph/rows.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'

export interface PictureOptions {
  /** `tree`: who delegated to whom, a box for each run. `graph`: every node and edge. Default `tree`. */
  readonly of?: 'tree' | 'graph'
  /** Default `mermaid`. `dot` is the language of Graphviz. */
  readonly format?: 'mermaid' | 'dot'
}

/** Of the tree of this conversation; a graph of a child is of the child alone. */
export function pictureOf(store: Store, id: Id, given: PictureOptions): string {
  const { of = 'tree', format = 'mermaid' } = readOptions('picture()', given, OPTIONS)
  const conversation = store.conversation(id)
  if (conversation === undefined) throw notFound(store, 'conversation', id)
  const tree = readTree(store, conversation.rootId)
  const picture = of === 'tree' ? drawTree(tree) : drawGraph(tree, id === conversation.rootId ? undefined : id)
  return format === 'dot' ? toDot(picture) : toMermaid(picture)
}

const OPTIONS = { of: oneOf('tree', 'graph'), format: oneOf('mermaid', 'dot') }
