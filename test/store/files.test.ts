import { readdirSync, readlinkSync } from 'node:fs'
import path from 'node:path'
import type { Store } from 'legate'
import { jsonStore } from 'legate/store/json'
import { sqliteStore } from 'legate/store/sqlite'
import { describe, expect, test } from 'vitest'
import { treeCommit } from '../../src/testing/store-rows.ts'
import { tempFolder } from '../support/temp-folder.ts'

/** Times twenty stores: a thousand with LEGATE_FULL=1. */
const ROUNDS = process.env['LEGATE_FULL'] === '1' ? 50 : 8

/** Files of this folder that this process holds open. */
function heldIn(folder: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((name) => {
    try {
      const file = readlinkSync(`/proc/self/fd/${name}`)
      return file.startsWith(folder) ? [path.basename(file)] : []
    } catch {
      return []
    }
  })
}

const KINDS: [string, (folder: string, name: string) => Store][] = [
  ['sqlite', (folder, name) => sqliteStore(path.join(folder, `${name}.db`))],
  ['json', (folder, name) => jsonStore(path.join(folder, name))],
]

describe.skipIf(process.platform !== 'linux').each(KINDS)('a %s store', (_, open) => {
  test('holds no file when close() has resolved', async () => {
    const folder = tempFolder()
    const store = open(folder, 'a')
    await store.commit(treeCommit('root-a'))
    expect(store.conversation('root-a')).toBeDefined()
    expect(heldIn(folder).length).toBeGreaterThan(0)

    await store.close()

    expect(heldIn(folder)).toEqual([])
  })

  test('opened and closed again and again leaves nothing open', { timeout: 120_000 }, async () => {
    const folder = tempFolder()
    for (let round = 0; round < ROUNDS; round++) {
      const several = Array.from({ length: 20 }, (__, n) => open(folder, `s${n}`))
      expect(several[0]?.conversation('none')).toBeUndefined()
      await Promise.all(several.map((store) => store.close()))
    }

    expect(heldIn(folder)).toEqual([])
  })
})
