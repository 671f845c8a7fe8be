import { fieldParser } from 'legate/fields'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { everyCut, type ParserOptions, read } from './support.ts'

const person = z.object({ name: z.string(), age: z.number(), tags: z.array(z.string()) })

/** Every way to cut the text gives the same; returns that. */
function readEveryWay(text: string, options: ParserOptions = {}): ReturnType<typeof read> {
  const whole = read([text], options)
  for (const pieces of everyCut(text)) expect(read(pieces, options)).toEqual(whole)
  return whole
}

describe('structured streaming, for every split of the text', () => {
  test('deltas, then done; children before parents; the root last', () => {
    const { lines, state } = readEveryWay('{"name":"John","age":25,"tags":["a","b"]}', { schema: person })

    expect(state).toBe('complete')
    expect(lines).toEqual([
      'open $ undefined',
      'delta name John',
      'done name "John"',
      'done age 25',
      'open tags undefined',
      'delta tags[0] a',
      'done tags[0] "a"',
      'delta tags[1] b',
      'done tags[1] "b"',
      'done tags ["a","b"]',
      'done $ {"name":"John","age":25,"tags":["a","b"]}',
    ])
  })

  test('no text is lost around other values', () => {
    const parser = fieldParser()
    const deltas = ['{"age": 30, "bio": "hel', 'lo wor', 'ld"}'].map((piece) =>
      parser.push(piece).flatMap(({ delta }) => delta ?? []),
    )

    expect(deltas).toEqual([['hel'], ['lo wor'], ['ld']])
  })

  test.each([
    ["Here's the JSON: "],
    ['Note [1] see {x} and [2, {"y": 1}]: '],
    ['```json\n'],
    ['{"unrelated": {"name": "no"}, "list": [1]} and then '],
    ['{ not json [ '],
    ['<think>{"name": "draft"'.concat('}</think>')],
    ['<THINKING>{"name": "draft"</Thinking>'],
    ['{"other": "a string with { and [ and \\" in it"} '],
    ['{"other": "never closed, '],
    ['Use {"name": ...} and {name} as in {"name" = 1}. '],
    ['{/* a comment'],
    ['{{{{{{'],
    ['[[[['],
    ['a < b, <b>bold</b>, <think '],
    ['I never write `<think>` or `</think>`. '],
  ])('%j before the document makes no event', (preamble) => {
    const text = '{"name":"x","age":1,"tags":[]}'
    const plain = readEveryWay(text, { schema: person })
    const { lines, value, state } = readEveryWay(`${preamble}${text}\n\`\`\`\nDone {"name":"later"}!`, {
      schema: person,
    })

    expect({ lines, value, state }).toEqual({ lines: plain.lines, value: plain.value, state: 'complete' })
  })

  test('the document is recognised from its first known key on, not at its end', () => {
    const parser = fieldParser({ schema: person })

    expect(parser.push('Here it is: {"na')).toEqual([])
    expect(parser.push('me":"J').map(({ kind, dot }) => [kind, dot])).toEqual([
      ['open', ''],
      ['delta', 'name'],
    ])
  })

  test('what stands in a think block is not the answer', () => {
    const schema = z.object({ a: z.number() })

    expect(readEveryWay('<think>{"a":0}</think>{"a":2}', { schema }).lines).toEqual([
      'open $ undefined',
      'done a 2',
      'done $ {"a":2}',
    ])
  })

  test('a number is told once, when it is over; keys may come in any order', () => {
    const { lines } = readEveryWay('{"age":1.5,"tags":[-2e3],"name":"x"}', { schema: person })

    expect(lines.filter((line) => /^done (?:age|tags\[0\])/.test(line))).toEqual(['done age 1.5', 'done tags[0] -2000'])
  })

  test.each(['1.5', '-2e3', 'true', 'false', 'null'])('%s comes whole, with the character behind it', (word) => {
    const parser = fieldParser()
    parser.push('{"x":"",')

    expect([...`"a":${word}`].flatMap((sign) => [...parser.push(sign)])).toEqual([])
    expect(parser.value).toEqual({ x: '' })
    expect(parser.push(',')).toMatchObject([{ kind: 'done', dot: 'a', value: JSON.parse(word) }])
  })

  test('an item is done before the next begins', () => {
    const { lines } = readEveryWay('{"items":[{"t":"a"},{"t":"b"}]}')

    expect(lines.indexOf('done items[0] {"t":"a"}')).toBeLessThan(lines.indexOf('open items[1] undefined'))
  })

  test('a path in every form', () => {
    const events = fieldParser().push('{"items":[0,1,2,{"t":"x","a/b~c":[[7]]}]}')
    const forms = events
      .filter(({ kind }) => kind === 'done')
      .map(({ path, dot, slash, wildcard, indexes }) => ({ path, dot, slash, wildcard, indexes }))

    expect(forms).toContainEqual({
      path: ['items', 3, 't'],
      dot: 'items[3].t',
      slash: '/items/3/t',
      wildcard: 'items[*].t',
      indexes: [3],
    })
    expect(forms).toContainEqual({
      path: ['items', 3, 'a/b~c', 0, 0],
      dot: 'items[3]["a/b~c"][0][0]',
      slash: '/items/3/a~1b~0c/0/0',
      wildcard: 'items[*]["a/b~c"][*][*]',
      indexes: [3, 0, 0],
    })
  })

  test('what JSON5 adds', () => {
    const text = `{ // a comment
      unquoted: 'single "quoted"', $id_1: +1, half: .5, five: 5., hex: 0xFF, /* block * / */ "raw": "two
lines\tand a tab", 'escapes': 'it\\'s \\x41\\v\\0 \\
continued', trailing: [1, 2,], }`
    const { value, state } = readEveryWay(text)

    expect(state).toBe('complete')
    expect(value).toEqual({
      unquoted: 'single "quoted"',
      $id_1: 1,
      half: 0.5,
      five: 5,
      hex: 255,
      raw: 'two\nlines\tand a tab',
      escapes: "it's A\v\0 continued",
      trailing: [1, 2],
    })
  })

  test('characters are never split', () => {
    const text = '{"a":"caf\\u00e9 \\ud83d\\ude00 😀 \\n\\\\ end"}'
    const pieces = everyCut(text)
    for (const cut of pieces) {
      const parser = fieldParser()
      const deltas = [...cut.flatMap((piece) => parser.push(piece)), ...parser.end()].flatMap(
        ({ delta }) => delta ?? [],
      )

      expect(deltas.filter((delta) => !delta.isWellFormed())).toEqual([])
      expect(deltas.join('')).toBe('café 😀 😀 \n\\ end')
    }
  })

  test('half of a pair that stays alone becomes a mark, also at the end', () => {
    const { value } = readEveryWay('{"a":"\\ud83d","b":"x\\ude00y","c":"\ud83d-","d":"\\ud83d\\ud83d\\ude00"}')

    expect(value).toEqual({ a: '\ufffd', b: 'x\ufffdy', c: '\ufffd-', d: '\ufffd😀' })
  })

  test('a text that ends in the middle tells what is open, innermost first, with what is there', async () => {
    const { lines, state, value } = readEveryWay('{"name":"John","tags":["a","hel', { schema: person })

    expect(state).toBe('truncated')
    expect(value).toEqual({ name: 'John', tags: ['a', 'hel'] })
    expect(lines.slice(-5)).toEqual([
      'done tags[0] "a"',
      'delta tags[1] hel',
      'truncated tags[1] "hel"',
      'truncated tags ["a","hel"]',
      'truncated $ {"name":"John","tags":["a","hel"]}',
    ])
    const parser = fieldParser({ schema: person })
    parser.push('{"name":"Jo')
    parser.end()
    expect(await parser.result()).toMatchObject({ ok: false, reason: 'truncated', partial: { name: 'Jo' } })
  })

  test('what was begun of a number or literal is no value', () => {
    expect(readEveryWay('{"a":1,"b":12').value).toEqual({ a: 1 })
    expect(readEveryWay('{"a":1,"b":tr').value).toEqual({ a: 1 })
    expect(readEveryWay('{"a":[-').lines).toEqual([
      'open $ undefined',
      'open a undefined',
      'truncated a[0] undefined',
      'truncated a []',
      'truncated $ {"a":[]}',
    ])
    expect(readEveryWay('{"a":').lines).toEqual(['open $ undefined', 'truncated $ {}'])
    expect(readEveryWay('{"a":n').state).toBe('truncated')
    expect(readEveryWay('{"a":...').state).toBe('absent')
    expect(readEveryWay('{"a": }', { schema: z.object({ a: z.number() }) }).state).toBe('absent')
    expect(readEveryWay('{"a": } {"a": 1}', { schema: z.object({ a: z.number() }) }).state).toBe('complete')
  })

  test('null, empty and false values are done like any other', () => {
    const { lines } = readEveryWay('{"a":null,"b":"","c":0,"d":false,"e":[],"f":{}}')

    expect(lines.filter((line) => line.startsWith('done'))).toEqual([
      'done a null',
      'done b ""',
      'done c 0',
      'done d false',
      'done e []',
      'done f {}',
      'done $ {"a":null,"b":"","c":0,"d":false,"e":[],"f":{}}',
    ])
  })

  test('two parsers of one text do not touch each other', () => {
    const [first, second] = [fieldParser(), fieldParser()]
    const text = '{"a":"one","b":[1,2]}'
    const seen: unknown[][] = [[], []]
    for (const char of text) {
      seen[0]?.push(...first.push(char).map(({ kind, dot }) => [kind, dot]))
      seen[1]?.push(...second.push(char).map(({ kind, dot }) => [kind, dot]))
    }

    expect(seen[0]).toEqual(seen[1])
    expect(first.value).not.toBe(second.value)
  })

  test('keys of the language are plain keys', () => {
    const { value } = readEveryWay('{"__proto__":{"x":1},"constructor":"c","toString":[1],"hasOwnProperty":0}')

    expect(Object.keys(Object(value))).toEqual(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect({}).not.toHaveProperty('x')
  })

  test('a list or a single value may be the document', () => {
    expect(readEveryWay('[{"t":1},2]').lines).toEqual([
      'open $ undefined',
      'open [0] undefined',
      'done [0].t 1',
      'done [0] {"t":1}',
      'done [1] 2',
      'done $ [{"t":1},2]',
    ])
    expect(readEveryWay('42', { schema: z.number() }).lines).toEqual(['done $ 42'])
    expect(readEveryWay('The answer:\n42\nas asked', { schema: z.number() }).lines).toEqual(['done $ 42'])
    expect(readEveryWay('"a \\"b\\""', { schema: z.string() }).value).toBe('a "b"')
    expect(readEveryWay('```\ntrue\n```', { schema: z.boolean() }).value).toBe(true)
    expect(readEveryWay('null').lines).toEqual(['done $ null'])
  })

  test('a number in a sentence is not the document', () => {
    expect(readEveryWay('1. First\n2 apples\n-7\n', { schema: z.number() }).value).toBe(-7)
    expect(readEveryWay('"Well", she said, 7', { schema: z.string() }).state).toBe('absent')
  })

  test('what is too deep, too long or too much ends in a named state', () => {
    expect(readEveryWay('{"a":{"b":{"c":1}}}', { limits: { maxDepth: 2 } }).state).toBe('limit')
    expect(readEveryWay('{"a":"0123456789"}', { limits: { maxLength: 10 } }).state).toBe('limit')
    expect(readEveryWay('[1,2,3]', { limits: { maxValues: 3 } }).state).toBe('limit')
    expect(readEveryWay('[1,2]', { limits: { maxValues: 3 } }).state).toBe('complete')
  })
})

describe('several candidates', () => {
  const schema = z.object({ a: z.number() })

  test('the first that is recognised is the stream and the value', () => {
    const { value, lines } = readEveryWay('{"a":1} or rather {"a":2}', { schema })

    expect(value).toEqual({ a: 1 })
    expect(lines).toEqual(['open $ undefined', 'done a 1', 'done $ {"a":1}'])
  })

  test('a document inside of what was none is found', () => {
    expect(readEveryWay('{see {"a":3}}', { schema }).value).toEqual({ a: 3 })
    expect(readEveryWay('{"x": [1, {"a":4} oops', { schema }).value).toEqual({ a: 4 })
    expect(readEveryWay('{"x": "it\'s {"a":5}"', { schema }).value).toEqual({ a: 5 })
    expect(readEveryWay('{x: {"a":6', { schema }).state).toBe('truncated')
  })

  test('a candidate that was recognised and breaks is told as broken, with what was read', async () => {
    const parser = fieldParser({ schema })
    const events = parser.push('{"a":1,"b":[1 2]} {"a":9}')
    parser.end()

    expect(events.filter(({ kind }) => kind === 'truncated').map(({ dot }) => dot)).toEqual(['b', ''])
    expect(await parser.result()).toEqual({
      ok: false,
      reason: 'broken',
      issues: [{ path: [], message: 'It is not JSON at character 15: expected "," or "]"' }],
      partial: { a: 1, b: [1] },
      notes: [],
    })
  })

  test('an empty object or list is the document where the schema allows one', () => {
    expect(readEveryWay('So: {}', { schema: z.object({ a: z.number().optional() }) }).value).toEqual({})
    expect(readEveryWay('So: {} {"a":1}', { schema }).value).toEqual({ a: 1 })
    expect(readEveryWay('[]', { schema: z.array(z.number()) }).value).toEqual([])
  })

  test('a list is recognised by its first item of the right kind', () => {
    const rows = z.array(z.object({ id: z.number() }))

    expect(readEveryWay('[1] [{"x":1}] [{"id":7}]', { schema: rows }).value).toEqual([{ id: 7 }])
    expect(readEveryWay('See [2]. ["a","b"]', { schema: z.array(z.string()) }).value).toEqual(['a', 'b'])
  })

  test('without a schema a number in brackets inside a sentence is no document', () => {
    expect(readEveryWay('As [1] says: {"b":2}').value).toEqual({ b: 2 })
    expect(readEveryWay('The list: [1]').value).toEqual([1])
    expect(readEveryWay('There are\n[1, 2] of them').value).toEqual([1, 2])
    expect(readEveryWay('It is {"any":"thing"}, they say').value).toEqual({ any: 'thing' })
  })

  test('references, branches and maps of a schema are looked through', () => {
    const union = z.union([z.object({ cat: z.string() }), z.object({ dog: z.string() })])
    const tree = z.object({
      label: z.string(),
      get kids() {
        return z.array(tree)
      },
    })

    expect(readEveryWay('{"fish":1} {"dog":"rex"}', { schema: union }).value).toEqual({ dog: 'rex' })
    expect(readEveryWay('{"x":1} {"kids":[],"label":"l"}', { schema: tree }).value).toEqual({ kids: [], label: 'l' })
    expect(readEveryWay('{"x":1}', { schema: z.record(z.string(), z.number()) }).value).toEqual({ x: 1 })
    expect(readEveryWay('null', { schema: z.object({ a: z.number() }).nullable() }).value).toBeNull()
  })

  test.each([
    ['', 'There is no JSON of the right form in the text.'],
    ['no JSON here', 'There is no JSON of the right form in the text.'],
    ['<think>{"a":1}', 'The text ends inside a block of thoughts, before any answer.'],
    ['{"b":1,"c":2}', 'There is JSON in the text, but none of its keys is known: "b", "c".'],
  ])('%j has none, and says why', async (text, message) => {
    const parser = fieldParser({ schema })
    expect([...parser.push(text), ...parser.end()]).toEqual([])

    expect(parser.state).toBe('absent')
    expect(parser.value).toBeUndefined()
    expect(await parser.result()).toMatchObject({ ok: false, reason: 'absent', issues: [{ path: [], message }] })
  })
})

describe('what is worth knowing', () => {
  test('of doubled keys the last counts, and its events say so', () => {
    const { value, lines, notes } = readEveryWay('{"a":"one","b":1,"a":{"c":2}}')

    expect(value).toEqual({ a: { c: 2 }, b: 1 })
    expect(lines).toContain('done a.c 2 again')
    expect(lines).toContain('done a {"c":2} again')
    expect(notes).toEqual(['a: stands more than once in its object; the last one counts'])
  })

  test('doubled keys are seen in objects that look like the one before', () => {
    const { value, notes } = readEveryWay('[{"a":1,"b":2},{"a":1,"b":2,"a":3},{"b":1,"b":2},{"a":1,"a":2,"b":3}]')

    expect(value).toEqual([{ a: 1, b: 2 }, { a: 3, b: 2 }, { b: 2 }, { a: 2, b: 3 }])
    expect(notes.map((note) => note.slice(0, 3))).toEqual(['1.a', '2.b', '3.a'])
  })

  test('numbers that JSON cannot keep are null, and long ones are pointed out', () => {
    const { value, notes } = readEveryWay('[NaN, -Infinity, 1e400, 12345678901234567890, 1e25, 9007199254740991, 0.1]')

    expect(value).toEqual([null, null, null, 12345678901234567000, 1e25, 9007199254740991, 0.1])
    expect(notes.map((note) => note.slice(0, 20))).toEqual([
      '0: is not a finite n',
      '1: is not a finite n',
      '2: is not a finite n',
      '3: has more digits t',
    ])
  })

  test('literals of Python, zeros in front and paths of Windows are read as they are meant', () => {
    const { value, notes } = readEveryWay('{"a":True,"b":None,"c":007,"d":"C:\\users\\new"}')

    expect(value).toEqual({ a: true, b: null, c: 7, d: 'C:\\users\new' })
    expect(notes).toEqual(['d: has an escape that is none; it was kept as written'])
  })
})

describe('calls out of order', () => {
  test('text after the end is refused, the end may be told twice', () => {
    const parser = fieldParser()
    parser.push('{"a":1')
    expect(parser.end()).toHaveLength(2 + 1)
    expect(parser.end()).toEqual([])

    expect(() => parser.push('}')).toThrow('push() came after end()')
  })

  test('bytes are refused', () => {
    const parser = fieldParser()

    // @ts-expect-error only text can be pushed
    expect(() => parser.push(new Uint8Array(1))).toThrow('push() takes text: decode bytes before.')
  })

  test('there is no result before the end', async () => {
    const parser = fieldParser()
    parser.push('{"a":')

    await expect(parser.result()).rejects.toThrow('call end() before result()')
  })
})
