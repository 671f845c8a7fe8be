import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Place, program, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

describe('legate copy', () => {
  const place = new Place(afterAll)
  beforeAll(async () => {
    if (existsSync(program)) await place.endedRuns('lead', 'lead', 'failing')
  })
  const to = (name: string) => path.join(place.folder, name)
  const copy = (from: string, target: string, ...more: string[]) =>
    place.run(['copy', '--from', from, '--to', target, ...more])

  test('copies a file, says what was there, and the copy is audited', async () => {
    const first = await copy(place.store, to('copy.db'))
    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(first.stdout).toMatch(/^3 trees copied to .*copy\.db, \d+ nodes in all, 0 there already\.\n$/)
    expect((await copy(place.store, to('copy.db'))).stdout).toMatch(/^0 trees copied to .* 3 there already\.\n$/)
    const audits = [place.store, to('copy.db')].map((store) => place.run(['audit', '--verify', '--store', store]))
    const [before, after] = await Promise.all(audits)
    expect(after?.stdout).toBe(before?.stdout)
    expect(after?.stdout).toContain('no errors')
  })

  test('makes a store of JSON where the name ends in a slash, and reads it', async () => {
    expect((await copy(place.store, `${to('sessions')}/`)).code).toBe(0)
    expect(existsSync(path.join(to('sessions'), 'store.journal'))).toBe(true)
    const back = await copy(to('sessions'), to('back.db'), '--json')
    expect(JSON.parse(back.stdout)).toMatchObject({ copied: 3, there: 0, refused: [] })
    const restored = await place.run(['restored', '--store', to('sessions')])
    expect(restored).toMatchObject({ code: 0, stdout: expect.stringMatching(/^No run is open: nothing is in doubt\./) })
  })

  test('says in one line what is wrong', async () => {
    mkdirSync(to('empty'))
    const wrong: [string[], RegExp, number][] = [
      [['copy', '--from', place.store], /missing --to/, 2],
      [['copy', '--from', place.store, '--to', place.store], /name the same store/, 2],
      [['copy', '--from', to('nothing.db'), '--to', to('x.db')], /There is no store at /, 1],
      [['copy', '--from', to('empty'), '--to', to('x.db')], /a folder without a store of JSON/, 1],
      [['copy', '--from', place.store, '--to', to('gone/x.db')], /There is no folder .*gone for the store /, 1],
      [['copy', '--from', place.store, '--to', `${to('gone/x')}/`], /There is no folder .*gone for the store /, 1],
      [['copy', '--from', 'mysql://x', '--to', to('x.db')], /postgres:\/\//, 2],
    ]
    for (const [args, words, code] of wrong) {
      const ended = await place.run(args)
      expect(ended).toMatchObject({ code, stderr: expect.stringMatching(words) })
      expect(ended.stderr.trim()).not.toContain('\n')
    }
    expect(existsSync(to('x.db'))).toBe(false)
    expect(existsSync(to('gone'))).toBe(false)
  })
})
