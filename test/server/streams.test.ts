import { connect } from 'node:net'
import { agent } from 'legate'
import type { Part } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { itemFrame } from '../../src/server/stream/frames.ts'
import { StreamReader } from '../../src/server/stream/reader.ts'
import { patient } from './support/patient.ts'
import { type Setting, startServer } from './support/server.ts'
import { allFrames, type Frame, framesOf } from './support/sse.ts'

/** Speaks in many pieces. */
const speaker = agent({
  name: 'speaker',
  instructions: 'Speak.',
  model: scriptedModel(() => ({ chunks: Array.from({ length: 50 }, (_, at) => `word${at} `) })),
})

async function started(setting: Setting, name: string, given: { token?: string } = {}): Promise<string> {
  const answer = await setting.post('/v1/runs', { agent: name, input: 'Hi' }, given)
  return ((await answer.json()) as { runId: string }).runId
}

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

const durable = (frames: readonly Frame[]) => frames.filter(({ id }) => id !== undefined)

describe('streams', () => {
  test('a stream has a hello, events with ids where they are recorded, and an end', async () => {
    await using setting = await startServer({}, { agents: [speaker] })
    // What the first run loads takes longer than this model speaks.
    await setting.post('/v1/runs?wait=10', { agent: 'speaker', input: 'Hi' })

    const answer = await setting.post(
      '/v1/runs',
      { agent: 'speaker', input: 'Hi' },
      { headers: { accept: 'text/event-stream' } },
    )
    const frames = await allFrames(answer)

    expect(answer.headers.get('x-accel-buffering')).toBe('no')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(frames[0]).toMatchObject({ event: 'hello', data: { after: 0, runId: expect.any(String) } })
    expect(frames.at(-1)).toMatchObject({ event: 'end' })
    for (const { id, data, event } of frames.slice(1, -1)) {
      expect([event, id]).toEqual([data['type'], Number.isInteger(data['seq']) ? String(data['seq']) : undefined])
    }
    const said = frames
      .filter(({ event }) => event === 'live' || event === 'text-delta')
      .map(({ data }) => data['text'])
    expect(said.join('')).toBe(Array.from({ length: 50 }, (_, at) => `word${at} `).join(''))
  })

  test('a reader that comes back has every recorded event exactly once, and 204 when there is no more', async () => {
    await using setting = await startServer({}, { agents: [speaker] })
    const runId = await started(setting, 'speaker')
    const all = durable(await allFrames(await setting.get(`/v1/runs/${runId}/events`)))
    const ids = all.map(({ id }) => Number(id))

    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
    for (const id of ids) {
      const rest = await setting.get(`/v1/runs/${runId}/events`, { headers: { 'last-event-id': String(id) } })
      const isLast = id === ids.at(-1)
      expect([id, rest.status]).toEqual([id, isLast ? 204 : 200])
      if (!isLast) expect(durable(await allFrames(rest))).toEqual(all.filter((frame) => Number(frame.id) > id))
      else await rest.text()
    }
    const page = await setting.get(`/v1/runs/${runId}/events?limit=1000`, { headers: { accept: 'application/json' } })
    expect(((await page.json()) as { events: object[] }).events).toEqual(all.map(({ data }) => data))
  })

  test.each(['abc', '-1', '1.5', '99999', ''])('the place %j is refused', async (place) => {
    await using setting = await startServer()
    const runId = await started(setting, 'greeter')

    const answer = await setting.get(`/v1/runs/${runId}/events`, { headers: { 'last-event-id': place || ' x' } })
    expect(answer.status).toBe(400)
    expect((await setting.get(`/v1/runs/${runId}/events?after=${place || 'x'}`)).status).toBe(400)
  })

  test('slim deltas carry their node and their text, types choose, live=0 leaves out what is not recorded', async () => {
    await using setting = await startServer({}, { agents: [speaker] })
    const start = (query: string) =>
      setting
        .post(`/v1/runs?${query}`, { agent: 'speaker', input: 'Hi' }, { headers: { accept: 'text/event-stream' } })
        .then(allFrames)

    const deltas = (await start('slim=1')).filter(({ event }) => event === 'text-delta')
    expect(deltas.length).toBeGreaterThan(0)
    for (const { data } of deltas) expect(Object.keys(data)).toEqual(['type', 'nodeId', 'text'])
    const recorded = await start('live=0')
    expect(recorded.filter(({ event }) => event === 'text-delta')).toEqual([])
    const runId = String(recorded[0]?.data['runId'])
    const chosen = await allFrames(await setting.get(`/v1/runs/${runId}/events?types=run-start,run-end`))
    expect(chosen.map(({ event }) => event)).toEqual(['hello', 'run-start', 'run-end', 'end'])
  })

  test('a start gives the fields of its answer, where the query asks for them', async () => {
    const output = z.object({ title: z.string(), lines: z.array(z.string()) })
    const writer = agent({
      name: 'writer',
      instructions: '',
      output,
      model: scriptedModel(() => JSON.stringify({ title: 'QUIC', lines: ['a'] })),
    })
    await using setting = await startServer({}, { agents: [writer] })
    const start = (query: string) =>
      setting
        .post(`/v1/runs?${query}`, { agent: 'writer', input: 'Hi' }, { headers: { accept: 'text/event-stream' } })
        .then(allFrames)

    const fields = (await start('fields=1')).filter(({ event }) => event === 'field')
    expect(fields.map(({ data }) => [data['field'], data['value']])).toContainEqual(['title', 'QUIC'])
    const few = await start('fields=1&types=field,run-end')
    expect(new Set(few.map(({ event }) => event))).toEqual(new Set(['hello', 'field', 'run-end', 'end']))
    expect(few.find(({ event }) => event === 'run-end')?.data).toMatchObject({
      status: 'completed',
      outcome: { status: 'completed' },
    })
  })

  test('a principal and the server have only so many streams', async () => {
    const { slow, go } = patient()
    await using setting = await startServer({ limits: { streamsPerPrincipal: 2, streams: 3 } }, { agents: [slow] })
    const runId = await started(setting, 'patient')
    const other = await setting.tokenFor({ id: 'other', scopes: ['read', 'admin'], sees: 'all' })
    const open = (token?: string) => setting.get(`/v1/runs/${runId}/events`, token === undefined ? {} : { token })

    const streams = [await open(), await open()]
    expect((await open()).status).toBe(429)
    streams.push(await open(other))
    expect((await open(other)).status).toBe(429)
    const last = streams.pop()
    await last?.body?.cancel()
    await expect.poll(async () => (await open(other)).status).toBe(200)
    go()
    for (const stream of streams) expect((await allFrames(stream)).at(-1)?.event).toBe('end')
  })

  test('tokens of one maker have only so many together, and those of others keep theirs', async () => {
    const { slow, go } = patient()
    await using setting = await startServer({ limits: { streamsPerPrincipal: 1 } }, { agents: [slow] })
    const ann = await setting.tokenFor({ id: 'ann', scopes: ['start', 'read', 'admin'] })
    const bob = await setting.tokenFor({ id: 'bob', scopes: ['start', 'read'] })
    const runOf = (token: string) => started(setting, 'patient', { token })
    const [anns, bobs] = [await runOf(ann), await runOf(bob)]
    const open = (token: string, runId: string) => setting.get(`/v1/runs/${runId}/events`, { token })
    const made = async (id: string) => {
      const principal = { id, scopes: ['read'], sees: ['ann'] }
      return ((await (await setting.post('/v1/tokens', { principal }, { token: ann })).json()) as { token: string })
        .token
    }

    const streams = [await open(bob, bobs)]
    for (let n = 0; n < 8; n++) streams.push(await open(await made(`made-${n}`), anns))
    expect(streams.map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => 200))
    const refused = [await open(await made('made-9'), anns), await open(ann, anns)]
    expect(refused.map(({ status }) => status)).toEqual([429, 429])
    expect(await refused[0]?.text()).toContain('Tokens of one maker have 8 open streams and waits')
    // Tokens that the operator made do not count together: its own is one of them.
    expect((await open(setting.token, anns)).status).toBe(200)
    go()
    for (const stream of streams) expect((await allFrames(stream)).at(-1)?.event).toBe('end')
  })

  test('a server that closes tells streams to move, and the rest is told elsewhere', async () => {
    const { slow, go } = patient()
    const setting = await startServer({}, { agents: [slow] })
    const runId = await started(setting, 'patient')
    const stream = await setting.get(`/v1/runs/${runId}/events`)
    const frames = allFrames(stream)

    await setting.server.close()

    expect((await frames).at(-1)?.event).toBe('moved')
    await expect(setting.get('/health')).rejects.toThrow()
    go()
    await setting[Symbol.asyncDispose]()
  })

  test('a client that is gone leaves nothing behind', async () => {
    const { slow, go } = patient()
    await using setting = await startServer({ limits: { streamsPerPrincipal: 1 } }, { agents: [slow] })
    const runId = await started(setting, 'patient')

    for (let count = 0; count < 5; count++) {
      const abort = new AbortController()
      const open = () => setting.get(`/v1/runs/${runId}/events`, { signal: abort.signal })
      let stream = await open()
      // The server hears of the last one's end in its own time.
      for (let tries = 0; stream.status === 429 && tries < 100; tries++) stream = await open()
      expect(stream.status).toBe(200)
      for await (const { event } of framesOf(stream)) if (event === 'hello') break
      abort.abort()
    }
    go()
  })
})

test('a reader that comes late gets all that a node has said so far, once, and then the rest', async () => {
  const parts = { go: () => {} }
  const gate = new Promise<void>((resolve) => {
    parts.go = resolve
  })
  const halting = agent({
    name: 'halting',
    instructions: 'Speak.',
    model: {
      id: 'own/halting',
      async *stream(): AsyncGenerator<Part> {
        yield { type: 'text-delta', text: 'One ' }
        yield { type: 'text-delta', text: 'two ' }
        await gate
        yield { type: 'text-delta', text: 'three.' }
        yield { type: 'finish', reason: 'stop', usage: NO_USAGE }
      },
    },
  })
  await using setting = await startServer({}, { agents: [halting] })
  const runId = await started(setting, 'halting')
  const first = framesOf(await setting.get(`/v1/runs/${runId}/events`))
  for await (const { data } of first) if (String(data['text']).endsWith('two ')) break
  const { lastSeq } = (await (await setting.get(`/v1/runs/${runId}`)).json()) as { lastSeq: number }

  const late = await setting.get(`/v1/runs/${runId}/events`, { headers: { 'last-event-id': String(lastSeq) } })
  const frames: Frame[] = []
  for await (const frame of framesOf(late)) {
    frames.push(frame)
    if (frame.event === 'live') parts.go()
  }

  const said = frames.filter(({ event }) => event === 'live' || event === 'text-delta')
  expect(said.map(({ event, data }) => [event, data['text']])).toEqual([
    ['live', 'One two '],
    ['text-delta', 'three.'],
  ])
})

test('the stream of a tree goes on over its runs', async () => {
  await using setting = await startServer()
  const first = await setting.post('/v1/runs?wait=10', { agent: 'greeter', input: 'Hi' })
  const { conversationId } = (await first.json()) as { conversationId: string }
  const stream = await setting.get(`/v1/conversations/${conversationId}/events?types=run-start,run-end`)
  const ends: string[] = []

  for await (const { event } of framesOf(stream)) {
    if (event === 'run-end') ends.push(event)
    if (event === 'run-end' && ends.length === 1) {
      await setting.post(`/v1/conversations/${conversationId}/messages`, { input: 'Again' })
    }
    if (ends.length === 2) break
  }
  expect(ends).toHaveLength(2)
})

describe('a reader that is behind', () => {
  const delta = (at: number, nodeId = 'n') =>
    ({ type: 'text-delta', seq: 1 + at / 100_000, nodeId, text: 'x'.repeat(1_000) }) as never

  test('holds a bounded amount, gets joined deltas, and loses nothing', async () => {
    const parts = { unsent: 0, isStuck: true }
    const written: Buffer[] = []
    const sink = {
      get unsent() {
        return parts.unsent
      },
      write: (bytes: Buffer) => {
        written.push(bytes)
        if (parts.isStuck) parts.unsent += bytes.length
        return !parts.isStuck
      },
      end: () => undefined,
      destroy: () => undefined,
    }
    const dirty = new Set<StreamReader>()
    const reader = new StreamReader(sink, { soon: (one) => dirty.add(one) }, () => undefined)
    let taken = 0
    const items = {
      next: async () =>
        taken < 2_000 ? { value: delta(taken++), done: false as const } : { value: undefined, done: true as const },
    }
    const done = reader.run({ hello: {}, items, isSlim: true, end: {} })
    await new Promise((resolve) => setTimeout(resolve, 50))

    expect(taken).toBeLessThan(400)
    expect(reader.behindSince).toBeTypeOf('number')
    parts.isStuck = false
    parts.unsent = 0
    reader.drained()
    await done
    const text = Buffer.concat(written).toString()
    const said = [...text.matchAll(/"text":"(x+)"/g)].map(([, words = '']) => words.length)
    expect(said.reduce((sum, length) => sum + length, 0)).toBe(2_000_000)
    expect(said.length).toBeLessThan(500)
  })

  test('frames are made once for all readers', () => {
    const event = delta(1)
    expect(itemFrame(event, false)).toBe(itemFrame(event, false))
    expect(itemFrame(event, true)).toBe(itemFrame(event, true))
    expect(itemFrame(event, true)).not.toBe(itemFrame(event, false))
  })
})

test('a reader that takes nothing does not slow down the others', async () => {
  const loud = agent({
    name: 'loud',
    instructions: 'Speak.',
    model: scriptedModel(() => ({ chunks: Array.from({ length: 400 }, () => 'x'.repeat(50_000)) })),
  })
  await using setting = await startServer({}, { agents: [loud] })
  const { hostname, port, host } = new URL(setting.server.url)
  const runId = await started(setting, 'loud')
  const silent = connect({ host: hostname, port: Number(port) }).on('error', () => undefined)
  silent.write(
    `GET /v1/runs/${runId}/events HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${setting.token}\r\n\r\n`,
  )
  silent.pause()

  const frames = await allFrames(await setting.get(`/v1/runs/${runId}/events`))

  expect(frames.at(-1)?.event).toBe('end')
  silent.destroy()
})
