import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { Place, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

test('log -f in a second process shows what a model says while it says it, and ends with the run', async () => {
  const place = new Place()
  const { ids } = await place.startRuns(['talker'])
  const follower = place.legate(['log', '-f', ids[0] ?? ''])

  await follower.says('┊ Once upon a time')
  const before = follower.stdout
  place.open()
  const { code, stdout, stderr } = await follower.ended

  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(before).not.toContain('日本語')
  expect(stdout).toMatch(/┊ 日本語 e\u0301nd\.\n.*talker +completed \(/)
  expect(stdout.split('Once upon').length).toBe(2)
  expect(stdout).not.toMatch(/[^\P{Cc}\n]/u)
})

test('events and deltas of another process come within half a second', async () => {
  const place = new Place()
  const { ids } = await place.startRuns(['talker', 'lead'])
  const followers = ids.map((id) => place.legate(['log', '-f', '--json', id]))
  const [talks, leads] = followers
  await talks?.says('"text-delta"')
  await leads?.says('"delegation-start"')
  const seen: number[] = []
  const opened = Date.now()
  writeFileSync(path.join(place.folder, 'gate'), '')

  await Promise.all(
    followers.map(async (follower) => {
      await follower.says('"run-end"')
      seen.push(Date.now() - eventAt(follower.stdout, 'run-end'))
      expect((await follower.ended).code).toBe(0)
    }),
  )

  const delta = lines(talks?.stdout ?? '').find(({ type }) => type === 'text-delta')
  expect(delta).toMatchObject({ text: expect.stringContaining('Once upon') })
  // Half a second is the promise; a machine that is busy with other tests gets as much again.
  expect(Math.max(...seen)).toBeLessThan(1_000)
  expect(Date.now() - opened).toBeLessThan(5_000)
  const numbers = lines(leads?.stdout ?? '').map(({ seq }) => Number(seq))
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
})

function lines(text: string): Record<string, unknown>[] {
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

function eventAt(text: string, type: string): number {
  return Number(lines(text).find((event) => event['type'] === type)?.['at'])
}
