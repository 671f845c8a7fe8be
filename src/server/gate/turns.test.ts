import { expect, test } from 'vitest'
import { Turns } from './turns.ts'

const later = () => new Promise((resolve) => setTimeout(resolve, 5))

test('a turn is waited for, one after the other, and who leaves waits no more', async () => {
  const turns = new Turns(1)
  const order: string[] = []
  const first = await turns.enter('ann')
  expect(turns.enterNow('ann')).toBeUndefined()
  const left = new AbortController()
  const gone = turns.enter('ann', left.signal)
  const second = turns.enter('ann').then((pass) => {
    order.push('second')
    return pass
  })
  const third = turns.enter('ann').then((pass) => {
    order.push('third')
    return pass
  })
  ;(await turns.enter('bob'))()
  left.abort(new Error('gone'))
  await expect(gone).rejects.toThrow('gone')
  await expect(turns.enter('ann', AbortSignal.abort(new Error('late')))).rejects.toThrow('late')
  await later()
  expect(order).toEqual([])

  first()
  first()
  const pass = await second
  await later()
  expect(order).toEqual(['second'])
  pass()
  ;(await third)()

  expect(turns.isBusy('ann')).toBe(false)
})

test('too many that wait are refused', async () => {
  const turns = new Turns(1)
  const pass = await turns.enter('ann')
  const waiting = Array.from({ length: 16 }, () => turns.enter('ann'))
  await expect(turns.enter('ann')).rejects.toThrow('17 of your large requests are under way.')
  pass()
  for (const one of waiting) (await one)()
  expect(turns.isBusy('ann')).toBe(false)
})
