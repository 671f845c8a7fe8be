import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

/** A provider with one key of each sort that it could use. */
export async function startProvider() {
  const rsa = await generateKeyPair('RS256')
  const strong = await generateKeyPair('RS512')
  const keys = [
    { ...(await exportJWK(rsa.publicKey)), kid: 'RS256' },
    { ...(await exportJWK(strong.publicKey)), kid: 'RS512' },
  ]
  /** `more`: what stands among its keys beside them. */
  const state = { keysStatus: 200, padding: 0, asked: 0, more: [] as unknown[] }
  const server = createServer((asked, answer) => {
    state.asked++
    if (asked.url === '/keys') answer.statusCode = state.keysStatus
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const found = asked.url?.includes('openid')
      ? { issuer, jwks_uri: `${issuer}/keys` }
      : { keys: [...state.more, ...keys] }
    answer.setHeader('content-type', 'application/json').end(JSON.stringify(found) + ' '.repeat(state.padding))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  interface Other {
    readonly audience?: string
    readonly issuer?: string
    readonly expires?: number
    readonly algorithm?: string
    readonly typ?: string
  }
  const sign = (
    claims: object,
    { audience = 'legate', issuer = url, expires = 60, algorithm = 'RS256', typ }: Other = {},
  ) =>
    new SignJWT({ iss: issuer, aud: audience, sub: 'u1', exp: Math.floor(Date.now() / 1_000) + expires, ...claims })
      .setProtectedHeader({ alg: algorithm, kid: algorithm, ...(typ === undefined ? {} : { typ }) })
      .sign(algorithm === 'HS256' ? new Uint8Array(32) : algorithm === 'RS512' ? strong.privateKey : rsa.privateKey)
  const close = () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  }
  return { url, sign, state, close }
}
