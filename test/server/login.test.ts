// Clients that know nothing but OAuth find out where to log in.

import {
  checkResourceAllowed,
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
} from '@modelcontextprotocol/client'
import { createRuntime } from 'legate'
import { handler } from 'legate/server'
import { expect, test } from 'vitest'
import { startProvider } from './support/provider.ts'
import { startServer } from './support/server.ts'

test('a client without a token is led to the provider, by the official client too', async () => {
  const provider = await startProvider()
  await using setting = await startServer({ oidc: { issuer: provider.url, audience: 'legate' } })
  const place = `${setting.server.url}/mcp`
  const refused = await fetch(place, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })

  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(refused)
  expect(refused.status).toBe(401)
  expect(String(resourceMetadataUrl)).toBe(`${setting.server.url}/.well-known/oauth-protected-resource/mcp`)
  expect(scope).toBe('start read cancel')
  const metadata = await discoverOAuthProtectedResourceMetadata(place)
  expect(metadata).toEqual({
    resource: place,
    resource_name: 'Legate',
    authorization_servers: [provider.url],
    bearer_methods_supported: ['header'],
    scopes_supported: ['start', 'read', 'cancel'],
  })
  const root = await discoverOAuthProtectedResourceMetadata(setting.server.url)
  expect(root.resource).toBe(setting.server.url)
  expect(checkResourceAllowed({ requestedResource: place, configuredResource: root.resource })).toBe(true)

  const wrong = await setting.get('/v1/runs', { token: 'lgt_wrong' })
  expect(wrong.headers.get('www-authenticate')).toContain(
    `"${setting.server.url}/.well-known/oauth-protected-resource"`,
  )
  await provider.close()
})

test('behind a proxy the address is that of the proxy; a name that is not the server’s leads nowhere', async () => {
  const runtime = createRuntime({ agents: [] })
  const oidc = { issuer: 'https://login.example', audience: 'legate' }
  const answer = handler(runtime, { oidc, allowHosts: ['agents.example'], behindProxy: true })
  const ask = (host: string) =>
    answer(new Request(`http://${host}/mcp`, { method: 'DELETE', headers: { 'x-forwarded-proto': 'https' } }))

  const refused = await ask('agents.example')
  expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([
    401,
    'Bearer realm="legate", resource_metadata="https://agents.example/.well-known/oauth-protected-resource/mcp", scope="start read cancel"',
  ])
  const wrong = await ask('evil.example')
  expect(wrong.status).not.toBe(401)
  expect(wrong.headers.get('www-authenticate')).toBeNull()
  await runtime.close()
})

test('without a provider there is nowhere to log in', async () => {
  await using setting = await startServer()
  for (const path of ['', '/mcp']) {
    expect((await setting.get(`/.well-known/oauth-protected-resource${path}`)).status).toBe(404)
  }
  const refused = await fetch(`${setting.server.url}/mcp`, { method: 'DELETE' })
  expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="legate"')
})
