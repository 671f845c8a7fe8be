import type { JSONRPCMessage } from '@modelcontextprotocol/server'
import { expect, test } from 'vitest'
import { Replays } from './replays.ts'

const said = (text: string): JSONRPCMessage => ({ jsonrpc: '2.0', method: 'say', params: { text } })

/** The texts that are sent again after an event. */
async function textsAfter(replays: Replays, id: string): Promise<string[]> {
  const texts: string[] = []
  await replays.replayEventsAfter(id, {
    send: async (_, message) => {
      texts.push(String((message as { params?: { text?: string } }).params?.text))
    },
  })
  return texts
}

test('what came after an event is sent again, in order, and nothing of another stream', async () => {
  const replays = new Replays()
  const first = await replays.storeEvent('a.b', said('1'))
  await replays.storeEvent('c', said('2'))
  const third = await replays.storeEvent('a.b', said('3'))

  expect(await textsAfter(replays, first)).toEqual(['3'])
  expect(await textsAfter(replays, third)).toEqual([])
  expect(await replays.getStreamIdForEventId(first)).toBe('a.b')
  for (const odd of ['', 'a', 'a.', '.1', 'a.-1', 'a.1e3']) {
    expect(await replays.getStreamIdForEventId(odd)).toBeUndefined()
    expect(await textsAfter(replays, odd)).toEqual([])
  }
})

test('a session keeps 64 KB, the newest', async () => {
  const replays = new Replays()
  const first = await replays.storeEvent('a', said('begin'))
  for (let number = 0; number < 1_000; number++) await replays.storeEvent('a', said(`${number} ${'x'.repeat(1_000)}`))
  const kept = await textsAfter(replays, first)

  expect(kept.length).toBeGreaterThan(50)
  expect(kept.join('').length).toBeLessThanOrEqual(65_536)
  expect(kept.at(-1)).toMatch(/^999 /)

  await replays.storeEvent('a', said('y'.repeat(100_000)))
  expect(await textsAfter(replays, first)).toEqual([])
})
