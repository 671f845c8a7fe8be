import { describe, expect, test } from 'vitest'
import { InputError } from '../base/error.ts'
import { AREAS, below, isName, readFilePath, temporaryName } from './path.ts'

describe('a path', () => {
  test.each<[string, readonly string[]]>([
    ['/workspace', ['workspace']],
    ['/workspace/a', ['workspace', 'a']],
    ['/workspace/a ', ['workspace', 'a ']],
    ['/workspace/.hidden', ['workspace', '.hidden']],
    ['/workspace/__proto__/constructor', ['workspace', '__proto__', 'constructor']],
    ['/ /~/$HOME/%2e%2e/．．', [' ', '~', '$HOME', '%2e%2e', '．．']],
  ])('%j is taken as it stands', (text, segments) => {
    expect(readFilePath(text)).toEqual({ text, segments })
  })

  test('a directory may end in a slash, a file may not', () => {
    expect(readFilePath('/workspace/a/', 'directory')).toEqual({ text: '/workspace/a', segments: ['workspace', 'a'] })
    expect(readFilePath('/workspace/a', 'directory')).toEqual({ text: '/workspace/a', segments: ['workspace', 'a'] })
    expect(readFilePath('/', 'directory')).toEqual({ text: '/', segments: [] })
    for (const path of ['/', '/workspace/a/', '/workspace/']) expect(() => readFilePath(path)).toThrow(InputError)
    for (const path of ['//', '/workspace//', '/workspace/a//']) {
      expect(() => readFilePath(path, 'directory')).toThrow(InputError)
    }
  })

  test.each<[unknown]>([
    [''],
    ['workspace/a'],
    ['./a'],
    [' /workspace/a'],
    ['/..'],
    ['/workspace/../a'],
    ['/workspace/a..b'],
    ['/workspace/...'],
    ['/workspace/.'],
    ['/workspace/./a'],
    ['/workspace//a'],
    ['/workspace/*'],
    ['/workspace/a?'],
    ['/workspace/a\\b'],
    ['/workspace/a\0'],
    ['/workspace/\u001f'],
    ['/workspace/\u007f'],
    ['/workspace/\u0085'],
    ['/workspace/\ud800'],
    ['/workspace/.legate.00.tmp'],
    [null],
    [undefined],
    [7],
    [['/workspace/a']],
    [{ startsWith: () => true }],
  ])('%j is not a path', (given) => {
    expect(() => readFilePath(given)).toThrow(InputError)
    expect(() => readFilePath(given)).toThrow(/^Invalid logical path: /)
    expect(() => readFilePath(given, 'directory')).toThrow(InputError)
  })

  test('has at most 64 segments, 2,048 bytes, and 255 bytes of a name', () => {
    expect(readFilePath('/x'.repeat(64)).segments).toHaveLength(64)
    expect(() => readFilePath('/x'.repeat(65))).toThrow(InputError)
    const long = `/${'x'.repeat(255)}`
    expect(readFilePath(long.repeat(8)).text).toHaveLength(2_048)
    expect(() => readFilePath(`${long.repeat(8)}/`, 'directory')).not.toThrow()
    expect(() => readFilePath(`${long.repeat(8)}/x`)).toThrow(InputError)
    expect(() => readFilePath(`${long}x`)).toThrow(InputError)
    expect(() => readFilePath(`/${'é'.repeat(127)}`)).not.toThrow()
    expect(() => readFilePath(`/${'é'.repeat(128)}`)).toThrow(InputError)
    expect(() => readFilePath(`/${`${'é'.repeat(127)}/`.repeat(8)}${'é'.repeat(4)}`)).toThrow(InputError)
  })
})

test('a name is one segment: what is found on a disk is asked the same', () => {
  for (const name of ['a', '.a', 'a.', 'a b', '.legate.x', 'x.tmp', 'a.legate.x.tmp']) {
    expect(isName(name), name).toBe(true)
  }
  for (const name of ['', '.', '..', 'a/b', '/', 'a*', temporaryName('00ff'), '.legate.a.tmp', '.legate.tmp']) {
    expect(isName(name), name).toBe(false)
  }
})

test('what lies below a path, and below the root', () => {
  expect(below({ text: '/', segments: [] }, 'workspace')).toEqual({ text: '/workspace', segments: ['workspace'] })
  expect(below({ text: '/a', segments: ['a'] }, 'b')).toEqual({ text: '/a/b', segments: ['a', 'b'] })
})

test('there are three areas, and half-written files have a name of their own', () => {
  expect(AREAS).toEqual(['userinput', 'workspace', 'internal'])
  expect(temporaryName('00ff')).toBe('.legate.00ff.tmp')
})
