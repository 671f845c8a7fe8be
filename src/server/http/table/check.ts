// Checks what comes with a request against its row of the table: the values of the query, and the body.

import type { ErrorObject, ValidateFunction } from 'ajv'
import { isId } from '../../../core/base/id.ts'
import type { QuerySchema } from '../../../core/operations/operation.ts'
import type { Json } from '../../../index.ts'
import { Problem } from '../problem/problem.ts'
import type { Route, RouteQuery } from './route.ts'

type Value = string | number | boolean | readonly string[]

/** Reads the query by the schemas of the route. A name that the route does not have is refused, so no mistake passes. */
export function readQuery({ query = {}, isPage }: Pick<Route, 'query' | 'isPage'>, given: URLSearchParams): RouteQuery {
  const values = new Map<string, Value>()
  for (const [name, schema] of Object.entries(query)) {
    if (schema.default !== undefined) values.set(name, schema.default)
  }
  // The query of a page is for its script.
  for (const name of isPage === true ? [] : new Set(given.keys())) {
    const schema = Object.hasOwn(query, name) ? query[name] : undefined
    if (schema === undefined) throw new Problem('invalid_input', `The query has no "${name.slice(0, 60)}" here.`)
    const all = given.getAll(name)
    if (all.length > 1 && schema.type !== 'list') throw new Problem('invalid_input', `The query has "${name}" twice.`)
    values.set(name, readValue(name, schema, all))
  }
  return {
    text: (name) => pick(values.get(name), 'string'),
    number: (name) => pick(values.get(name), 'number'),
    flag: (name) => values.get(name) === true,
    list: (name) => {
      const value = values.get(name)
      return Array.isArray(value) ? value : undefined
    },
    all: () => Object.fromEntries(values),
  }
}

interface Kinds {
  string: string
  number: number
}

function pick<Kind extends keyof Kinds>(value: Value | undefined, kind: Kind): Kinds[Kind] | undefined {
  return typeof value === kind ? (value as Kinds[Kind]) : undefined
}

function readValue(name: string, schema: QuerySchema, all: readonly string[]): Value {
  const [text = ''] = all
  switch (schema.type) {
    case 'integer':
      return readNumber(name, schema, text)
    case 'boolean':
      if (['1', 'true', '0', 'false'].includes(text)) return text === '1' || text === 'true'
      throw new Problem('invalid_input', `"${name}" of the query must be 0 or 1.`)
    case 'list': {
      const words = all.flatMap((one) => one.split(',')).filter((one) => one !== '')
      for (const word of words) checkText(name, schema, word)
      return words
    }
    case 'string':
      checkText(name, schema, text)
      return text
  }
}

function readNumber(name: string, { minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: QuerySchema, text: string) {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value) && value >= minimum && value <= maximum) return value
  throw new Problem('invalid_input', `"${name}" of the query must be a whole number from ${minimum} to ${maximum}.`)
}

function checkText(name: string, { enum: words, maxLength = 500 }: QuerySchema, text: string): void {
  if (words !== undefined && !words.includes(text)) {
    throw new Problem('invalid_input', `"${name}" of the query must be one of ${words.join(', ')}.`)
  }
  if (text.length > maxLength) {
    throw new Problem('invalid_input', `"${name}" of the query is longer than ${maxLength} characters.`)
  }
}

const compiled = new WeakMap<object, ValidateFunction>()

/** Refuses a body that does not fit the route's schema, and says where. */
export async function checkBody({ body: schema }: Pick<Route, 'body'>, body: Json): Promise<void> {
  if (schema === undefined) return
  const known = compiled.get(schema)
  const check = known ?? (await compile(schema))
  if (known === undefined) compiled.set(schema, check)
  if (check(body)) return
  const [error] = check.errors ?? []
  throw new Problem('invalid_input', `The body does not fit: ${error === undefined ? 'wrong' : words(error)}.`)
}

const FORMATS = { uuid: isId, 'well-formed-unicode': (text: string) => text.isWellFormed() }

async function compile(schema: object): Promise<ValidateFunction> {
  const { Ajv2020 } = await import('ajv/dist/2020.js')
  const strict = { strict: true, strictRequired: false, strictTypes: false, allowUnionTypes: true }
  return new Ajv2020({ ...strict, formats: FORMATS }).compile(schema)
}

function words({ instancePath, message = 'wrong', params, keyword }: ErrorObject): string {
  const place = instancePath === '' ? 'it' : `"${instancePath.slice(1).replaceAll('/', '.').slice(0, 100)}"`
  const name: unknown = keyword === 'additionalProperties' ? params['additionalProperty'] : undefined
  const allowed: unknown = keyword === 'enum' ? params['allowedValues'] : undefined
  if (typeof name === 'string') return `${place} has no property "${name.slice(0, 60)}"`
  if (Array.isArray(allowed)) return `${place} must be one of ${allowed.join(', ')}`
  return `${place} ${message}`
}
