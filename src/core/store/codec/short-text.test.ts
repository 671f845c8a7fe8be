import { expect, test } from 'vitest'
import { longRow, longText, sameText, shortRow, shortText } from './short-text.ts'

const ROOT = '01a1ecbc-7b2b-7379-9592-1147a21b2403'
const TURN = '01a1ecbc-7b2b-7379-9592-114703e3aa52'
const CHILD = '01a1ecbc-7b2b-78f4-a693-badd2c95ebba'
const OTHER = '01a1ecbc-7b2b-78f4-a693-badd073c58cd'

/** Parts of texts, some of which could be taken for a code. */
const PIECES = [
  ROOT,
  TURN,
  CHILD,
  OTHER,
  'times',
  'agent_message',
  'text',
  '"',
  '\\',
  '\\"',
  ',"times":',
  '{"kind":"task"',
]
const STRANGE = [
  '\x01',
  '\x07',
  '\x1f!',
  '\x7f',
  '\n',
  'ü',
  '😀',
  '\ud800',
  '',
  ':',
  '[]',
  `${ROOT}x`,
  ROOT.toUpperCase(),
]

test('every text comes back as it was, whatever is in it', () => {
  for (let seed = 1; seed <= 3_000; seed++) {
    const next = randomOf(seed)
    const text = JSON.stringify(jsonOf(next, 4))
    const ids = [ROOT, TURN, CHILD, 'short'].filter(() => next() < 0.5)
    expect(longText(shortText(text, ids), ids), `seed ${seed}`).toBe(text)
    expect(longText(sameText(text), ids)).toBe(text)
  }
})

test('a text that is not JSON comes back, too', () => {
  for (const text of [
    '',
    '"',
    '\\',
    '{"times":\t1}',
    '\x7f{}',
    ',"times":1',
    '\x01',
    '{ "kind" : "task" }',
    `"${ROOT}`,
    `${ROOT}"`,
  ]) {
    expect(longText(shortText(text, [ROOT]), [ROOT])).toBe(text)
  }
})

test('a code whose second character is a brace does not begin an object', () => {
  // No value has this code yet; a name would be the next in its object.
  expect(shortText('{"error":1}', [])).toBe('{\x1f{1}')
  expect(longText('[\x1f{\x08', [])).toBe('[,"error":,"times":')
  for (const text of ['{"error":"text","times":1}', '{"error":{"times":1}}', '{"kind":1,"error":[],"times":1}']) {
    expect(longText(shortText(text, []), [])).toBe(text)
  }
})

test('more ids than there are codes for', () => {
  const ids = Array.from({ length: 40 }, (_, at) => `01a1ecbc-7b2b-7379-9592-${String(at).padStart(4, '0')}a21b2403`)
  const text = JSON.stringify([...ids, ...ids])
  expect(longText(shortText(text, []), [])).toBe(text)
  expect(longText(shortText(text, ids), ids)).toBe(text)
})

test('a row is short: how it begins follows from its columns, and ids are written once', () => {
  const head = { letter: 'n', id: OTHER, version: 2, near: [TURN, ROOT] } as const
  const rest = `"ordinal":1,"kind":"agent_message","purpose":"answer","output":{"content":"done"},"epoch":1,"times":[1794973137712,0,6]}`
  const text = `{"node":"${OTHER}","version":2,${rest}`
  const short = shortRow(text, head)
  expect(longRow(short, head)).toBe(text)
  expect(short.length).toBeLessThan(text.length / 4)
  for (const odd of [`{"node":"${CHILD}","version":2,${rest}`, `{"version":2,"node":"${OTHER}"}`, '[]', '{}', '']) {
    expect(longRow(shortRow(odd, head), head)).toBe(odd)
  }
})

type Random = () => number

function randomOf(seed: number): Random {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function jsonOf(next: Random, depth: number): unknown {
  const kind = depth === 0 ? 0 : Math.floor(next() * 4)
  if (kind === 1) return Math.floor(next() * 1e6)
  if (kind === 2) return Array.from({ length: Math.floor(next() * 4) }, () => jsonOf(next, depth - 1))
  if (kind === 3) {
    return Object.fromEntries(
      Array.from({ length: Math.floor(next() * 4) }, () => [wordOf(next), jsonOf(next, depth - 1)]),
    )
  }
  return wordOf(next)
}

function wordOf(next: Random): string {
  const all = next() < 0.7 ? PIECES : STRANGE
  const one = () => all[Math.floor(next() * all.length)] ?? ''
  return next() < 0.6 ? one() : one() + one()
}
