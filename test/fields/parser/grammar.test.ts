import { describe, expect, test } from 'vitest'
import { cutBy, read } from './support.ts'

/** Texts that are JSON. */
const accepted = [
  ...['[]', '{}', '[ ]', ' {\n} ', '[[]]', '[[],[[]]]', '{"a":{}}', '[{}]', '[1,2]', '[1 , 2]\r\n\t'],
  ...['null', 'true', 'false', '0', '-0', '1', '-1', '10', '1.5', '0.1', '-0.0', '1e5', '1E5', '1e+5', '1e-5', '0e0'],
  ...[
    '1.5e3',
    '123456789',
    '12345678901234567890',
    '1e400',
    '-1e400',
    '1e-400',
    '0.1e1',
    '5e-324',
    '1.7976931348623157e308',
  ],
  ...['0.30000000000000004', '9007199254740993', '0.000001', '123456789012345', '1234567890123456', '1.23456789012345'],
  ...['""', '"a"', '"\\u0041"', '"\\uD83D\\uDE00"', '"\\ud83d"', '"\\ude00\\ud83d"', '"\\""', '"\\\\"', '"\\/"', '"/"'],
  ...[
    '"\\b\\f\\n\\r\\t"',
    '"\u007f"',
    '"\u2028\u2029"',
    '"\ufeff"',
    '"é"',
    '"😀"',
    '"\ud83d"',
    '"\\u0000"',
    '"//"',
    '"/* */"',
  ],
  ...[
    '{"":0}',
    '{"a":1,"a":2}',
    '{"\\u0061":1,"a":2}',
    '{"__proto__":[]}',
    '{"a b":1}',
    '{"a":null}',
    '["a",1,true,null]',
  ],
  ...[
    '{"a":"b" , "c" : [ ] }',
    '[[[[[[[[[[]]]]]]]]]]',
    '\t[1]\n',
    '[-1,-1.5]',
    '[1,[2,[3]]]',
    '["]","}"]',
    '{"}":"{"}',
  ],
]

/** Texts that are not, each wrong in one way. */
const refused = [
  ...[
    '',
    ' ',
    '[',
    ']',
    '{',
    '}',
    '[1',
    '{"a":1',
    '[1}',
    '{"a":1]',
    '[1,]',
    '[,1]',
    '[,]',
    '[1,,2]',
    '{,}',
    '{"a":1,}',
  ],
  ...['{"a"}', '{"a":}', '{:1}', '{"a" 1}', '{"a":1 "b":2}', '{a:1}', "{'a':1}", '{1:1}', '{null:1}', '{"a":1,,"b":2}'],
  ...['{"a":"b":"c"}', '["a" "b"]', '[1 2]', '["a":1]', '{"a",1}', '[1]]', '{}}', '[1]x', '1 2', '[][]', 'null null'],
  ...[
    '+1',
    '01',
    '-01',
    '.5',
    '5.',
    '-',
    '-.5',
    '1.',
    '1.e5',
    '1e',
    '1e+',
    '1e1.5',
    '0x1F',
    '1_000',
    '1a',
    '--1',
    '1-',
  ],
  ...['Infinity', '-Infinity', 'NaN', '-NaN', 'undefined', 'True', 'None', 'nul', 'nulll', 'tru', 'TRUE', 'truefalse'],
  ...[
    "'a'",
    '"',
    '"a',
    '"\\',
    '"\\"',
    '"\n"',
    '"\t"',
    '"\u0000"',
    '"\\x41"',
    '"\\a"',
    '"\\\'"',
    '"\\u00"',
    '"\\u00g0"',
  ],
  ...['"\\U0041"', '"\\v"', '"\\0"', '"\\\n"', '["a\nb"]', '// c\n1', '/* c */1', '1// c', '[1/*c*/]', '# c\n1', '/'],
  ...[
    '\u00a0[]',
    '[\u2028]',
    '\u000b1',
    '[\u000c]',
    '<think></think>{}',
    '```\n{}\n```',
    'x{}',
    '{}.',
    'abc',
    '*',
    '(1)',
  ],
]

/** Text and value where JSON5 and what models write go further. */
const tolerated: readonly (readonly [string, unknown])[] = [
  ['[1,]', [1]],
  ['{"a":1,}', { a: 1 }],
  ['{a:1,$b:2,_c:3,d9:4,é:5,a-b:6,"q":7}', { a: 1, $b: 2, _c: 3, d9: 4, é: 5, 'a-b': 6, q: 7 }],
  ['{1:1,null:2}', { 1: 1, null: 2 }],
  ["{'a':'b\"c'}", { a: 'b"c' }],
  ['[+1,.5,5.,-.5,0x1F,-0XfF,01,1e3]', [1, 0.5, 5, -0.5, 31, -255, 1, 1000]],
  ['[NaN,Infinity,-Infinity,+Infinity]', [null, null, null, null]],
  ['[True,False,None]', [true, false, null]],
  ['["a\nb\tc"]', ['a\nb\tc']],
  ['["\\x41\\v\\0\\a\\\'"]', ["A\v\0a'"]],
  ['["one \\\ntwo \\\r\nthree"]', ['one two three']],
  ['["\\u00zz \\x4"]', ['\\u00zz \\x4']],
  ['[1// one\n,2/* two */,/**/3/***/]', [1, 2, 3]],
  ['{/* a */"a"/* b */:/* c */1// d\n}', { a: 1 }],
  ['{\u00a0"a"\u2003:\u30001\ufeff}', { a: 1 }],
  ['{"a":1}}}]', { a: 1 }],
  ['{"a":1,"a":2}', { a: 2 }],
]

/** Once such an object is recognised by its key "a", it stays broken. */
const broken = [
  ...[
    '{"a":[1,,2]}',
    '{"a":[,]}',
    '{"a":1 "b":2}',
    '{"a":1,,}',
    '{"a":[1 2]}',
    '{"a":[}',
    '{"a":{]',
    '{"a":[1}',
    '{"a":1]',
  ],
  ...[
    '{"a":"b":"c"}',
    '{"a":[1:2]}',
    '{"a":[tru]}',
    '{"a":[1_000]}',
    '{"a":[0x]}',
    '{"a":[1.2.3]}',
    '{"a":[--1]}',
    '{"a":[(]}',
  ],
  ...[
    '{"a":1 / 2}',
    '{"a":[#]}',
    '{"a":[1e]}',
    '{"a":"x"y}',
    '{"a":"x",:}',
    '{"a":"x","b" 1}',
    '{"a":"x",=}',
    '{"a":[`x`]}',
  ],
]

describe('strict', () => {
  test.each(accepted)('takes %j', (text) => {
    for (const pieces of [[text], cutBy(text, 1)]) {
      const { state, value } = read(pieces, { strict: true })

      expect(state).toBe('complete')
      expect(JSON.stringify(value)).toBe(textOf(text))
    }
  })

  test.each(refused)('refuses %j', (text) => {
    expect(() => JSON.parse(text)).toThrow()
    for (const pieces of [[text], cutBy(text, 1)]) {
      expect(read(pieces, { strict: true }).state).not.toBe('complete')
    }
  })

  test('a negative zero stays one', () => {
    expect(read(['[-0,-0.0]'], { strict: true }).value).toEqual([-0, -0])
  })
})

describe('tolerant', () => {
  test.each(accepted.filter((text) => /^\s*[[{]/.test(text)))('takes what is JSON: %j', (text) => {
    const { state, value } = read(cutBy(text, 1))

    expect(state).toBe('complete')
    expect(JSON.stringify(value)).toBe(textOf(text))
  })

  test.each(tolerated)('reads %j', (text, value) => {
    for (const pieces of [[text], cutBy(text, 1)]) expect(read(pieces)).toMatchObject({ state: 'complete', value })
  })

  test.each(broken)('calls %j broken', (text) => {
    for (const pieces of [[text], cutBy(text, 1)]) expect(read(pieces).state).toBe('broken')
  })
})

/** The same document as the language reads and writes it; halves of characters are marks here. */
function textOf(text: string): string {
  return JSON.stringify(JSON.parse(text), (_, value) => (typeof value === 'string' ? value.toWellFormed() : value))
}
