import { describe } from 'vitest'
import { applyEdits, decodeText, textLines } from '../../../src/core/files/edit.ts'
import { describeReach, reachOf } from '../../../src/core/files/files.ts'
import { isName, readFilePath } from '../../../src/core/files/path.ts'
import { textForm } from '../../../src/core/tools/file-search.ts'
import { workspacePath } from '../../../src/core/tools/workspace-paths.ts'
import { testGrowth } from '../../support/growth.ts'

const MOST = 4_000_000
const PATH: readonly string[] = [
  '/',
  'a',
  '.',
  '../..',
  '../../',
  './',
  '//',
  '\\',
  '*',
  '?',
  '\0',
  'é',
  '😀',
  '\ud800',
  ' ',
  '~',
  '.tmp',
]
const TEXT: readonly string[] = ['a', '\n', '\r', '\r\n', ' ', '\t', 'ab', 'aab', 'é', '😀', '\u2028', '\0', '\ufeff']

describe('paths', () => {
  const read = (text: string) => {
    attempt(() => readFilePath(text))
    attempt(() => readFilePath(workspacePath(text), 'directory'))
    return isName(text)
  }

  testGrowth('a path', { read, tokens: PATH, most: MOST })
  testGrowth('a path below the workspace', { read, tokens: PATH, most: MOST, around: (body) => `/workspace/${body}` })
  testGrowth('a path from here', { read, tokens: PATH, most: MOST, around: (body) => `./${body}a` })
  testGrowth('places that rules name', {
    read: (text) => {
      const allow = text.split('\n').map((place, at) => `file.read:/workspace/${place}${at}/**`)
      return describeReach(reachOf([{ by: 'test', allow, ask: [], deny: [] }], () => true))
    },
    tokens: ['a\n', 'a/\n', '*\n', 'a/a/a\n'],
    most: 60_000,
  })
})

describe('texts of files', () => {
  const form = { startLine: 1, readLines: undefined, withLineNumbers: true, withHeader: true, mostBytes: 50_000 }

  testGrowth('a file', {
    read: (text) => [textLines(text), attempt(() => decodeText(Buffer.from(text), '/a'))],
    tokens: TEXT,
    most: MOST * 4,
  })
  testGrowth('a page of a file', {
    read: (text) => textForm(text, { ...form, startLine: 3 }),
    tokens: TEXT,
    most: MOST * 4,
  })
  testGrowth('an edit', {
    read: (text) => [
      attempt(() => applyEdits(text, [{ oldText: 'a', newText: 'b', replaceAll: true }], '/a')),
      attempt(() => applyEdits(text, [{ oldText: 'aab\n', newText: '', replaceAll: true }], '/a')),
    ],
    tokens: TEXT,
    most: MOST,
  })
  testGrowth('an edit of a long text', {
    read: (text) => [
      attempt(() => applyEdits(`${text}${text}c`, [{ oldText: `${text}b`, newText: '' }], '/a')),
      attempt(() => applyEdits(`${text}${text}c`, [{ oldText: `b${text}`, newText: '' }], '/a')),
    ],
    tokens: TEXT,
    most: MOST,
  })
})

function attempt(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return error
  }
}
