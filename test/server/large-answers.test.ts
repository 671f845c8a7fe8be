import { availableParallelism, loadavg } from 'node:os'
import type { TreeData } from 'legate/rows'
import { memoryStore } from 'legate/store/memory'
import { sqliteStore } from 'legate/store/sqlite'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { skipUnlessBuilt } from '../support/program.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { startServer } from './support/server.ts'
import { longestWait, type SmallServer, startSmall } from './support/small-server.ts'

const isFull = process.env['LEGATE_FULL'] !== undefined
/** A server with a small heap, and a conversation of which a dozen copies are larger than the heap. */
const { heap, bytes } = isFull ? { heap: 1_024, bytes: 9_500_000 } : { heap: 256, bytes: 1_500_000 }
const MESSAGES = 26
const READS = 12
/** A second, and on a machine with more to do than it has processors as much longer as each of its programs gets less. */
const tooLong = () => 1_000 * Math.max(1, (loadavg()[0] ?? 0) / availableParallelism())

interface Place {
  readonly token: string
  readonly conversationId: string
  readonly runId: string
  readonly nodeId: string
}

async function largeTalk(server: SmallServer): Promise<Place> {
  const token = await server.tokenFor({ id: 'eve', scopes: ['start', 'read', 'export'] })
  const input = 'x'.repeat(bytes)
  const start = { agent: 'greeter', input, conversationKey: 'talk' }
  const first = await server.json<Place>('/v1/runs?wait=30', { token, body: start })
  const at = `/v1/conversations/${first.conversationId}/messages?wait=30`
  let last = first
  for (let n = 1; n < MESSAGES; n++) last = await server.json<Place>(at, { token, body: { input } })
  const { nodes } = await server.json<{ nodes: { id: string; kind: string }[] }>(`/v1/runs/${last.runId}/nodes`, {
    token,
  })
  const nodeId = nodes.find(({ kind }) => kind === 'agent_message')?.id ?? ''
  return { token, conversationId: first.conversationId, runId: last.runId, nodeId }
}

const ROUTES: readonly ((place: Place) => string)[] = [
  ({ conversationId }) => `/v1/trees/${conversationId}`,
  ({ conversationId }) => `/v1/trees/${conversationId}/events?limit=1000`,
  () => '/v1/trees?limit=200',
  ({ conversationId }) => `/v1/conversations/${conversationId}/messages?limit=1000`,
  ({ conversationId }) => `/v1/conversations/${conversationId}/transcript?limitTurns=1000`,
  ({ conversationId }) => `/v1/conversations/${conversationId}/graph?turns=1000`,
  ({ conversationId }) => `/v1/conversations/${conversationId}/tree?limitTurns=1000`,
  ({ conversationId }) => `/v1/conversations/${conversationId}/export`,
  ({ runId }) => `/v1/runs/${runId}/timeline`,
  ({ runId }) => `/v1/runs/${runId}/otlp?content=true`,
  ({ nodeId }) => `/v1/nodes/${nodeId}/context`,
  ({ nodeId }) => `/v1/nodes/${nodeId}/request`,
  () => '/ai-sdk/greeter/talk/messages',
]

/** The bytes of an answer, which is not kept. */
async function sizeOf(answer: Response): Promise<number> {
  let size = 0
  for await (const part of answer.body ?? []) size += part.length
  return size
}

describe('a dozen readers of one large conversation', () => {
  beforeEach(skipUnlessBuilt)

  test('end no server, and keep no other caller waiting', async () => {
    const server = await startSmall({
      place: tempFolder(onTestFinished),
      heap,
      source: 'options = { limits: { readsPerMinute: 10_000 } }',
    })
    const place = await largeTalk(server)
    const waits: Record<string, number> = {}
    const sizes: Record<string, number> = {}

    for (const route of ROUTES) {
      const path = route(place)
      const read = async () => sizeOf(await server.request(path, { token: place.token }))
      // Other work on the machine only adds to a wait: the least of a few counts.
      for (let round = 0; round < 4 && (waits[path] === undefined || waits[path] >= tooLong()); round++) {
        const reads = Promise.all(Array.from({ length: READS }, read))
        const { ms, done } = await longestWait(server, reads).catch((error: unknown) => {
          throw new Error(`The server ended while ${path} was read: ${String(server.end)}`, { cause: error })
        })
        waits[path] = Math.min(waits[path] ?? ms, ms)
        sizes[path] = Math.max(...done)
      }
    }

    expect(server.end).toBeUndefined()
    const isStreamed = (path: string) => path.endsWith('/export')
    expect(
      Object.entries(sizes).filter(
        ([path, size]) => size > 16_000_000 && !isStreamed(path) && !path.endsWith('/request'),
      ),
    ).toEqual([])
    expect(Object.entries(waits).filter(([, ms]) => ms >= tooLong())).toEqual([])
    if (isFull) console.log(waits, sizes)
  }, 300_000)
})

interface Line {
  readonly nodeId: string
  readonly text: string
  readonly wholeBytes?: number
}

/** All pages of an answer, and the bytes of the largest. */
async function pagesOf<Answer>(read: (next: string) => Promise<Response>, nextOf: (page: Answer) => unknown) {
  const pages: Answer[] = []
  let most = 0
  for (let next: unknown = ''; typeof next === 'string' || typeof next === 'number'; ) {
    const text = await (await read(String(next))).text()
    const page = JSON.parse(text) as Answer
    most = Math.max(most, text.length)
    pages.push(page)
    next = nextOf(page)
    if (pages.length > 30) throw new Error('It has no last page.')
  }
  return { pages, most }
}

const MB = 1_000_000

describe.each(['memory', 'sqlite'] as const)('pages of a conversation of 10 MB on %s', (kind) => {
  const texts = Array.from({ length: 4 }, (_, n) => String(n).repeat(2.6 * MB))

  async function setting() {
    const store = kind === 'memory' ? memoryStore() : sqliteStore(`${tempFolder(onTestFinished)}/rows.db`)
    const server = await startServer({}, { store })
    onTestFinished(() => server[Symbol.asyncDispose]())
    const post = async (path: string, body: object) =>
      (await (await server.post(path, body)).json()) as { conversationId: string; runId: string }
    const { conversationId: id } = await post('/v1/runs?wait=30', { agent: 'greeter', input: texts[0] })
    for (const input of texts.slice(1)) await post(`/v1/conversations/${id}/messages?wait=30`, { input })
    return { id, get: (path: string) => server.get(path), post }
  }

  test('end at 8 MB, and the next ones have the rest', async () => {
    const { id, get } = await setting()
    const after = (next: string, name = 'after') => (next === '' ? '' : `&${name}=${next}`)

    const messages = await pagesOf<{ messages: Line[]; next: string | null }>(
      (next) => get(`/v1/conversations/${id}/messages?limit=100${after(next, 'before')}`),
      ({ next }) => next,
    )
    const said = messages.pages.toReversed().flatMap((page) => page.messages.map(({ text }) => text))
    expect(said.filter((text) => text.length > 100)).toEqual(texts)
    const transcript = await pagesOf<{ transcript: Line[]; beforeRunId: string | null }>(
      (next) => get(`/v1/conversations/${id}/transcript?limitTurns=100${after(next, 'beforeRunId')}`),
      ({ beforeRunId }) => beforeRunId,
    )
    const lines = transcript.pages.toReversed().flatMap((page) => page.transcript.map(({ text }) => text))
    expect(lines).toEqual(said)
    const events = await pagesOf<{ events: { seq: number }[]; next: number | null }>(
      (next) => get(`/v1/trees/${id}/events?limit=1000${after(next)}`),
      ({ next }) => next,
    )
    const seqs = events.pages.flatMap((page) => page.events.map(({ seq }) => seq))
    expect(seqs).toEqual(seqs.map((_, at) => at + 1))
    const rows = await pagesOf<TreeData>(
      (next) => get(`/v1/trees/${id}?nodes=all${after(next)}`),
      ({ next }) => next,
    )
    const inputs = rows.pages.flatMap(({ nodes }) => nodes.map(({ input }) => input.content)).filter(Boolean)
    expect(inputs).toEqual(texts)
    expect(rows.pages.flatMap(({ turns }) => turns.map(({ ordinal }) => ordinal))).toEqual([0, 1, 2, 3])
    for (const { pages, most } of [messages, transcript, events, rows]) {
      expect(pages.length).toBeGreaterThan(1)
      expect(most).toBeLessThan(8.1 * MB)
    }
  }, 60_000)
})

test('a text that would fill a page goes by reference, and the result has all of it', async () => {
  await using setting = await startServer()
  const input = 'long '.repeat(1_800_000)
  const { conversationId, runId } = (await (
    await setting.post('/v1/runs?wait=30', { agent: 'greeter', input })
  ).json()) as { conversationId: string; runId: string }
  const read = async <Answer>(path: string) => (await (await setting.get(path)).json()) as Answer

  const path = `/v1/conversations/${conversationId}/messages`
  const { messages, next } = await read<{ messages: Line[]; next: string }>(path)
  expect(messages).toMatchObject([{ text: 'Hello there, friend.' }])
  const [line] = (await read<{ messages: Line[] }>(`${path}?before=${next}`)).messages
  expect(line).toMatchObject({ text: `${input.slice(0, 2_000)}…`, wholeBytes: input.length })
  const { nodes } = await read<{ nodes: { id: string; input: { content: string }; output: { bytes: number } }[] }>(
    `/v1/runs/${runId}/nodes`,
  )
  expect(nodes[0]).toMatchObject({ id: line?.nodeId, input: { content: line?.text }, output: { bytes: input.length } })
  expect(await read(`/v1/nodes/${line?.nodeId}`)).toMatchObject({ wholeBytes: input.length })
  expect(await (await setting.get(`/v1/results/${line?.nodeId}`)).text()).toBe(input)
})
