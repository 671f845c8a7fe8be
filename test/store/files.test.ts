import { readdirSync, readlinkSync } from 'node:fs'
import path from 'node:path'
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { jsonStore } from 'legate/store/json'
import { sqliteStore } from 'legate/store/sqlite'
import { describe, expect, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { treeCommit } from '../../src/testing/conformance/store-rows.ts'
import { tempFolder } from '../support/temp-folder.ts'

/** Times twenty stores: a thousand with LEGATE_FULL=1. */
const ROUNDS = process.env['LEGATE_FULL'] === '1' ? 50 : 8

/** libsql frees files when Node collects what used them; Node's own SQLite frees them at once. */
const isFreedLater =
  process.env['LEGATE_SQLITE_DRIVER'] === 'libsql' || process.getBuiltinModule('node:sqlite') === undefined

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

const KINDS: [string, (folder: string, name: string) => LocalStore][] = [
  ['sqlite', (folder, name) => sqliteStore(path.join(folder, `${name}.db`))],
  ['json', (folder, name) => jsonStore(path.join(folder, name))],
]

describe.skipIf(process.platform !== 'linux').each(KINDS)('a %s store', (kind, open) => {
  test('holds no file when close() has resolved', async ({ skip }) => {
    skip(isFreedLater && kind === 'sqlite', 'libsql frees its files when Node collects what used them')
    const folder = tempFolder()
    const store = open(folder, 'a')
    await store.commit(treeCommit('root-a'))
    expect(store.conversation('root-a')).toBeDefined()
    expect(heldIn(folder).length).toBeGreaterThan(0)

    await store.close()

    expect(heldIn(folder)).toEqual([])
  })

  test('makes the process collect nothing when it closes', async () => {
    const forced: number[] = []
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        const { flags = 0 } = (entry as { detail?: { flags?: number } }).detail ?? {}
        if ((flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0) forced.push(flags)
      }
    })
    observer.observe({ entryTypes: ['gc'] })
    const store = open(tempFolder(), 'a')
    await store.commit(treeCommit('root-a'))

    await store.close()
    await new Promise((resolve) => setTimeout(resolve, 50))

    observer.disconnect()
    expect(forced).toEqual([])
  })

  test('opened and closed again and again leaves few files open', { timeout: 120_000 }, async () => {
    const folder = tempFolder()
    for (let round = 0; round < ROUNDS; round++) {
      const several = Array.from({ length: 20 }, (__, n) => open(folder, `s${n}`))
      expect(several[0]?.conversation('none')).toBeUndefined()
      await Promise.all(several.map((store) => store.close()))
    }

    expect(heldIn(folder).length).toBeLessThan(isFreedLater && kind === 'sqlite' ? 250 : 1)
  })
})
