import { mkdirSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { Place, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

test('legate doctor opens the store that is named, of any kind, and changes nothing in it', async () => {
  const place = new Place()
  await place.parkedRuns('careful', 'curious')
  await place.run(['copy', '--from', 'runs.db', '--to', 'sessions/'])
  const before = readdirSync(place.folder)
  const sqlite = await place.run(['doctor', '--store', 'runs.db'])
  const json = await place.run(['doctor', '--store', 'sessions', '--json'])

  const line = `store ${place.store}: SQLite, 2 open runs, 0 processes work on it\n`
  expect(sqlite).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(line) })
  expect(JSON.parse(json.stdout.trim().split('\n').at(-1) ?? '')).toEqual({
    store: {
      place: path.join(place.folder, 'sessions'),
      kind: 'json',
      openRuns: 2,
      processes: 0,
      problem: null,
    },
  })
  expect(readdirSync(place.folder)).toEqual(before)
  expect((await place.run(['doctor'])).stdout).not.toContain('store ')
})

test('legate doctor says why a store cannot be opened, and makes none', async () => {
  const place = new Place()
  mkdirSync(path.join(place.folder, 'empty'))
  for (const [store, why] of [
    ['nowhere.db', 'There is no store at'],
    ['empty', 'is a folder without a store of JSON'],
    ['postgres://ann:secret@127.0.0.1:1/app', 'connect ECONNREFUSED'],
  ] as const) {
    const { code, stdout } = await place.run(['doctor', '--store', store])
    expect([store, code]).toEqual([store, 1])
    expect(stdout).toMatch(/^store \S+: error: /m)
    expect(stdout).toContain(why)
    expect(stdout).not.toContain('secret')
  }
  expect(readdirSync(place.folder)).toEqual(['empty'])
})

test('what legate restored says of a store of JSON can be typed', async () => {
  const place = new Place()
  await place.parkedRuns('careful')
  await place.run(['copy', '--from', 'runs.db', '--to', 'sessions/'])
  const { stdout } = await place.run(['restored', '--store', 'sessions'])
  expect(stdout).toContain('see legate approvals --store sessions.')
  const listed = await place.run(['approvals', '--store', 'sessions'])
  expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining('--store sessions') })
})
