import { expect, test } from 'vitest'
import { ChangeTicker } from './ticker.ts'

test('who begins to wait while the store is asked hears of what came before', async () => {
  let asked: () => void = () => undefined
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve
  })
  let answer: (cursor: string) => void = () => undefined
  const ticker = new ChangeTicker(() => {
    asked()
    return new Promise((resolve) => {
      answer = resolve
    })
  })
  const first = new Promise<void>((resolve) => ticker.onNext('1', resolve))
  await isAsked
  answer('2')
  // It has read up to 1 before the change, and only now comes to wait.
  const late = new Promise<void>((resolve) => ticker.onNext('1', resolve))
  await first
  const timer = setInterval(() => answer('2'), 20)

  await late
  clearInterval(timer)
  let hasHeard = false
  const leave = ticker.onNext('2', () => {
    hasHeard = true
  })
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(hasHeard).toBe(false)
  leave()
})
