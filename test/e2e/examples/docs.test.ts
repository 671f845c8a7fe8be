import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { ERROR_CODES, STATUSES } from 'legate/rows'
import { beforeEach, describe, expect, test } from 'vitest'
import { COMMIT_KINDS } from '../../../src/core/graph/commit.ts'
import { runProgram, skipUnlessBuilt } from '../../support/program.ts'
import { snippetsIn, typeErrors } from './snippets.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const pages = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...docs()]
const snippets = pages.flatMap(snippetsIn)

describe('the code of the pages', () => {
  test('compiles as strictly as ours', { timeout: 60_000 }, () => {
    expect(typeErrors(snippets)).toEqual([])
  })

  // Code of other frameworks is marked `typescript`.
  test('begins with its imports, or nobody would check it', () => {
    const blocks = pages.flatMap((page) => matches(page, /^```ts\n(.*)$/gm).map((first) => `${page}: ${first}`))

    expect(blocks.length).toBeGreaterThan(0)
    expect(blocks.filter((block) => !block.includes(': import '))).toEqual([])
  })

  beforeEach(skipUnlessBuilt)

  // The README's has a real model: readme.test.ts runs it.
  test.each(snippets.filter(({ name }) => !name.startsWith('README')))(
    '$name runs and prints what it says',
    async ({ code, prints }) => {
      expect(prints).not.toBe('')
      expect(await runProgram(code)).toBe(prints)
    },
  )
})

test('the pages link only to what is there', () => {
  const link = /\]\((?!https?:|#|mailto:)([^)#]+)(?:#[^)]*)?\)/g
  const broken = pages.flatMap((page) =>
    matches(page, link)
      .filter((target) => !existsSync(path.resolve(root, path.dirname(page), target)))
      .map((target) => `${page}: ${target}`),
  )

  expect(broken).toEqual([])
})

test('the pages of the package link only to what the package has, but for those that are written for its sources', () => {
  const { files } = JSON.parse(text('package.json')) as { files: string[] }
  const published = [...files, 'README.md', 'LICENSE']
  const link = /\]\((?!https?:|#|mailto:)([^)#]+)(?:#[^)]*)?\)/g
  const readers = pages.filter((page) => page !== 'docs/scenarios.md' && page !== 'CONTRIBUTING.md')
  const outside = readers.flatMap((page) =>
    matches(page, link)
      .map((target) => path.posix.join(path.posix.dirname(page), target))
      .filter((target) => !published.some((one) => target === one || target.startsWith(`${one}/`)))
      .map((target) => `${page}: ${target}`),
  )

  expect(outside).toEqual([])
})

test('the pages name only files that are there', () => {
  const file = /`((?:src|test|docs|examples|scripts)\/[\w./-]+)`/g
  const missing = pages.flatMap((page) =>
    matches(page, file)
      .filter((named) => !existsSync(path.join(root, named)))
      .map((named) => `${page}: ${named}`),
  )

  expect(missing).toEqual([])
})

test('every door of the package is shown in the guide', () => {
  const doors = Object.keys(JSON.parse(text('package.json')).exports).filter((door) => !door.endsWith('.json'))
  const guide = pages.map(text).join('\n')

  expect(doors.filter((door) => !guide.includes(`'legate${door.slice(1)}'`))).toEqual([])
})

test('docs/errors.md has a row for every error code and every status', () => {
  const rows = new Set(matches('docs/errors.md', /^\| `(\w+)` \|/gm))

  expect([...ERROR_CODES, ...STATUSES].filter((code) => !rows.has(code))).toEqual([])
})

describe('ARCHITECTURE.md', () => {
  const rows = matches('ARCHITECTURE.md', /^\| [`*]+(\w+)[`*]+ \|/gm)

  test('lists the rooms there are, in the order that the architecture test holds', () => {
    const [, list = ''] = /^const rooms = \[(.*?)^\]/ms.exec(text('test/architecture.test.ts')) ?? []
    const rooms = [...list.matchAll(/'(\w+)'/g)].map(([, room = '']) => room)
    const there = rooms.filter((room) => existsSync(path.join(root, 'src/core', room)))

    expect(there.length).toBeGreaterThan(0)
    expect(rows.filter((row) => rooms.includes(row))).toEqual(there)
  })

  test('lists every kind of commit and every invariant', () => {
    const invariants = Array.from({ length: 13 }, (_, index) => `I${index + 1}`)

    expect(rows.filter((row) => (COMMIT_KINDS as readonly string[]).includes(row))).toEqual(COMMIT_KINDS)
    expect(rows.filter((row) => invariants.includes(row))).toEqual(invariants)
  })
})

describe('the table of where to change things', () => {
  const [, table = ''] = /^## Where do I change X$(.*?)^## /ms.exec(text('ARCHITECTURE.md')) ?? []
  const rows = [...table.matchAll(/^\| (.+?) \| `([\w-]+)` \| (\d+) \| (.+) \|$/gm)].map(
    ([, change, like, count, where]) => ({
      change,
      like: like ?? '',
      count: Number(count),
      files: [...(where ?? '').matchAll(/`(src\/[\w./-]+)`/g)].map(([, file = '']) => file),
    }),
  )

  test('has the twelve changes', () => {
    expect(rows.length).toBe(12)
  })

  test.each(rows)('$change: $count files, which know $like', ({ like, count, files }) => {
    const strangers = files.filter((file) => !existsSync(path.join(root, file)) || !text(file).includes(like))

    expect({ strangers, count: new Set(files).size }).toEqual({ strangers: [], count })
  })
})

test('ARCHITECTURE.md and CONTRIBUTING.md stay short', () => {
  expect(text('ARCHITECTURE.md').split('\n').length).toBeLessThanOrEqual(220)
  expect(text('CONTRIBUTING.md').split('\n').length).toBeLessThanOrEqual(90)
})

function docs(): string[] {
  return readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => path.posix.join('docs', ...file.split(path.sep)))
    .sort()
}

function matches(page: string, pattern: RegExp): string[] {
  return [...text(page).matchAll(pattern)].map(([, found = '']) => found)
}

function text(page: string): string {
  return readFileSync(path.join(root, page), 'utf8')
}
