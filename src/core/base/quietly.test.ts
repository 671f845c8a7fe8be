import { expect, test } from 'vitest'
import { quietly } from './quietly.ts'

test('of equal warnings one a minute is said, with the number of the others', () => {
  const said: string[] = []
  let now = 1_000
  const warn = quietly(
    (message) => said.push(message),
    () => now,
  )
  for (let at = 0; at < 300; at++) warn(new Error('There is no scope "reed".'))
  warn(new Error('another'))
  expect(said).toEqual(['There is no scope "reed".', 'another'])
  now += 60_000
  warn(new Error('There is no scope "reed".'))
  warn(new Error('There is no scope "reed".'))
  expect(said.slice(2)).toEqual(['There is no scope "reed". (299 more of these since the last one)'])
})
