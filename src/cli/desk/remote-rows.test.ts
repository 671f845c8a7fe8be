import { expect, test } from 'vitest'
import type { LegateClient } from '../../server/client/index.ts'
import { ClientError } from '../../server/client/index.ts'
import { RemoteRows } from './remote-rows.ts'

const rootId = '01a1de88-4321-79ec-b083-0809287dc468'

/** A server with one tree, whose record has so many events. */
function server(record: { lastSeq: number; refusals?: number }) {
  const asked: string[] = []
  const request = async (path: string, { query }: { query: Record<string, unknown> }) => {
    asked.push(path)
    if ((record.refusals ?? 0) > 0) {
      record.refusals = (record.refusals ?? 0) - 1
      throw new ClientError('Too many requests.', { status: 429, code: 'too_many', retryAfterMs: 1 })
    }
    const none = { conversations: [], turns: [], nodes: [], edges: [], links: [], isCut: false, next: null }
    if (!path.endsWith('/events')) return { rootId, lastSeq: record.lastSeq, ...none }
    const after = Number(query['after'])
    const seqs = Array.from({ length: record.lastSeq - after }, (_, at) => after + 1 + at)
    return { events: seqs.map((seq) => ({ seq })), blocks: [], next: null }
  }
  return { asked, rows: new RemoteRows({ request } as unknown as LegateClient) }
}

test('the end of a record is asked for once, and again where the tree has gone on', async () => {
  const record = { lastSeq: 3 }
  const { asked, rows } = server(record)
  expect(await rows.events(rootId, 0, 500)).toHaveLength(3)
  expect(await rows.events(rootId, 3, 500)).toEqual([])
  expect(await rows.events(rootId, 2, 1)).toEqual([{ seq: 3 }])
  expect(await rows.blocks(rootId)).toEqual([])
  expect(asked).toHaveLength(1)

  record.lastSeq = 4
  await rows.tree(rootId)
  expect(await rows.events(rootId, 3, 1)).toEqual([{ seq: 4 }])
})

test('a server that is asked too often is asked again when it says so, and not for ever', async () => {
  const { asked, rows } = server({ lastSeq: 1, refusals: 3 })
  expect(await rows.events(rootId, 0, 500)).toHaveLength(1)
  expect(asked).toHaveLength(4)
  const deaf = server({ lastSeq: 1, refusals: 1_000 })
  await expect(deaf.rows.events(rootId, 0, 500)).rejects.toThrow('Too many requests.')
})
