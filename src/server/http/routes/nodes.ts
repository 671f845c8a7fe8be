import type { Node } from '../../../doors/rows.ts'
import { json, type Route, type RouteCall } from '../table/route.ts'
import { answer, FROM, nodeView, param } from './parts.ts'
import { requestOf } from './runs.ts'

const RESULT = { description: 'The text.', type: 'text/plain' }

/** Routes of single nodes. */
export const NODE_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/nodes/{id}',
    scope: 'read',
    summary: 'A node: what went in, what came out, and how it went.',
    params: { id: 'id' },
    answers: { 200: answer('NodeInfo', 'The node.') },
    handler: async (call) => json(await call.runtime.nodeInfo(param(call))),
  },
  {
    method: 'GET',
    path: '/v1/nodes/{id}/context',
    scope: 'read',
    summary: 'The nodes that the model of a node sees.',
    params: { id: 'id' },
    query: { from: FROM },
    answers: { 200: answer('Nodes', 'The nodes, oldest first.') },
    handler: async (call) => {
      const { id, laneId } = await call.runtime.node(param(call))
      return json(viewOf(await (await call.runtime.conversation(laneId)).contextFor(id, fromOf(call))))
    },
  },
  {
    method: 'GET',
    path: '/v1/nodes/{id}/request',
    scope: 'read',
    summary: 'What the model of a node was shown, made again from its rows.',
    params: { id: 'id' },
    answers: { 200: answer('Request', 'The request.') },
    handler: async (call) => json(await call.runtime.requestOf(param(call))),
  },
  {
    method: 'GET',
    path: '/v1/nodes/{id}/versions',
    scope: 'read',
    summary: 'All versions of a node in its lane.',
    params: { id: 'id' },
    query: { from: FROM },
    answers: { 200: answer('Nodes', 'The versions, oldest first.') },
    handler: async (call) => {
      const { id, laneId } = await call.runtime.node(param(call))
      return json(viewOf(await (await call.runtime.conversation(laneId)).versions(id, fromOf(call))))
    },
  },
  {
    method: 'GET',
    path: '/v1/nodes/{id}/explain',
    scope: 'read',
    summary: 'Says why the run of a node may or may not do something.',
    params: { id: 'id' },
    query: { request: { type: 'string', description: 'The request: `tool:deploy`.', default: '' } },
    answers: { 200: answer('Explanation', 'The verdict and the layers that made it.') },
    example: { query: 'request=tool:deploy' },
    handler: async (call) => {
      const { turnId } = await call.runtime.node(param(call))
      return json(await call.runtime.explain(turnId, requestOf(call)))
    },
  },
  {
    method: 'GET',
    path: '/v1/results/{id}',
    scope: 'read',
    summary: 'All of the result of a node as text, or a range of it.',
    params: { id: 'id' },
    headers: { Range: '`bytes=0-999` gives a part.' },
    answers: { 200: RESULT, 206: RESULT, 416: { description: 'The range lies beyond the text.' } },
    handler: async (call) => {
      const { text } = await call.runtime.result(param(call))
      return partOf(Buffer.from(text), call.headers.get('range'))
    },
  },
]

const HEADERS = { 'content-disposition': 'attachment', 'accept-ranges': 'bytes' }

/** All of the bytes, or the one range that was asked for. */
function partOf(bytes: Buffer, range: string | null) {
  const [, from, to] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range ?? '') ?? []
  if (from === undefined || to === undefined || `${from}${to}` === '') {
    return { status: 200, bytes, headers: HEADERS }
  }
  const isTail = from === ''
  const first = isTail ? Math.max(0, bytes.length - Number(to)) : Number(from)
  const last = isTail || to === '' ? bytes.length - 1 : Math.min(Number(to), bytes.length - 1)
  if (first > last) return { status: 416, headers: { 'content-range': `bytes */${bytes.length}` } }
  const part = { 'content-range': `bytes ${first}-${last}/${bytes.length}` }
  return { status: 206, bytes: bytes.subarray(first, last + 1), headers: { ...HEADERS, ...part } }
}

function fromOf({ query }: RouteCall) {
  return { from: query.number('from') ?? 0 }
}

function viewOf({ nodes, next }: { readonly nodes: readonly Node[]; readonly next: number | null }) {
  return { nodes: nodes.map(nodeView), next }
}
