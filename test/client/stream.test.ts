import type { RunEvent } from 'legate'
import { agent } from 'legate'
import { ClientError, connect, emptyTree, nodesOf, reduceTree, type TreeState, treeOf } from 'legate/client'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { DurableEvent } from '../../src/core/graph/event.ts'
import { callsThenSays } from '../support/agents.ts'
import { Chance } from '../support/chance.ts'
import { openRuntime } from '../support/reading.ts'
import { eventsOf, localStore } from '../support/rows.ts'
import { Broadcast, frame, type Happening, HELLO, TestServer } from './stream-server.ts'

const SEEDS = process.env['LEGATE_FULL'] === '1' ? 2_000 : 50
const AT_A_TIME = 25

/** The recorded events of a run with children, and the words of its messages as they were spoken. */
async function recorded() {
  const child = agent({
    name: 'child',
    instructions: '',
    input: z.object({}),
    model: scriptedModel(() => 'I have looked, and found: nothing – 零 😀.'),
  })
  const host = agent({
    name: 'host',
    instructions: '',
    model: scriptedModel(callsThenSays('child', 'child')),
    subagents: { child },
  })
  const runtime = openRuntime()
  const { conversationId, result } = runtime.run(host, 'go')
  await result
  const events = eventsOf(localStore(runtime), conversationId)
  return { events, script: events.flatMap(spoken), conversationId, tree: await runtime.tree(conversationId) }
}

/** A message comes in pieces before it is there. */
function spoken(event: DurableEvent): Happening[] {
  if (event.type !== 'message' || event.role !== 'agent' || typeof event.content !== 'string') return [{ event }]
  const pieces = event.content.match(/.{1,5}/gsu) ?? []
  return [...pieces.map((text) => ({ nodeId: event.nodeId ?? '', text })), { event }]
}

async function serving(handler: ConstructorParameters<typeof TestServer>[0]) {
  const server = new TestServer(handler)
  const url = await server.listen()
  onTestFinished(() => server.close())
  return { server, url, client: connect({ url, token: 'lgt_1_secret' }) }
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

const isStored = (event: RunEvent): event is DurableEvent => 'seq' in event && Number.isInteger(event.seq)

describe('a stream that is cut at any byte, again and again', () => {
  test('gives each stored event once, in order, and the texts as they were spoken', async () => {
    const recording = await recorded()
    const played: { readonly cuts: number; readonly heard: number }[] = []
    // They mostly wait to come back: many at a time.
    for (let from = 1; from <= SEEDS; from += AT_A_TIME) {
      const seeds = Array.from({ length: Math.min(AT_A_TIME, SEEDS - from + 1) }, (_, at) => from + at)
      played.push(...(await Promise.all(seeds.map((seed) => readCut(recording, seed)))))
    }

    expect(played.reduce((sum, { cuts }) => sum + cuts, 0)).toBeGreaterThan(SEEDS)
    expect(played.reduce((sum, { heard }) => sum + heard, 0)).toBeGreaterThan(SEEDS / 5)
  }, 600_000)

  /** Reads the recording over a connection that this seed cuts. Gives how many cuts there were, and how many whole texts. */
  async function readCut({ events, script, conversationId, tree }: Awaited<ReturnType<typeof recorded>>, seed: number) {
    const broadcast = new Broadcast(script, new Chance(seed))
    const { client } = await serving(broadcast.handler)
    const played = broadcast.play()
    let heard = 0
    let state = emptyTree()
    const stored: DurableEvent[] = []
    for await (const event of client.events('run-1')) {
      if (isStored(event)) stored.push(event)
      if (isStored(event) && event.type === 'message') heard += checkSpoken(state, event, seed)
      state = reduceTree(state, event)
    }
    await played

    expect({ seed, stored }).toEqual({ seed, stored: events })
    expect(treeOf(state, conversationId)).toEqual(tree)
    return { cuts: broadcast.cuts, heard }
  }

  /** Whatever was heard of a message before it was there is the beginning of it. Gives 1 where it was all of it. */
  function checkSpoken(state: TreeState, event: Extract<DurableEvent, { type: 'message' }>, seed: number): number {
    const text = nodesOf(state, event.runId).find(({ nodeId }) => nodeId === event.nodeId)?.text ?? ''
    expect({ seed, isBeginning: String(event.content).startsWith(text) }).toEqual({ seed, isBeginning: true })
    return event.role === 'agent' && text !== '' && text === event.content ? 1 : 0
  }

  test('gives states to who follows a conversation: the last one is the tree', async () => {
    const { script, conversationId, tree } = await recorded()
    const broadcast = new Broadcast(script, new Chance(7))
    const { client, server } = await serving(broadcast.handler)
    const played = broadcast.play()
    const states = await all(client.follow(conversationId))
    await played

    expect(states.length).toBeGreaterThan(1)
    expect(treeOf(states.at(-1) ?? emptyTree(), conversationId)).toEqual(tree)
    expect(new Set(server.asked.map(({ path }) => path))).toEqual(
      new Set([`/v1/conversations/${conversationId}/events`]),
    )
  })
})

describe('a stream', () => {
  const note = (seq: number) => frame('warning', { type: 'warning', seq, message: `m${seq}` }, seq)
  const seqs = (events: readonly RunEvent[]) => events.map((event) => ('seq' in event ? event.seq : undefined))

  test('names the last id when it comes back, its token each time, and what was asked for', async () => {
    let connections = 0
    const { client, server } = await serving((_, response) => {
      response.writeHead(200)
      if (++connections === 1) response.write(HELLO + note(5) + note(6), () => response.destroy())
      else response.end(note(7) + frame('end', {}))
    })

    expect(seqs(await all(client.events('r/1', { after: 4, types: ['warning', 'run-end'] })))).toEqual([5, 6, 7])
    expect(server.asked.map(({ path }) => path)).toEqual(Array(2).fill('/v1/runs/r%2F1/events?types=warning%2Crun-end'))
    expect(server.asked.map(({ headers }) => headers['last-event-id'])).toEqual(['4', '6'])
    expect(server.asked.map(({ headers }) => headers.authorization)).toEqual(Array(2).fill('Bearer lgt_1_secret'))
    expect(server.asked.map(({ headers }) => headers.accept)).toEqual(Array(2).fill('text/event-stream'))
  })

  test('takes its place from the first frame where that has one', async () => {
    let connections = 0
    const { client, server } = await serving((_, response) => {
      response.writeHead(200)
      if (++connections === 1) response.write(`retry: 1\n${frame('hello', {}, 'place-1')}`, () => response.destroy())
      else response.end(frame('change', { rootId: 'r' }, 'place-2') + frame('end', {}))
    })

    expect(await all(client.feed())).toEqual([{ type: 'change', data: { rootId: 'r' }, cursor: 'place-2' }])
    expect(server.asked.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'place-1'])
  })

  test.each(['moved', 'slow', 'closed', 'problem'])(
    'gives an event whose frame had not ended when the last word came: %s',
    async (word) => {
      let connections = 0
      const { client, server } = await serving((_, response) => {
        response.writeHead(200)
        if (++connections === 1) response.end(`retry: 1\n\n${note(1)}${note(2).slice(0, -1)}${frame(word, {})}`)
        else response.end(note(2) + note(3) + frame('end', {}))
      })

      expect(seqs(await all(client.events('r')))).toEqual([1, 2, 3])
      expect(server.asked.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '1'])
    },
  )

  test.each(['moved', 'slow', 'closed'])(
    'comes back at once after %s, and more slowly when that is all it hears',
    async (word) => {
      const waits: number[] = []
      let connections = 0
      const { client } = await serving((_, response) => {
        connections++
        const isLate = connections > 3
        response.writeHead(200)
        response.end(`retry: 40\n${isLate ? note(1) + frame('end', {}) : frame(word, {})}`)
      })
      const onReconnect = ({ waitMs }: { readonly waitMs: number }) => waits.push(waitMs)
      let heard = 0
      const onConnect = () => heard++

      expect(seqs(await all(client.events('r', { onReconnect, onConnect })))).toEqual([1])
      expect(heard).toBe(connections)
      expect(waits).toHaveLength(3)
      expect(waits[0]).toBeLessThanOrEqual(250)
      expect(waits[1]).toBeGreaterThanOrEqual(40)
      expect(waits[2]).toBeGreaterThanOrEqual(80)
    },
  )

  test('waits twice as long after each try that fails, as the server says it, and never as long as another', async () => {
    const waits: number[] = []
    let connections = 0
    const { client } = await serving((_, response) => {
      connections++
      if (connections === 1) response.writeHead(200).write('retry: 8\n\n', () => response.destroy())
      else if (connections < 6) response.destroy()
      else response.writeHead(204).end()
    })

    await all(client.events('r', { onReconnect: ({ waitMs }) => waits.push(waitMs) }))

    expect(waits).toHaveLength(5)
    for (const [at, wait] of waits.entries()) {
      expect(wait).toBeGreaterThanOrEqual(4 * 2 ** at)
      expect(wait).toBeLessThanOrEqual(8 * 2 ** at)
    }
  })

  test('waits as long as Retry-After says', async () => {
    let connections = 0
    const { client } = await serving((_, response) => {
      if (++connections === 1) response.writeHead(429, { 'retry-after': '1' }).end('{}')
      else response.writeHead(204).end()
    })
    const start = Date.now()

    expect(await all(client.events('r'))).toEqual([])
    expect(Date.now() - start).toBeGreaterThanOrEqual(990)
  })

  test.each([400, 401, 403, 404, 409, 410])(
    'is an error when the answer is %i: another try would not help',
    async (status) => {
      const problem = { title: 'No', detail: 'Not this one.', code: 'not_found', advice: 'Check the id.' }
      const { client, server } = await serving((_, response) => {
        response.writeHead(status, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem))
      })

      await expect(all(client.events('r'))).rejects.toMatchObject({
        status,
        code: 'not_found',
        advice: 'Check the id.',
      })
      expect(server.asked).toHaveLength(1)
    },
  )

  test('is an error when no server is there at first, and when none comes back in time', async () => {
    const { client, server } = await serving((_, response) => {
      response.writeHead(200).write(`retry: 5\n\n${note(1)}`, () => response.destroy())
    })
    const events = client.events('r', { giveUpAfterMs: 200 })
    expect((await events.next()).value).toMatchObject({ seq: 1 })
    await server.close()

    await expect(events.next()).rejects.toThrow(ClientError)
    await expect(all(client.events('r'))).rejects.toMatchObject({ status: 0, code: 'unreachable' })
  })

  test('leaves a connection that says nothing', async () => {
    let connections = 0
    const { client } = await serving((_, response) => {
      response.writeHead(200)
      if (++connections === 1) response.write(HELLO)
      else response.end(frame('end', {}))
    })

    await all(client.events('r', { silenceMs: 100 }))
    expect(connections).toBe(2)
  })

  test('ends when it is aborted: while it reads, and while it waits to come back', async () => {
    const closed: boolean[] = []
    const { client } = await serving((_, response) => {
      response.on('close', () => closed.push(true))
      response.writeHead(200).write(HELLO + note(1))
    })
    const reason = new Error('enough')
    const first = new AbortController()
    const events = client.events('r', { signal: first.signal })
    await events.next()
    setTimeout(() => first.abort(reason), 20)
    await expect(events.next()).rejects.toBe(reason)

    const waiting = new AbortController()
    const { client: other } = await serving((_, response) => {
      response.writeHead(503, { 'retry-after': '100' }).end()
    })
    setTimeout(() => waiting.abort(reason), 50)
    await expect(all(other.events('r', { signal: waiting.signal }))).rejects.toBe(reason)
    await expect.poll(() => closed.length).toBe(1)
  })

  test('closes its connection when its reader leaves', async () => {
    let isClosed = false
    const { client } = await serving((_, response) => {
      response.on('close', () => {
        isClosed = true
      })
      response.writeHead(200).write(note(1) + note(2))
    })
    for await (const _ of client.events('r')) break

    await expect.poll(() => isClosed).toBe(true)
  })

  test('of the feed takes up its cursor where it was, and names the trees', async () => {
    let connections = 0
    const { client, server } = await serving((_, response) => {
      response.writeHead(200)
      if (++connections === 1)
        response.write(`retry: 1\n${frame('run-end', { rootId: 'a' }, 'Q1')}`, () => response.destroy())
      else response.end(frame('approval', { rootId: 'b' }, 'Q2') + frame('end', {}))
    })

    expect(await all(client.feed({ trees: { a: 3, b: 0 } }))).toEqual([
      { type: 'run-end', data: { rootId: 'a' }, cursor: 'Q1' },
      { type: 'approval', data: { rootId: 'b' }, cursor: 'Q2' },
    ])
    expect(server.asked.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'Q1'])
    expect(decodeURIComponent(server.asked[1]?.path ?? '')).toBe('/v1/feed?tree=a:3,b:0')
  })
})

test('many streams may end by one signal, without a warning of leaks', async () => {
  const { client } = await serving((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(HELLO)
  })
  const warnings: Error[] = []
  const hear = (warning: Error) => warnings.push(warning)
  process.on('warning', hear)
  onTestFinished(() => void process.off('warning', hear))
  const stop = new AbortController()
  const readers = Array.from({ length: 24 }, () => all(client.events('run', { signal: stop.signal })).catch(() => []))
  await new Promise((resolve) => setTimeout(resolve, 200))
  stop.abort()
  await Promise.all(readers)
  expect(warnings).toEqual([])
})
