// OpenAPI 3.1 and the words of the reference page, both made from the table.

import type { QuerySchema } from '../../../core/operations/operation.ts'
import schemas from './answers.json' with { type: 'json' }
import { type AnswerForm, type Route, takesBody } from './route.ts'

type Part = Readonly<Record<string, unknown>>

/** Describes the table, without pages for people. The schemas of answers are large: load this file when somebody asks for them. */
export function openApi(table: readonly Route[], version: string): Part {
  const paths: Record<string, Record<string, Part>> = {}
  for (const route of table.filter(({ isPage }) => isPage !== true)) {
    const path = paths[route.path] ?? {}
    path[route.method.toLowerCase()] = operation(route)
    paths[route.path] = path
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Legate', version, description: 'Runs of agents over HTTP.', license: LICENSE },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'A token: `lgt_<id>_<secret>`, or a JWT.' },
      },
    },
  }
}

const LICENSE = { name: 'Apache-2.0', identifier: 'Apache-2.0' }

function operation(route: Route): Part {
  const { scope, summary, description, body, takesLines } = route
  const parameters = [...pathParameters(route), ...queryParameters(route), ...headerParameters(route)]
  const type = takesLines === true ? 'application/x-ndjson' : 'application/json'
  const schema = takesLines === true ? { type: 'string' } : body
  const hasBody = takesBody(route.method) && schema !== undefined
  return {
    operationId: operationId(route),
    summary,
    ...(description === undefined ? {} : { description }),
    security: scope === 'none' ? [] : [{ bearer: scope === 'any' ? [] : [scope] }],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(hasBody ? { requestBody: { required: true, content: { [type]: { schema, ...example(route) } } } } : {}),
    responses: { ...answers(route), ...problems(route) },
  }
}

function example({ example: given }: Route): Part {
  return given?.body === undefined ? {} : { example: given.body }
}

/** `GET /v1/runs/{id}/events` is `getRunsIdEvents`. */
export function operationId({ method, path }: Pick<Route, 'method' | 'path'>): string {
  const words = path
    .replace(/^\/v1/, '')
    .replace(/(.)\/$/, '$1/slash')
    .split(/[^\w]+/)
    .filter(Boolean)
  const rest = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return `${method.toLowerCase()}${rest}`
}

function pathParameters({ params = {} }: Route): Part[] {
  return Object.entries(params).map(([name, kind]) => ({
    name,
    in: 'path',
    required: true,
    schema: kind === 'id' ? { type: 'string', format: 'uuid' } : { type: 'string' },
  }))
}

function queryParameters({ query = {} }: Route): Part[] {
  return Object.entries(query).map(([name, schema]) => ({
    name,
    in: 'query',
    description: schema.description,
    schema: querySchema(schema),
    ...(schema.type === 'list' ? { style: 'form', explode: false } : {}),
  }))
}

function querySchema({ description: _, type, ...rest }: QuerySchema): Part {
  return type === 'list' ? { type: 'array', items: { type: 'string', ...rest } } : { type, ...rest }
}

function headerParameters({ headers = {} }: Route): Part[] {
  return Object.entries(headers).map(([name, description]) => ({
    name,
    in: 'header',
    description,
    schema: { type: 'string' },
  }))
}

function answers({ answers: forms }: Route): Part {
  return Object.fromEntries(
    Object.entries(forms).map(([status, form]) => {
      const content = contentOf(form)
      return [status, { description: form.description, ...(content === undefined ? {} : { content }) }]
    }),
  )
}

/** The media types of an answer; undefined where it is empty. */
function contentOf({ shape, page, type }: AnswerForm): Part | undefined {
  const paged = page === undefined ? {} : { 'application/json': { schema: refTo(page) } }
  if (type === 'text/event-stream') return { [type]: { schema: framesOf(shape) }, ...paged }
  if (shape !== undefined) return { 'application/json': { schema: refTo(shape) } }
  return type === undefined ? undefined : { [type]: { schema: type === 'application/json' ? {} : { type: 'string' } } }
}

/** OpenAPI 3.1 has no words for frames: their text, and the schema of the JSON in their `data`. */
function framesOf(shape: string | undefined): Part {
  return shape === undefined ? { type: 'string' } : { type: 'string', 'x-data': refTo(shape) }
}

function refTo(name: string): Part {
  return { $ref: `#/components/schemas/${name}` }
}

function problems({ scope }: Route): Part {
  if (scope === 'none') return {}
  return {
    default: { description: 'A problem.', content: { 'application/problem+json': { schema: refTo('Problem') } } },
  }
}
