import { expect, test } from 'vitest'
import { DeliveryQueue, type Queued } from './queue.ts'

const PLACES = { inAll: 4, perOwner: 2, perHook: 2 }

function entry(id: string, more: Partial<Queued> = {}): Queued {
  return { id, hookId: 'hook', owner: 'ann', rootId: 'tree', seq: 1, nextAt: 0, bytes: 10, ...more }
}

function taken(queue: DeliveryQueue, now = 0): string[] {
  const ids: string[] = []
  for (let next = queue.take(now); next !== undefined; next = queue.take(now)) ids.push(next.id)
  return ids
}

test('of one webhook and one tree the oldest is sent alone, and the next one when that is over', () => {
  const queue = new DeliveryQueue(PLACES)
  const [third, first, second] = [entry('c', { seq: 3 }), entry('a', { seq: 1 }), entry('b', { seq: 2 })]
  for (const one of [third, first, second]) queue.put(one)

  expect(taken(queue)).toEqual(['a'])
  queue.done(first, 50)
  expect(taken(queue, 49)).toEqual([])
  expect(taken(queue, 50)).toEqual(['a'])
  queue.done(first, null)
  expect(taken(queue)).toEqual(['b'])
  expect(queue.size).toBe(2)
})

test('owners take turns, and no owner has more than its part of the places', () => {
  const queue = new DeliveryQueue(PLACES)
  for (let n = 0; n < 20; n++) queue.put(entry(`ann-${n}`, { rootId: `t${n}`, hookId: `h${n}` }))
  queue.put(entry('bob-1', { owner: 'bob' }))

  expect(taken(queue)).toEqual(['ann-0', 'bob-1', 'ann-1'])
  queue.done(entry('ann-0', { rootId: 't0', hookId: 'h0' }), null)
  queue.put(entry('bob-2', { owner: 'bob', rootId: 'other' }))
  expect(taken(queue)).toEqual(['bob-2', 'ann-2'])
  queue.put(entry('cleo', { owner: 'cleo' }))
  expect(taken(queue)).toEqual([])
  queue.done(entry('bob-2', { owner: 'bob', rootId: 'other' }), null)
  expect(taken(queue)).toEqual(['cleo'])
})

test('trees of one owner take turns too', () => {
  const queue = new DeliveryQueue({ ...PLACES, perOwner: 1 })
  for (const id of ['a1', 'a2']) queue.put(entry(id, { rootId: 'a', seq: Number(id[1]) }))
  queue.put(entry('b1', { rootId: 'b' }))

  expect(taken(queue)).toEqual(['a1'])
  queue.done(entry('a1', { rootId: 'a' }), null)
  expect(taken(queue)).toEqual(['b1'])
  queue.done(entry('b1', { rootId: 'b' }), null)
  expect(taken(queue)).toEqual(['a2'])
})

test('what waits of an owner is counted, and its fullest webhook is known', () => {
  const queue = new DeliveryQueue(PLACES)
  queue.put(entry('a'))
  for (const id of ['b', 'c']) queue.put(entry(id, { hookId: 'full', rootId: id }))
  queue.put(entry('c', { hookId: 'full', rootId: 'c' }))

  expect(queue.count('ann')).toMatchObject({ rows: 3, bytes: 30 })
  expect(queue.count('bob')).toMatchObject({ rows: 0, bytes: 0 })
  expect(queue.fullest('ann')).toBe('full')
  queue.dropHook('ann', 'full')
  expect(queue.count('ann')).toMatchObject({ rows: 1, bytes: 10 })
  expect(taken(queue)).toEqual(['a'])
})

test('rows that a round has not seen are forgotten, but for one that is being sent', () => {
  const queue = new DeliveryQueue(PLACES)
  for (const id of ['a', 'b', 'c']) queue.put(entry(id, { rootId: id }))
  const first = queue.take(0)
  queue.beginRound()
  queue.put(entry('b', { rootId: 'b' }))
  queue.endRound()

  expect(first?.id).toBe('a')
  expect(queue.size).toBe(2)
  expect(taken(queue)).toEqual(['b'])
  queue.done(entry('a', { rootId: 'a' }), null)
  queue.done(entry('b', { rootId: 'b' }), null)
  expect(queue.size).toBe(0)
})

test('a parked webhook waits, and others go on', () => {
  const queue = new DeliveryQueue(PLACES)
  queue.put(entry('a', { hookId: 'parked' }))
  queue.put(entry('b', { hookId: 'open' }))
  queue.park(['parked'])

  expect(taken(queue)).toEqual(['b'])
  expect(queue.hookIds).toEqual(['open'])
  queue.park([])
  expect(taken(queue)).toEqual(['a'])
})
