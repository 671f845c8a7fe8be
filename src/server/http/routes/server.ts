import { VERSION } from '../../../core/base/package/version.ts'
import { json, NOTHING, type Route } from '../table/route.ts'
import { answer } from './parts.ts'

const OPEN_METRICS = 'application/openmetrics-text'

/** Routes about the server itself. */
export const SERVER_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/health',
    scope: 'none',
    summary: 'Says that the server answers.',
    answers: { 204: { description: 'It does.' } },
    handler: () => NOTHING,
  },
  {
    method: 'GET',
    path: '/ready',
    scope: 'none',
    summary: 'Says whether the store answers and takes rows, and any process runs nodes.',
    answers: { 204: { description: 'All do.' }, 503: { description: 'One of them does not, or the disk is full.' } },
    handler: async ({ server }) => ((await server.ready()) ? NOTHING : { status: 503 }),
  },
  {
    method: 'GET',
    path: '/metrics',
    scope: 'audit',
    needsAll: true,
    summary: 'Figures of the server, for Prometheus and its like. Only for who sees all owners and agents.',
    answers: { 200: { description: 'OpenMetrics.', type: OPEN_METRICS } },
    handler: async ({ server }) => {
      return {
        status: 200,
        text: await server.metrics(),
        headers: { 'content-type': `${OPEN_METRICS}; version=1.0.0; charset=utf-8` },
      }
    },
  },
  {
    method: 'GET',
    path: '/v1',
    scope: 'any',
    summary: 'Says who you are, what you may do, and what the server allows.',
    answers: { 200: answer('Server', 'The version, the principal and the limits.') },
    handler: ({ principal, server }) => {
      const { within: _, ...shown } = principal
      return json({ version: VERSION, principal: shown, limits: server.limits })
    },
  },
  {
    method: 'GET',
    path: '/v1/openapi.json',
    scope: 'any',
    summary: 'The description of this API in the form of OpenAPI 3.1.',
    answers: { 200: { description: 'The description.', type: 'application/json' } },
    handler: async ({ server }) => {
      const { openApi } = await import('../table/openapi.ts')
      return json(openApi(server.table(), VERSION))
    },
  },
]
