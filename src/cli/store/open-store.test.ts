import path from 'node:path'
import { expect, test } from 'vitest'
import type { Call } from '../command/command.ts'
import { storePath } from './open-store.ts'

function pathOf(env: NodeJS.ProcessEnv, store?: string): string {
  const call: Call = { words: [], values: store === undefined ? {} : { store }, env, commands: [] }
  return storePath(call)
}

test('the store is --store, then LEGATE_DB, then the state folder; never one of the working folder', () => {
  const state = { XDG_STATE_HOME: '/state' }

  expect(pathOf({ LEGATE_DB: '/b.db', ...state }, 'a.db')).toBe(path.resolve('a.db'))
  expect(pathOf({ LEGATE_DB: 'b.db', ...state })).toBe(path.resolve('b.db'))
  expect(pathOf({ LEGATE_DB: '', ...state })).toBe('/state/legate/legate.db')
  expect(pathOf({ XDG_STATE_HOME: 'not/absolute' })).toMatch(/\/\.local\/state\/legate\/legate\.db$/)
  expect(pathOf({})).toMatch(/\/\.local\/state\/legate\/legate\.db$/)
})
