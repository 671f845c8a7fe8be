import { sqliteStore } from 'legate/store/sqlite'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { skipUnlessBuilt } from '../support/program.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { Receiver } from './support/receiver.ts'
import { longestWait, type SmallServer, startSmall } from './support/small-server.ts'

beforeEach(skipUnlessBuilt)

const AGENTS = `
  agents = [agent({ name: 'long', instructions: 'Say much.', model: said('x'.repeat(190_000)) }), ...agents]
  options = { limits: { startsPerMinute: 10_000 } }
`
const PRIVATE = `
  options = { ...options, webhooks: { allowPrivate: true, leaseMs: 9_000 } }
`

async function hooksAt(server: SmallServer, token: string, url: string): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < 100; n++) {
    const body = { url, types: ['run.ended'], include: 'outcome' }
    ids.push((await server.json<{ webhook: { id: string } }>('/v1/webhooks', { token, body })).webhook.id)
  }
  return ids
}

async function runs(server: SmallServer, token: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    await server.json('/v1/runs?wait=30', { token, body: { agent: 'long', input: 'Go' } })
  }
}

const MANY = 700
const settle = () => new Promise((resolve) => setTimeout(resolve, 5_000))

test('1,400 deliveries of long answers that go nowhere end no server with a heap of 512 MB, nor the next one', async () => {
  const place = tempFolder(onTestFinished)
  const server = await startSmall({ place, source: AGENTS })
  const token = await server.tokenFor({ id: 'eve', scopes: ['start', 'read'] })
  await hooksAt(server, token, 'https://nowhere.invalid/hook')

  const { ms } = await longestWait(server, runs(server, token, 14).then(settle))

  expect(server.end).toBeUndefined()
  expect(ms).toBeLessThan(1_000)
  await server.stop()
  const next = await startSmall({ place, source: AGENTS })
  const after = await longestWait(next, settle())
  expect(next.end).toBeUndefined()
  expect(after.ms).toBeLessThan(1_000)
}, 180_000)

test('140 MB of waiting messages of an older version are taken up with a heap of 256 MB, and delivered', async () => {
  await using receiver = await new Receiver().listen()
  const place = tempFolder(onTestFinished)
  const first = await startSmall({ place, source: AGENTS + PRIVATE })
  const token = await first.tokenFor({ id: 'eve', scopes: ['start', 'read'] })
  await runs(first, token, 1)
  const [run] = (await first.json<{ runs: { rootId: string }[] }>('/v1/runs', { token })).runs
  const ids = await hooksAt(first, token, receiver.url)
  await first.stop()
  const store = sqliteStore(`${place}/rows.db`)
  const body = (n: number) => JSON.stringify({ type: 'run.ended', data: { n }, text: 'x'.repeat(200_000) })
  const older = { type: 'run.ended', rootId: run?.rootId ?? '', seq: 5, attempts: 0, nextAt: 0, last: null }
  for (let n = 0; n < MANY; n++) {
    const hookId = ids[n % ids.length] ?? ''
    const data = { ...older, hookId, body: body(n), state: 'waiting' }
    const id = `${hookId}.msg_${String(n).padStart(9, '0')}`
    await store.registry.put({ kind: 'delivery', id, owner: 'eve', version: 1, at: 1, data })
  }
  await store.close()

  const server = await startSmall({ place, heap: 256, source: AGENTS + PRIVATE })
  const numbers = () => new Set(receiver.arrived.map(({ body: sent }) => sent.data['n'])).size
  const { ms } = await longestWait(
    server,
    receiver.until(() => numbers() === MANY, 120_000),
  )

  expect(server.end).toBeUndefined()
  expect(ms).toBeLessThan(1_000)
}, 180_000)
