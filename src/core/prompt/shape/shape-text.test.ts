import { expect, test } from 'vitest'
import { typeSchema } from './shape-text.ts'

test.each([
  ['str', { type: 'string' }],
  [' Integer ', { type: 'integer' }],
  ['float', { type: 'number' }],
  ['any', {}],
  ['None', { type: 'null' }],
  ['list', { type: 'array' }],
  ['str[]', { type: 'array', items: { type: 'string' } }],
  ['list[int]', { type: 'array', items: { type: 'integer' } }],
  ['List[list[bool]]', { type: 'array', items: { type: 'array', items: { type: 'boolean' } } }],
  ['str | int', { anyOf: [{ type: 'string' }, { type: 'integer' }] }],
  ['Optional[str]', { anyOf: [{ type: 'string' }, { type: 'null' }] }],
  ['list[str | null]', { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'null' }] } }],
  ['"a" | \'b|c\'', { enum: ['a', 'b|c'] }],
  ['Literal["x", "y,z"]', { enum: ['x', 'y,z'] }],
])('%j is a type', (text, schema) => {
  expect(typeSchema(text)).toEqual(schema)
})

test.each([
  'a|b',
  'a city in Europe',
  'list[city]',
  'str | city',
  'constructor',
  '__proto__',
  '',
  '|',
  '[]',
  'list[',
  'date',
  `${'list['.repeat(9)}str${']'.repeat(9)}`,
  'x'.repeat(100_000),
])('%j is words only a reader understands', (text) => {
  expect(typeSchema(text)).toBeUndefined()
})
