import { describe, expect, test } from 'vitest'
import { headerFault } from './parameter-headers.ts'

const withFields = (properties: object) => ({ type: 'object', properties })

describe('parameters that a server wants as headers too', () => {
  test.each([
    ['none', { a: { type: 'string' } }],
    ['a text, a whole number and a flag', { a: mark('A'), b: mark('b-2', 'integer'), c: mark('C', 'boolean') }],
    ['one below another parameter', { a: { type: 'object', properties: { b: mark('B') } } }],
  ])('are fine: %s', (_, properties) => {
    expect(headerFault(withFields(properties))).toBeUndefined()
  })

  test.each([
    ['without a name', { a: mark('') }, /header whose name is none/],
    ['with a blank', { a: mark('My Header') }, /header whose name is none/],
    ['with a colon', { a: mark('A:B') }, /header whose name is none/],
    ['with a line of its own', { a: mark('A\r\nB') }, /header whose name is none/],
    ['with a letter that is not ASCII', { a: mark('Ä') }, /header whose name is none/],
    ['with a name that is no text', { a: { type: 'string', 'x-mcp-header': 1 } }, /header whose name is none/],
    ['for an object', { a: mark('A', 'object') }, /no string, integer or boolean/],
    ['for a list', { a: mark('A', 'array') }, /no string, integer or boolean/],
    ['for a number', { a: mark('A', 'number') }, /no string, integer or boolean/],
    ['twice', { a: mark('A'), b: mark('a') }, /two parameters ask for the header "a"/],
    ['twice at two depths', { a: mark('A'), b: withFields({ c: mark('A') }) }, /two parameters/],
  ])('are a fault: %s', (_, properties, fault) => {
    expect(headerFault(withFields(properties))).toMatch(fault)
  })

  test.each([undefined, null, 'x', [], { properties: null }])('of a schema that is %j are none', (schema) => {
    expect(headerFault(schema)).toBeUndefined()
  })
})

function mark(header: string, type = 'string') {
  return { type, 'x-mcp-header': header }
}
