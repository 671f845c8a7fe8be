import { expect, test } from 'vitest'
import { findKey, KEY_HELP, type KeyMap } from '../../web/window/keys.ts'

const made: string[] = []
const does = (name: string) => () => {
  made.push(name)
}
const page: KeyMap = { j: does('page j'), 'g i': does('inbox'), i: does('page i') }
const dialog: KeyMap = { j: does('dialog j') }

function press(key: string, before: string | null = null): string | undefined {
  made.length = 0
  findKey([page, dialog], { key, before })?.({} as KeyboardEvent)
  return made[0]
}

test('the newest component that knows a key decides', () => {
  expect([press('j'), press('i'), press('x')]).toEqual(['dialog j', 'page i', undefined])
})

test('two keys one after the other mean more than the last one alone', () => {
  expect([press('i', 'g'), press('j', 'g')]).toEqual(['inbox', 'dialog j'])
})

test('names of every object are no keys', () => {
  expect(press('constructor')).toBeUndefined()
})

test('the list of keys names each of them once', () => {
  const keys = KEY_HELP.flatMap(([, ...all]) => (all.join(' ') === 'g i' ? ['g i'] : all))
  expect(new Set(keys).size).toBe(keys.length)
})
