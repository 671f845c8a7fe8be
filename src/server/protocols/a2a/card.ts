import { sha256 } from '../../../core/base/hash.ts'
import { canonicalJson } from '../../../core/base/json.ts'
import type { AgentInfo } from '../../../doors/rows.ts'
import type { Json } from '../../../index.ts'
import { INPUT_TYPES } from './read.ts'
import { A2A_VERSION, IDEMPOTENT } from './wire.ts'

/** Where cards lead to, and how callers say who they are. */
export interface CardPlace {
  /** The address of the server: `https://agents.example`. */
  readonly origin: string
  /** The issuer of OpenID Connect whose tokens are taken; null: none. */
  readonly issuer: string | null
}

/** The card of an agent, in its JSON form. */
export function cardOf(agent: AgentInfo, { origin, issuer }: CardPlace): Json {
  const { name, description, input, output } = agent
  const says = description === '' ? `The agent ${name}.` : description
  const url = `${origin}/a2a/${encodeURIComponent(name)}`
  const [inputModes, outputModes] = [
    input === null ? [...INPUT_TYPES] : [JSON_TYPE, 'text/plain'],
    modesOf(output !== null),
  ]
  return {
    name,
    description: says,
    version: sha256(canonicalJson({ name, description, input, output } as unknown as Json)).slice(0, 12),
    supportedInterfaces: ['JSONRPC', 'HTTP+JSON'].map((protocolBinding) => {
      return { url, protocolBinding, protocolVersion: A2A_VERSION }
    }),
    capabilities: {
      streaming: true,
      pushNotifications: true,
      extendedAgentCard: false,
      extensions: [{ uri: IDEMPOTENT, description: 'A message that arrives again is the same task.', required: false }],
    },
    ...security(issuer),
    defaultInputModes: inputModes,
    defaultOutputModes: outputModes,
    skills: [{ id: name, name, description: says, tags: ['agent'], inputModes, outputModes }],
  }
}

const JSON_TYPE = 'application/json'

function modesOf(hasValue: boolean): string[] {
  return hasValue ? [JSON_TYPE, 'text/plain'] : ['text/plain', JSON_TYPE]
}

function security(issuer: string | null): { readonly [key: string]: Json } {
  const bearer = { httpAuthSecurityScheme: { scheme: 'Bearer', description: 'A token of this server.' } }
  const provider = { openIdConnectSecurityScheme: { openIdConnectUrl: `${issuer}/.well-known/openid-configuration` } }
  return {
    securitySchemes: { bearer, ...(issuer === null ? {} : { provider }) },
    securityRequirements: [
      { schemes: { bearer: { list: [] } } },
      ...(issuer === null ? [] : [{ schemes: { provider: { list: [] } } }]),
    ],
  }
}
