// Operations of single nodes.

import type { NodeInfo, WholeResult } from '../conversation/data/node-info.ts'
import type { Explanation } from '../grant/decide.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Id, Node } from '../graph/rows.ts'
import { look } from '../store/look.ts'
import { missingError } from '../store/not-found.ts'
import type { FromQuery, Page } from './form/page.ts'
import { type NodeAnswer, nodesView } from './form/views.ts'
import type { ShownRequest } from './look/request-of.ts'
import { inNode, nodePage } from './look/run-look.ts'
import { operation } from './operation.ts'
import type { Admitted } from './port.ts'
import { namedRequest } from './runs.ts'
import { FROM, REQUEST_QUERY } from './schemas.ts'

export const NODES = {
  /** A node with its contents. Where its result is long, it is cut: `result(nodeId)` has all of it. */
  nodeInfo: operation({
    summary: 'A node: what went in, what came out, and how it went.',
    scope: 'read',
    of: 'node',
    http: 'GET /v1/nodes/{id}',
    gives: ['NodeInfo', 'The node.'],
    run: async ({ store }, nodeId: Id): Promise<NodeInfo> => {
      const { nodeInfo } = await import('../conversation/data/node-info.ts')
      return inNode(store, nodeId, nodeInfo)
    },
    // With the beginnings of texts that would fill a page.
    as: async ({ on }, nodeId: Id): Promise<NodeInfo> => {
      const [{ nodeInfo }, { shortInfo }] = await Promise.all([
        import('../conversation/data/node-info.ts'),
        import('../conversation/data/by-reference.ts'),
      ])
      return shortInfo(await inNode(on.store, nodeId, nodeInfo))
    },
  }),

  /** The nodes that the model of a node sees. */
  context: operation({
    summary: 'The nodes that the model of a node sees.',
    scope: 'read',
    of: 'node',
    http: 'GET /v1/nodes/{id}/context',
    query: { from: FROM },
    gives: ['Nodes', 'The nodes, oldest first.'],
    serve: async (who, nodeId: Id, query: FromQuery = {}): Promise<Page<'nodes', NodeAnswer>> => {
      const handle = await who.talk((await nodeRow(who, nodeId)).laneId)
      return pageOf(await handle.contextFor(nodeId), query)
    },
  }),

  /** The request that the model of a node got, made again from its rows. `ShownRequest` says which parts are exact. */
  requestOf: operation({
    summary: 'What the model of a node was shown, made again from its rows.',
    scope: 'read',
    of: 'node',
    http: 'GET /v1/nodes/{id}/request',
    gives: ['Request', 'The request.'],
    as: ({ on }, nodeId: Id): Promise<ShownRequest> => on.requestOf(nodeId),
  }),

  /** All versions of a node in its lane. */
  versions: operation({
    summary: 'All versions of a node in its lane.',
    scope: 'read',
    of: 'node',
    http: 'GET /v1/nodes/{id}/versions',
    query: { from: FROM },
    gives: ['Nodes', 'The versions, oldest first.'],
    serve: async (who, nodeId: Id, query: FromQuery = {}): Promise<Page<'nodes', NodeAnswer>> => {
      const handle = await who.talk((await nodeRow(who, nodeId)).laneId)
      return pageOf(await handle.history.versions(nodeId), query)
    },
  }),

  /** Why the run that a node belongs to may or may not do something. */
  explainNode: operation({
    summary: 'Says why the run of a node may or may not do something.',
    scope: 'read',
    of: 'node',
    http: 'GET /v1/nodes/{id}/explain',
    query: REQUEST_QUERY,
    plain: ['request'],
    gives: ['Explanation', 'The verdict and the layers that made it.'],
    example: { query: 'request=tool:deploy' },
    serve: async (who, nodeId: Id, request: string): Promise<Explanation> =>
      who.on.explain((await nodeRow(who, nodeId)).turnId, namedRequest(request)),
  }),

  /** All of a node's result, or of its message, as text. */
  result: operation({
    scope: 'read',
    of: 'node',
    run: async ({ store }, nodeId: Id): Promise<WholeResult> => {
      const { wholeResult } = await import('../conversation/data/node-info.ts')
      return inNode(store, nodeId, wholeResult)
    },
  }),

  /** One node, as its row. */
  node: operation({
    scope: 'read',
    of: 'node',
    as: (who, nodeId: Id): Promise<Node> => nodeRow(who, nodeId),
  }),
} as const

async function nodeRow({ on, root }: Admitted, nodeId: Id): Promise<Node> {
  const node = await look(on.store, root.id, (tree: TreeReader) => tree.node(nodeId))
  if (node === undefined) throw missingError('node', nodeId, undefined)
  return node
}

function pageOf(nodes: readonly Node[], { from = 0 }: FromQuery): Page<'nodes', NodeAnswer> {
  return nodesView(nodePage(nodes, { from, limit: nodes.length }))
}
