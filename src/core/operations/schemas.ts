// Parts of queries and bodies that operations and routes share.

import type { BodySchema, QuerySchema } from './operation.ts'

type Part = { readonly [key: string]: unknown }

export const OBJECT: Part = { type: 'object' }
export const ID: Part = { type: 'string', format: 'uuid', maxLength: 36 }
export const TEXT: Part = { type: 'string', maxLength: 100_000 }
/** Texts that become ids, keys and titles: stores would take half a character for another one. */
export const UNICODE = 'well-formed-unicode'
export const SHORT: Part = { type: 'string', maxLength: 500, format: UNICODE }
export const FLAG: Part = { type: 'boolean' }
/** Any JSON value, as the input of an agent. */
export const ANY_JSON: Part = { description: 'Any JSON value.' }

export const LIMIT: QuerySchema = {
  type: 'integer',
  description: 'The most items of the page.',
  minimum: 1,
  maximum: 1_000,
  default: 50,
}

/** Where a list without a cursor of its own goes on. */
export const FROM: QuerySchema = {
  type: 'integer',
  description: 'The place of the first item: the `next` of the page before.',
  minimum: 0,
  maximum: 100_000,
  default: 0,
}

/** The query of lists of runs and conversations. */
export const LIST_QUERY: Readonly<Record<'owner' | 'agent' | 'before' | 'limit', QuerySchema>> = {
  owner: { type: 'string', description: 'Only those of this owner.' },
  agent: { type: 'string', description: 'Only those of the agent with this name.' },
  before: { type: 'string', description: 'The `next` of the page before.' },
  limit: LIMIT,
}

/** The query of an explanation. */
export const REQUEST_QUERY: Readonly<Record<'request', QuerySchema>> = {
  request: { type: 'string', description: 'The request: `tool:deploy`.', default: '' },
}

/** The schema of a body: these properties, these of them needed, and no others. */
export function bodySchema(properties: Readonly<Record<string, Part>>, required: readonly string[] = []): BodySchema {
  return { type: 'object', properties, required, additionalProperties: false } as unknown as BodySchema
}
