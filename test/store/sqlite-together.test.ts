import { join } from 'node:path'
import { sqliteStore } from 'legate/store/sqlite'
import { beforeEach, expect, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { treeCommit } from '../../src/testing/conformance/store-rows.ts'
import { tempFolder } from '../support/temp-folder.ts'

let path: string
let store: LocalStore

beforeEach(() => {
  path = join(tempFolder(), 'legate.db')
  store = sqliteStore(path)
  return () => store.close()
})

/** The trees that another process sees. */
function seen(): string[] {
  const other = connectTo(path, 'read')
  try {
    return other.all('SELECT root_id FROM commits WHERE root_id IS NOT NULL').map(([id]) => String(id))
  } finally {
    other.close()
  }
}

test('commits share one transaction: others see all of them or none', () => {
  const meanwhile: string[][] = []

  store.together?.(() => {
    for (const id of ['a', 'b', 'c']) {
      store.commit(treeCommit(id))
      meanwhile.push(seen())
    }
  })

  expect({ meanwhile, seen: seen() }).toEqual({ meanwhile: [[], [], []], seen: ['a', 'b', 'c'] })
})

test('a commit that is refused takes no other down, and the next commit sees those before it', () => {
  let refusal: unknown

  store.together?.(() => {
    store.commit(treeCommit('a'))
    try {
      store.commit(treeCommit('a'))
    } catch (error) {
      refusal = error
    }
    expect(store.conversation('a')?.id).toBe('a')
    store.commit(treeCommit('b'))
  })

  expect(String(refusal)).toMatch(/is there already/)
  expect(seen()).toEqual(['a', 'b'])
})

test('where the transaction cannot be stored, nothing of it is there, and the same commits can be made again', () => {
  const work = () => {
    for (const id of ['a', 'b']) store.commit(treeCommit(id))
  }
  const fail = () => {
    work()
    throw new Error('the disk went away')
  }

  expect(() => store.together?.(fail)).toThrow('the disk went away')

  expect({ seen: seen(), row: store.conversation('a') }).toEqual({ seen: [], row: undefined })
  store.together?.(work)
  expect(seen()).toEqual(['a', 'b'])
})

test('while another process holds the lock they wait, and nothing else of this process does', async () => {
  const other = connectTo(path)
  other.exec('BEGIN IMMEDIATE')
  let ticks = 0
  const clock = setInterval(() => ticks++, 5)
  setTimeout(() => other.exec('COMMIT'), 200)

  await store.together?.(() => store.commit(treeCommit('a')))

  clearInterval(clock)
  other.close()
  expect(seen()).toEqual(['a'])
  expect(ticks).toBeGreaterThan(3)
})
