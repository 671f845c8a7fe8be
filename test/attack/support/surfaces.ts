import * as acp from '@agentclientprotocol/sdk'
import type { Json, Principal, Runtime } from 'legate'
import { handler } from 'legate/server'
import { makeAgent } from '../../../src/server/protocols/acp/serve.ts'

/** Who speaks with which agent of which process. */
export interface SurfacePlace {
  readonly runtime: Runtime
  readonly principal: Principal
  readonly agent: string
  /** Put into the request beside what belongs there. */
  readonly smuggled: { readonly [key: string]: Json }
}

/** A protocol: says something to an agent, in a conversation of its own, and settles when the stream or the answer has ended. */
export interface Surface {
  readonly name: string
  say(place: SurfacePlace, text: string): Promise<void>
}

const LIMITS = { startsPerMinute: 100_000, readsPerMinute: 100_000, perAddressPerMinute: 100_000 }

export const surfaces: readonly Surface[] = [
  {
    name: 'a tool of MCP',
    say: (place, message) =>
      post(place, '/mcp', {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: place.agent, arguments: { ...place.smuggled, message } },
      }),
  },
  {
    name: 'a thread of AG-UI',
    say: (place, content) =>
      post(place, `/ag-ui/${place.agent}`, {
        ...place.smuggled,
        threadId: crypto.randomUUID(),
        runId: crypto.randomUUID(),
        messages: [{ ...place.smuggled, id: 'm', role: 'user', content }],
        forwardedProps: place.smuggled,
        state: place.smuggled,
      }),
  },
  {
    name: 'a chat of the AI SDK',
    say: (place, text) =>
      post(place, `/ai-sdk/${place.agent}`, {
        ...place.smuggled,
        id: crypto.randomUUID(),
        messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text }], metadata: place.smuggled }],
      }),
  },
  {
    name: 'a message of A2A',
    say: (place, text) =>
      post(place, `/a2a/${place.agent}`, {
        jsonrpc: '2.0',
        id: 1,
        method: 'SendMessage',
        params: {
          message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], metadata: place.smuggled },
          metadata: place.smuggled,
        },
      }),
  },
  { name: 'a session of ACP', say: sayInEditor },
]

async function post({ runtime, principal }: SurfacePlace, path: string, body: object): Promise<void> {
  const answer = handler(runtime, { authenticate: () => principal, limits: LIMITS })
  const headers = { host: 'localhost', 'content-type': 'application/json', 'a2a-version': '1.0' }
  const response = await answer(
    new Request(`http://localhost${path}`, { method: 'POST', headers, body: JSON.stringify(body) }),
  )
  await response.text()
}

/** An editor that allows everything it is asked for. */
async function sayInEditor({ runtime, principal, agent, smuggled }: SurfacePlace, text: string): Promise<void> {
  const app = makeAgent({ sdk: acp, agent, runtimeFor: async () => runtime.as(principal) })
  const connection = acp
    .client({ name: 'test' })
    .onRequest(acp.methods.client.session.requestPermission, () => {
      return { outcome: { outcome: 'selected' as const, optionId: 'allow_once' } }
    })
    .connect(app)
  const { initialize, session } = acp.methods.agent
  try {
    await connection.agent.request(initialize, { protocolVersion: 1, clientCapabilities: {} })
    const opened = { cwd: '/tmp', mcpServers: [], _meta: smuggled }
    const { sessionId } = await connection.agent.request<acp.NewSessionResponse>(session.new, opened)
    await connection.agent.request(session.prompt, { sessionId, prompt: [{ type: 'text', text }], _meta: smuggled })
  } finally {
    connection.close()
  }
}
