// Where callers without a token can log in, for clients that know OAuth alone: the metadata of RFC 9728, and the header that leads
// there. Both are there only where the server takes tokens of a provider.

import type { Scope } from '../../../doors/grant.ts'
import { NotFoundError } from '../../../index.ts'
import { type Answer, json, type Route, type RouteCall } from '../table/route.ts'

const WELL_KNOWN = '/.well-known/oauth-protected-resource'
/** The resource that has metadata of its own, because clients of MCP ask for a token for its address. */
const MCP = '/mcp'

/** Scopes that a client may ask for by itself. Clients ask for all that they find, so wider ones are the provider's to give. */
const ASKED_FOR: readonly Scope[] = ['start', 'read', 'cancel']

export const METADATA_ROUTES: readonly Route[] = ['', MCP].map((resource) => ({
  method: 'GET',
  path: `${WELL_KNOWN}${resource}`,
  scope: 'none',
  summary: `Says where to log in${resource === '' ? '' : ` to use \`${resource}\``}, in the form of RFC 9728.`,
  description: 'Only where the server takes tokens of an OpenID Connect provider. It tells nothing of anybody.',
  answers: { 200: { description: 'The metadata.', type: 'application/json' } },
  handler: (call) => metadataOf(call, resource),
}))

function metadataOf({ origin, server }: RouteCall, resource: string): Answer {
  if (server.issuer === null) throw new NotFoundError('not_found', 'Nobody logs in at a provider here.')
  return json({
    resource: `${origin}${resource}`,
    resource_name: 'Legate',
    authorization_servers: [server.issuer],
    bearer_methods_supported: ['header'],
    scopes_supported: [...ASKED_FOR],
  })
}

/** The header of a refusal: where the caller finds out how to log in. */
export function loginHeader(origin: string, path: string): string {
  const resource = path === MCP ? MCP : ''
  return `Bearer realm="legate", resource_metadata="${origin}${WELL_KNOWN}${resource}", scope="${ASKED_FOR.join(' ')}"`
}
