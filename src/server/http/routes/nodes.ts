// The route of a whole result, which can be had in parts, beside those of operations.

import type { Answer, Route } from '../table/route.ts'
import { routesOf } from '../table/routes-of.ts'
import { param } from './parts.ts'

const TEXT = { description: 'The text.', type: 'text/plain' }

const RESULT: Route = {
  method: 'GET',
  path: '/v1/results/{id}',
  scope: 'read',
  summary: 'All of the result of a node as text, or a range of it.',
  params: { id: 'id' },
  headers: { Range: '`bytes=0-999` gives a part.' },
  answers: { 200: TEXT, 206: TEXT, 416: { description: 'The range lies beyond the text.' } },
  handler: async (call) => {
    const { text } = await call.runtime.result(param(call))
    return partOf(Buffer.from(text), call.headers.get('range'))
  },
}

/** Routes of single nodes. */
export const NODE_ROUTES: readonly Route[] = routesOf('nodes', { explainNode: [RESULT] })

const HEADERS = { 'content-disposition': 'attachment', 'accept-ranges': 'bytes' }

/** All of the bytes, or the one range that was asked for. */
function partOf(bytes: Buffer, range: string | null): Answer {
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
