import type { Principal } from 'legate'
import { expect, test } from 'vitest'
import { type Setting, startServer } from './support/server.ts'
import { type Frame, framesOf } from './support/sse.ts'

const ann: Principal = { id: 'ann', scopes: ['start', 'read'] }

async function run(setting: Setting, token: string): Promise<string> {
  const made = await setting.post('/v1/runs?wait=10', { agent: 'greeter', input: 'Hi' }, { token })
  return ((await made.json()) as { conversationId: string }).conversationId
}

/** Reads until a frame fits, and leaves. */
async function readUntil(answer: Response, isLast: (frame: Frame) => boolean): Promise<Frame[]> {
  const frames: Frame[] = []
  for await (const frame of framesOf(answer)) {
    frames.push(frame)
    if (isLast(frame)) break
  }
  return frames
}

const hasEnded = (rootId: string) => (frame: Frame) =>
  frame.event === 'change' && frame.data['rootId'] === rootId && (frame.data['types'] as string[]).includes('run-end')

test('the feed names the trees of its reader that went on, and no others', async () => {
  await using setting = await startServer()
  const [own, other] = [await setting.tokenFor(ann), await setting.tokenFor({ ...ann, id: 'bob' })]
  const feed = await setting.get('/v1/feed', { token: own })
  const foreign = await run(setting, other)
  const mine = await run(setting, own)

  const frames = await readUntil(feed, hasEnded(mine))

  expect(frames[0]?.event).toBe('hello')
  expect(frames.filter(({ event }) => event === 'change').map(({ data }) => data['rootId'])).not.toContain(foreign)
  expect(JSON.stringify(frames)).not.toMatch('bob')
})

test('a reader that comes back gets every change after its place, and every event of its trees', async () => {
  await using setting = await startServer()
  const token = await setting.tokenFor(ann)
  const tree = await run(setting, token)
  const feed = await setting.get(`/v1/feed?tree=${tree}:0`, { token })
  const first = await readUntil(feed, ({ event, data }) => event === 'tree' && typeOf(data) === 'run-end')
  const seen = first.filter(({ event }) => event === 'tree').map(({ data }) => seqOf(data))
  const id = first.findLast((frame) => frame.id !== undefined)?.id ?? ''
  const missed = [await run(setting, token), await run(setting, token)]
  await setting.post(`/v1/conversations/${tree}/messages?wait=10`, { input: 'More' }, { token })

  const again = await setting.get('/v1/feed', { token, headers: { 'last-event-id': id } })
  const changed = new Set<unknown>()
  const later: unknown[] = []
  for await (const { event, data } of framesOf(again)) {
    if (event === 'change') changed.add(data['rootId'])
    if (event === 'tree' && Number.isInteger(seqOf(data))) later.push(seqOf(data))
    if (typeOf(data) === 'run-end' && missed.every((one) => changed.has(one))) break
  }
  const durable = seen.filter(Number.isInteger)
  expect([...durable, ...later]).toEqual(Array.from({ length: durable.length + later.length }, (_, at) => at + 1))
  expect(id.length).toBeLessThan(1_024)
})

test.each(['.', 'MTI.x', `MTI.${'A'.repeat(22)}-1`, 'a b', 'x'.repeat(2_000)])(
  'the place %j is refused',
  async (id) => {
    await using setting = await startServer()

    expect((await setting.get('/v1/feed', { headers: { 'last-event-id': id } })).status).toBe(400)
  },
)

test('the place in 16 trees is short, and a reader goes on in all of them', async () => {
  await using setting = await startServer()
  const token = await setting.tokenFor(ann)
  const trees: string[] = []
  for (let n = 0; n < 16; n++) trees.push(await run(setting, token))
  const feed = await setting.get(`/v1/feed?tree=${trees.map((id) => `${id}:0`).join(',')}`, { token })
  const over = new Set<unknown>()
  const frames = await readUntil(feed, ({ data }) => {
    if (typeOf(data) === 'run-end') over.add(data['rootId'])
    return over.size === 16
  })
  const id = frames.at(-1)?.id ?? ''

  expect(id.length).toBeGreaterThan(16 * 22)
  expect(id.length).toBeLessThan(700)
  const last = trees[15] ?? ''
  await setting.post(`/v1/conversations/${last}/messages?wait=10`, { input: 'More' }, { token })
  const again = await setting.get('/v1/feed', { token, headers: { 'last-event-id': id } })
  const later = await readUntil(again, ({ data }) => typeOf(data) === 'run-end')
  const told = later.filter(({ event }) => event === 'tree').map(({ data }) => data['rootId'])
  expect(new Set(told)).toEqual(new Set([last]))
})

test('a reader whose place is no longer kept is told so', async () => {
  await using setting = await startServer()
  const token = await setting.tokenFor(ann)
  const tree = await run(setting, token)
  const headers = { 'last-event-id': Buffer.from('999999').toString('base64url') }

  const frames = await readUntil(await setting.get('/v1/feed', { token, headers }), hasEnded(tree))

  expect(frames.map(({ event }) => event).slice(0, 2)).toEqual(['hello', 'cut'])
})

test('a reader that is cut before anything has happened misses nothing of what happens then', async () => {
  await using setting = await startServer()
  const token = await setting.tokenFor(ann)
  const [hello] = await readUntil(await setting.get('/v1/feed', { token }), ({ event }) => event === 'hello')
  const mine = await run(setting, token)

  const back = await setting.get('/v1/feed', { token, headers: { 'last-event-id': hello?.id ?? '' } })
  expect((await readUntil(back, hasEnded(mine))).at(-1)).toMatchObject({ event: 'change', data: { rootId: mine } })
})

test('trees of others, too many trees and places that are not there are refused', async () => {
  await using setting = await startServer()
  const [own, other] = [await setting.tokenFor(ann), await setting.tokenFor({ ...ann, id: 'bob' })]
  const mine = await run(setting, own)
  const status = async (tree: string, token: string) => (await setting.get(`/v1/feed?tree=${tree}`, { token })).status

  expect(await status(`${mine}:0`, other)).toBe(404)
  expect(await status(`${mine}:99999`, own)).toBe(400)
  expect(await status('x:1', own)).toBe(400)
})

test('figures and usage', async () => {
  await using setting = await startServer()
  const token = await setting.tokenFor(ann)
  await run(setting, token)

  expect((await setting.get('/metrics', { token })).status).toBe(403)
  const metrics = await setting.get('/metrics')
  const text = await metrics.text()
  expect(metrics.headers.get('content-type')).toMatch('application/openmetrics-text')
  expect(text).toMatch(/legate_http_answers_total\{method="POST",route="\/v1\/runs",status="20\d"\} 1\n/)
  expect(text).toMatch(/legate_http_answers_total\{method="",route="",status="403"\} 1\n/)
  expect(text).toMatch(/\n# EOF\n$/)
  const usage = await setting.get('/v1/usage', { token })
  expect(await usage.json()).toMatchObject({ usage: [{ owner: 'ann', agent: 'greeter', runs: 1 }, { modelCalls: 1 }] })
  expect((await setting.get('/v1/usage?from=yesterday', { token })).status).toBe(400)
})

function eventOf(data: Frame['data']): { readonly type?: string; readonly seq?: number } {
  return (data['event'] ?? {}) as { readonly type?: string; readonly seq?: number }
}

function typeOf(data: Frame['data']): string | undefined {
  return eventOf(data).type
}

function seqOf(data: Frame['data']): number | undefined {
  return eventOf(data).seq
}
