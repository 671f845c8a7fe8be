import { expect, test } from 'vitest'
import { Allowance } from './clock.ts'

test('so much at once, then so much with each second, and never more at once than at first', () => {
  const allowance = new Allowance(3, 2)
  const taken = (now: number) => [1, 2, 3, 4, 5].filter(() => allowance.take(1, now)).length

  expect([taken(0), taken(0), taken(1_000), taken(60_000), taken(0)]).toEqual([3, 0, 2, 3, 0])
})
