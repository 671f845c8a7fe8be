import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Json } from 'legate'
import { onTestFinished } from 'vitest'

/** The words that a client's person gives to a form. */
export type Forms = (
  message: string,
  schema: { readonly properties?: Readonly<Record<string, unknown>> } | undefined,
) => {
  readonly action: 'accept' | 'decline' | 'cancel'
  readonly content?: Record<string, string>
}

/** The official client, of the newest revision or of the one before it. */
export function newClient(forms?: Forms, mode: 'auto' | 'legacy' = 'auto'): Client {
  const capabilities = forms === undefined ? {} : { elicitation: { form: {} } }
  const client = new Client({ name: 'test', version: '1' }, { capabilities, versionNegotiation: { mode } })
  if (forms !== undefined) {
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      const { requestedSchema } = params as { requestedSchema?: { properties?: Record<string, unknown> } }
      return forms(params.message, requestedSchema) as never
    })
  }
  onTestFinished(() => client.close())
  return client
}

/** The official client at a server. */
export async function connected(url: string, token: string, client: Client = newClient()): Promise<Client> {
  const headers = { authorization: `Bearer ${token}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }))
  return client
}

/** All text of a result. */
export function textIn(result: { readonly content?: unknown }): string {
  const parts = result.content as readonly { readonly type: string; readonly text?: string }[]
  return parts.map(({ text = '' }) => text).join('\n')
}

/** A message of the newest revision, with Tasks: what the official client does not speak yet. */
export function message(method: string, params: { readonly [key: string]: Json }, capabilities: Json = TASKS) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  return { jsonrpc: '2.0', id: ++lastId, method, params: { ...params, _meta } }
}

let lastId = 0

export const TASKS: Json = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } }

/** A result or an error of the newest revision. */
export interface Answer {
  readonly status: number
  readonly result?: { readonly [key: string]: Json }
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Json }
}

/** Sends a message over HTTP, as a client with Tasks does. */
export async function send(
  { url, token }: { readonly url: string; readonly token: string },
  sent: ReturnType<typeof message>,
): Promise<Answer> {
  const { name, taskId, uri } = sent.params as { name?: string; taskId?: string; uri?: string }
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': sent.method,
      'mcp-name': name ?? taskId ?? uri ?? '',
    },
    body: JSON.stringify(sent),
  })
  const text = await response.text()
  const last = text.startsWith('{')
    ? text
    : (text
        .match(/^data: (.*)$/gm)
        ?.at(-1)
        ?.slice(6) ?? '{}')
  return { status: response.status, ...(JSON.parse(last) as object) }
}
