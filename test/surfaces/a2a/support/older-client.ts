import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { foreignFolder } from '../../support/foreign-program.ts'

interface Answer {
  readonly status: number
  readonly result?: { readonly [key: string]: unknown }
  readonly error?: { readonly code: number; readonly message: string }
}

/** A peer that speaks 0.3 over JSON-RPC, and writes its requests itself. */
export function askedOlder(url: string, token: string) {
  const post = (method: string, params: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: '*/*' }
    return fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) })
  }
  return {
    ask: async (method: string, params: object): Promise<Answer> => {
      const answer = await post(method, params)
      return { ...((await answer.json()) as object), status: answer.status }
    },
    stream: async (method: string, params: object): Promise<Omit<Answer, 'status'>[]> => {
      const text = await (await post(method, params)).text()
      return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as Answer)
    },
  }
}

interface OlderSdk {
  readonly A2AClient: {
    fromCardUrl(
      url: string,
      options: { readonly fetchImpl: typeof fetch },
    ): Promise<{ sendMessage(params: object): Promise<{ readonly result?: object }> }>
  }
}

/** The official package of 0.3; undefined where `node scripts/protocols.mjs` has not fetched it. */
export async function foreignSdk(): Promise<OlderSdk | undefined> {
  if (foreignFolder === '') return undefined
  const file = createRequire(path.join(foreignFolder, 'package.json')).resolve('@a2a-js/sdk/client')
  return (await import(pathToFileURL(file).href)) as OlderSdk
}
