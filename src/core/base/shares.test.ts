import { expect, test } from 'vitest'
import { Shares } from './shares.ts'

test('each id has its share, and what it gives back can be held again', () => {
  const shares = new Shares({ each: 2, inAll: 100 })
  const first = shares.hold(['ann'])
  shares.hold(['ann'])
  expect(shares.full(['ann'])).toEqual({ whose: 'own', count: 2 })
  expect(shares.full(['bob'])).toBeUndefined()
  first()
  first()
  expect(shares.full(['ann'])).toBeUndefined()
  shares.hold(['ann'])
  expect(shares.full(['ann'])).toEqual({ whose: 'own', count: 2 })
})

test('whoever makes many ids has eight shares with all of them, and others keep theirs', () => {
  const shares = new Shares({ each: 2, inAll: 100 })
  const held = Array.from({ length: 16 }, (_, n) => shares.hold([`made-${n}`, 'ann']))
  expect(shares.full(['made-17', 'ann'])).toEqual({ whose: 'maker', count: 16 })
  expect(shares.full(['ann'])).toEqual({ whose: 'maker', count: 16 })
  expect(shares.full(['bob'])).toBeUndefined()
  held[0]?.()
  expect(shares.full(['ann'])).toBeUndefined()
})

test('all together have a bound too', () => {
  const shares = new Shares({ each: 2, inAll: 3 })
  for (const id of ['ann', 'bob', 'cat']) shares.hold([id])
  expect(shares.full(['dan'])).toEqual({ whose: 'all', count: 3 })
})
