import { describe, expect, test } from 'vitest'
import { type FieldValues, fieldsOf, firstEntries, readForm } from '../../web/pages/new/fields.ts'

const SCHEMA = {
  type: 'object',
  properties: {
    what: { type: 'string', description: 'What to review' },
    maxComments: { type: 'integer' },
    depth: { enum: ['thorough', 'quick'] },
    share: { type: 'number', default: 0.5 },
    look_at: { type: 'array', items: { enum: ['tests', 'names'] } },
    isUrgent: { type: 'boolean', default: true },
    branch: { type: 'string', maxLength: 40 },
    more: { type: 'object' },
  },
  required: ['what', 'depth'],
}

const fields = fieldsOf(SCHEMA)
const first = firstEntries(SCHEMA, fields)
const read = (changes: FieldValues) => readForm(fields, { ...first, ...changes })

describe('the form of a schema', () => {
  test('has a field for each property, by its kind', () => {
    expect(fields.map(({ label, kind, isOptional }) => [label, kind, isOptional])).toEqual([
      ['What', 'text', false],
      ['Max comments', 'number', true],
      ['Depth', 'choice', false],
      ['Share', 'number', true],
      ['Look at', 'choices', true],
      ['Is urgent', 'flag', true],
      ['Branch', 'line', true],
      ['More', 'json', true],
    ])
  })

  test('begins with the defaults, and leaves out what is empty', () => {
    expect(read({ what: 'src' })).toEqual({
      input: { what: 'src', depth: 'thorough', share: 0.5, look_at: [], isUrgent: true },
    })
  })

  test('reads numbers and JSON, and names what is wrong with each field', () => {
    expect(read({ what: 'src', maxComments: '10', more: '{"a":[1]}' })).toMatchObject({
      input: { maxComments: 10, more: { a: [1] } },
    })
    expect(read({ maxComments: 'ten', share: 'half', more: '{' })).toEqual({
      errors: {
        what: 'This is needed',
        maxComments: 'A whole number, such as 10',
        share: 'A number, such as 2.5',
        more: 'This is not JSON',
      },
    })
  })

  test('is one message without a schema, and JSON where a schema names no properties', () => {
    const message = fieldsOf(null)
    expect(readForm(message, { '': 'Hello' })).toEqual({ input: 'Hello' })
    expect(readForm(message, { '': ' ' })).toEqual({ errors: { '': 'This is needed' } })
    expect(readForm(fieldsOf({ anyOf: [] }), { '': '[1]' })).toEqual({ input: [1] })
  })
})
