import { sha256 } from '../../../../core/base/hash.ts'
import { canonicalJson } from '../../../../core/base/json.ts'
import type { ReplyContext } from '../../../../doors/background.ts'
import { hostRequest } from '../../../../doors/grant.ts'
import { type Json, ToolError } from '../../../../index.ts'
import { A2A_VERSION, IDEMPOTENT } from '../wire.ts'
import { type RemoteState, readState } from './state.ts'

/** The parts of a card that we use. */
export interface CheckedCard {
  readonly hash: string
  /** Where JSON-RPC is spoken. */
  readonly url: string
  readonly isStreaming: boolean
  /** True: the same message sent again begins nothing twice. */
  readonly isIdempotent: boolean
}

/** Reads a card. Refuses one that cannot be spoken to, or leads to another host or out of https. */
export function checkCard(card: Json, url: string): CheckedCard {
  const { name, supportedInterfaces, capabilities } = Object(card) as Readonly<Record<string, Json>>
  const all = (Array.isArray(supportedInterfaces) ? supportedInterfaces : []) as readonly Json[]
  const found = all.map(interfaceOf).find(({ binding, version }) => binding === 'JSONRPC' && version === A2A_VERSION)
  if (typeof name !== 'string' || found === undefined) {
    throw new ToolError('tool', `The card of the remote agent offers no JSON-RPC of A2A ${A2A_VERSION}.`)
  }
  if (hostRequest(found.url).name !== hostRequest(url).name) {
    throw new ToolError('tool', `The card of the remote agent leads to another host: ${hostRequest(found.url).name}.`)
  }
  if (isSecure(url) && !isSecure(found.url)) {
    throw new ToolError('tool', 'The card of the remote agent leads from https to an address that is not encrypted.')
  }
  const { streaming, extensions } = Object(capabilities) as { readonly streaming?: Json; readonly extensions?: Json }
  const known = Array.isArray(extensions) ? extensions.map((one) => (Object(one) as { readonly uri?: Json }).uri) : []
  const hash = sha256(canonicalJson(card))
  return { hash, url: found.url, isStreaming: streaming === true, isIdempotent: known.includes(IDEMPOTENT) }
}

function isSecure(url: string): boolean {
  return /^https:/i.test(url.trim())
}

function interfaceOf(given: Json) {
  const { url, protocolBinding, protocolVersion } = Object(given) as Readonly<Record<string, unknown>>
  return { url: String(url), binding: protocolBinding, version: protocolVersion }
}

const MOST_TURNS = 50

/** The hash of the card that the agent had when it was last used here: in this conversation, or by the same host. */
export function pinnedHash({ graph, node, path }: Pick<ReplyContext, 'graph' | 'node' | 'path'>): string | null {
  const own = graph.turn(node.runId)
  const host = graph.turn(graph.link(node.runId)?.hostTurnId ?? '')
  const before = [own, host].flatMap((turn) => {
    return turn === undefined ? [] : graph.turnsOf(turn.laneId, { last: turn.ordinal, limit: MOST_TURNS })
  })
  const name = path.at(-1)
  const below = before.flatMap(({ id }) => graph.linksOf(id).filter(({ agentName }) => agentName === name))
  const runs = [...before, ...below].filter(({ id }) => id !== node.runId)
  const states = runs.flatMap(({ id }) => graph.nodesOf(id).map(({ metadata }) => readState(metadata['kept'] ?? null)))
  return newest(states)
}

/** The remote context of the turn before in this conversation; null where there is none. */
export function previousContext({ graph, node }: Pick<ReplyContext, 'graph' | 'node'>): string | null {
  const own = graph.turn(node.runId)
  if (own === undefined || own.ordinal === 0) return null
  const before = graph.turnsOf(own.laneId, { last: own.ordinal - 1, limit: MOST_TURNS })
  const states = before.flatMap(({ id }) =>
    graph.nodesOf(id).map(({ metadata }) => readState(metadata['kept'] ?? null)),
  )
  return states.findLast(({ contextId }) => contextId !== null && contextId !== '')?.contextId ?? null
}

function newest(states: readonly RemoteState[]): string | null {
  return states.findLast(({ card }) => card !== null)?.card ?? null
}
