import type { LegateClient } from 'legate/client'
import { sqliteStore } from 'legate/store/sqlite'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'
import { useCounter } from './support/counter.ts'
import { freePort, ServingCase } from './support/serving.ts'

const counter = await useCounter()
const folder = tempFolder(afterAll)

const day = () => new Date().toISOString().slice(0, 10)
const TODAY = () => ({ from: day(), to: day() })

async function made(client: LegateClient, id: string): Promise<string> {
  const scopes = ['start', 'read'] as const
  return (await client.addToken({ name: id, principal: { id, scopes: [...scopes] } })).token
}

/** Asks a server as the holder of a token. */
function asker(port: number, token: string) {
  return async (path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers, ...sent })
    return { status: answer.status, body: (await answer.json()) as { readonly token?: string } }
  }
}

/** The rows that name an owner, wherever they are kept beside trees. */
async function rowsOf(database: string, owner: string) {
  const store = sqliteStore(database)
  const list = async (kind: string) =>
    (await store.registry.list(kind, { limit: 1_000 })).filter((row) => JSON.stringify(row).includes(`"${owner}"`))
  const found = {
    tokens: (await list('token')).length,
    webhooks: (await list('webhook')).length,
    usage: (await store.usage({ ...TODAY(), owner })).length,
    feed: (await store.changes(null, 1_000)).changes.filter((change) => change.owner === owner).length,
  }
  await store.close()
  return found
}

test('an owner that is erased over HTTP leaves nothing, and its tokens end in every process', async () => {
  const serving = new ServingCase(counter, folder)
  onTestFinished(() => serving.crash.drop())
  const [portA, portB] = [await freePort(), await freePort()]
  const a = await serving.start({ port: portA, workers: 8, isUsual: true })
  const b = await serving.start({ port: portB, workers: 0, isUsual: true })
  const admin = serving.client(portA)
  const [first, bobs] = [await made(admin, 'ann'), await made(admin, 'bob')]
  const own = (await asker(portA, first)('/v1/tokens', { principal: { scopes: ['read'] } })).body.token ?? ''
  for (const token of [first, bobs]) {
    expect((await asker(portA, token)('/v1/runs?wait=20', { agent: 'speaker', input: 'Go.' })).status).toBe(200)
    const hook = { url: 'https://hooks.example/legate', types: ['run.ended'] }
    expect((await asker(portA, token)('/v1/webhooks', hook)).status).toBe(201)
  }
  const statuses = async (token: string) => [
    (await asker(portA, token)('/v1/runs')).status,
    (await asker(portB, token)('/v1/runs')).status,
  ]
  expect([await statuses(first), await statuses(own)]).toEqual([
    [200, 200],
    [200, 200],
  ])
  const { database } = serving.crash
  const before = await rowsOf(database, 'bob')
  const anns = await rowsOf(database, 'ann')
  expect(anns).toMatchObject({ tokens: 2, webhooks: 1 })
  expect(Math.min(anns.usage, anns.feed)).toBeGreaterThan(0)

  expect(await admin.forgetOwner('ann', 'asked')).toMatchObject({ owner: 'ann', trees: 1 })
  const until = Date.now() + 1_000
  expect((await asker(portA, first)('/v1/runs')).status).toBe(401)
  expect((await asker(portA, own)('/v1/runs')).status).toBe(401)
  await new Promise((resolve) => setTimeout(resolve, until - Date.now()))
  expect([await statuses(first), await statuses(own), await statuses(bobs)]).toEqual([
    [401, 401],
    [401, 401],
    [200, 200],
  ])
  expect(await rowsOf(database, 'ann')).toEqual({ tokens: 0, webhooks: 0, usage: 0, feed: 0 })
  expect(await rowsOf(database, 'bob')).toMatchObject(before)
  await serving.stop(a, b)
})
