import { fieldParser } from 'legate/fields'
import { describe, expect, test } from 'vitest'
import { cutBy, type ParserOptions } from './support.ts'

const record = { type: 'object', properties: { a: {} } }
const list = { type: 'array', items: { type: 'object', properties: { a: {} } } }

describe('time in proportion to the length', () => {
  test('280 KB in pieces of 16 characters take less than a second, 4 times as much less than 6 times as long', {
    retry: 2,
  }, () => {
    const [small, large] = [cutBy(rows(280_000), 16), cutBy(rows(1_120_000), 16)]
    const rounds = [1, 2, 3].map(() => [secondsOf(small), secondsOf(large)] as const)
    const [fast, slow] = [Math.min(...rounds.map(([time]) => time)), Math.min(...rounds.map(([, time]) => time))]
    console.info(`parsing 280 KB: ${(fast * 1000).toFixed(0)} ms of CPU, 1,120 KB: ${(slow * 1000).toFixed(0)} ms`)

    expect(fast).toBeLessThan(1)
    expect(slow / fast).toBeLessThan(6)
  })

  test('a long string takes linear time when it is read after every piece', () => {
    const text = `{"a":"${'lorem ipsum \\n é '.repeat(20_000)}"}`

    expect(secondsOf(cutBy(text, 16))).toBeLessThan(5)
  })

  const many = process.env['LEGATE_FULL'] === '1' ? 400_000 : 40_000
  test.each<[string, string, ParserOptions]>([
    ['braces', '{'.repeat(many), {}],
    ['braces before an answer of another kind', '{'.repeat(many), { schema: list }],
    ['brackets', '['.repeat(many), { schema: list }],
    ['brackets in prose', 'x ['.repeat(many), {}],
    ['objects of unknown keys, in one another', '{"x":'.repeat(many), { schema: record }],
    ['lists and objects of unknown keys', '[{"x":'.repeat(many), { schema: list }],
    ['objects that break late', '{"x":[1,2,3,'.repeat(many / 4), { schema: record }],
    ['strings that never close', '{"x":"'.repeat(many), { schema: record }],
    ['comments that never close', '{/*'.repeat(many), {}],
    ['tags', '<think'.repeat(many), {}],
    ['backslashes', `{"a":"${'\\'.repeat(many * 2)}`, {}],
    ['halves of characters', `{"a":"${'\ud83d'.repeat(many)}`, {}],
    ['quotes', '"'.repeat(many), { schema: { type: 'string' } }],
    ['digits that are no number', `{"a":[${'9'.repeat(many)}z`, {}],
    ['digits', `{"a":${'9'.repeat(many)}}`, {}],
    ['lines that could be a number', '1 x\n'.repeat(many / 4), { schema: { type: 'number' } }],
    ['keys, all different', `{${Array.from({ length: many / 2 }, (_, at) => `"k${at}":${at}`).join(',')}}`, {}],
    ['doubled keys', `{${'"a":1,'.repeat(many / 2)}"b":2}`, {}],
    ['slashes', `{"a":1${'/'.repeat(many)}`, {}],
    ['white space', `{"a":1${' \n\u00a0'.repeat(many)}`, {}],
  ])('many %s end soon, whole and in small pieces', (_, text, options) => {
    for (const pieces of [[text], cutBy(text, 16), cutBy(text.slice(0, 20_000), 1)]) {
      expect(secondsOf(pieces, options)).toBeLessThan(5)
    }
  })
})

describe('depth', () => {
  const deep = 10_000
  const text = `${'[{"a":'.repeat(deep / 2)}1${'}]'.repeat(deep / 2)}`

  test.each([1, 7, text.length])(
    'ten thousand levels in pieces of %i characters are read where that is allowed',
    (length) => {
      const parser = fieldParser({ limits: { maxDepth: deep } })
      const events = cutBy(text, length).flatMap((piece) => [...parser.push(piece)])
      let depth = 0
      for (let value = parser.value; typeof value === 'object' && value !== null; depth++)
        [value] = Object.values(value)

      expect(parser.state).toBe('complete')
      expect(depth).toBe(deep)
      expect(events.filter(({ kind }) => kind === 'done')).toHaveLength(deep + 1)
      expect(events.find(({ kind }) => kind === 'done')?.path).toHaveLength(deep)
    },
  )

  test('and are too deep otherwise', async () => {
    const parser = fieldParser()
    parser.push(text)

    expect(await parser.result()).toMatchObject({
      ok: false,
      reason: 'limit',
      issues: [{ path: [], message: 'The JSON is nested more than 64 levels deep.' }],
    })
  })
})

/** CPU time, so that other work on the machine does not count. */
function secondsOf(pieces: readonly string[], options: ParserOptions = {}): number {
  const start = process.cpuUsage()
  const parser = fieldParser(options)
  let seen: unknown
  for (const piece of pieces) {
    parser.push(piece)
    seen = parser.value
  }
  parser.end()
  const { user, system } = process.cpuUsage(start)
  expect(seen === undefined || typeof seen === 'object').toBe(true)
  return (user + system) / 1e6
}

function rows(length: number): string {
  const row = {
    id: 1,
    name: 'A "quoted" name',
    tags: ['x', 'y'],
    price: 12.5,
    note: null,
    text: 'Lorem ipsum dolor sit amet.',
  }
  const one = JSON.stringify(row)
  return `{"rows":[${Array.from({ length: Math.ceil(length / one.length) }, () => one).join(',')}]}`
}
