// Peers that speak A2A 0.3, over JSON-RPC: their requests and answers are translated by the package, to and from the operations
// of 1.0. They read a card of their own.

import type { A2ARequestHandler } from '@a2a-js/sdk/server'
import type { AgentInfo } from '../../../doors/rows.ts'
import type { Json } from '../../../index.ts'
import { type CardPlace, cardOf } from './card.ts'

/** Does a request speak 0.3? Its methods have names such as `message/send`, and mostly no header says the version. */
export function speaksOlder(version: string | null, method: string): boolean {
  return (version === null || /^(?:0\.3(?:\.\d+)?)?$/.test(version)) && method.includes('/')
}

/** The transport of 0.3, and its form of an error. */
export async function olderTransport(handler: A2ARequestHandler) {
  const { LegacyJsonRpcTransportHandler } = await import('@a2a-js/sdk/compat/v0_3/server')
  const transport = new LegacyJsonRpcTransportHandler(handler)
  return { transport, errorOf: LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError }
}

/** The version that a transport of 0.3 is asked for. */
export const OLDER_VERSION = '0.3'

/** The card of an agent in the form of 0.3. */
export function olderCardOf(agent: AgentInfo, place: CardPlace): Json {
  const card = cardOf(agent, place) as { readonly [key: string]: Json }
  const { supportedInterfaces: _, securitySchemes: __, securityRequirements: ___, capabilities, ...same } = card
  const { extendedAgentCard: ____, ...able } = capabilities as { readonly [key: string]: Json }
  const openIdConnectUrl = `${place.issuer}/.well-known/openid-configuration`
  const provider = place.issuer === null ? {} : { provider: { type: 'openIdConnect', openIdConnectUrl } }
  return {
    ...same,
    url: `${place.origin}/a2a/${encodeURIComponent(agent.name)}`,
    protocolVersion: '0.3.0',
    preferredTransport: 'JSONRPC',
    capabilities: able,
    securitySchemes: { bearer: { type: 'http', scheme: 'Bearer' }, ...provider },
    security: [{ bearer: [] }, ...(place.issuer === null ? [] : [{ provider: [] }])],
    supportsAuthenticatedExtendedCard: false,
  }
}
