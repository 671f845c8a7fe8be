import type { AnswerForm, Route } from '../../../src/server/http/table/route.ts'
import { shapeLink, shapeSections } from './reference-shapes.ts'

type Part = Readonly<Record<string, unknown>>

/** The reference page of the API, made from the table. */
export function referencePage(table: readonly Route[]): string {
  const rows = table.map(({ method, path, scope, summary }) => `| \`${method} ${path}\` | ${scope} | ${summary} |`)
  return [
    '# HTTP API',
    '',
    '<!-- Made from the route table: `npx vitest run --project suite test/server/openapi.test.ts -u`. Change src/core/operations and src/server/http/routes. -->',
    '',
    'Every route of `legate serve` and of `handler(runtime)`. Bodies and answers are JSON. `GET /v1/openapi.json` gives all of it as OpenAPI',
    '3.1. Send a token with every request: `Authorization: Bearer lgt_...`. A problem has the form of RFC 9457: `status`, `detail`, `code`',
    'and often `advice`. An id of another owner gives the same answer as an id that does not exist.',
    '',
    '| route | scope | what it does |',
    '|---|---|---|',
    ...rows,
    '',
    ...table.flatMap(section),
    ...shapeSections(),
  ]
    .join('\n')
    .trimEnd()
    .concat('\n')
}

function section(route: Route): string[] {
  const { method, path, scope, summary, description } = route
  const needs =
    scope === 'none' ? 'Needs no token.' : scope === 'any' ? 'Needs a token.' : `Needs the scope \`${scope}\`.`
  return [
    `## ${method} ${path}`,
    '',
    [summary, description, needs].filter(Boolean).join(' '),
    '',
    ...table('query', queryRows(route)),
    ...table('header', Object.entries(route.headers ?? {})),
    ...table('body', bodyRows(route)),
    ...table(
      'answer',
      Object.entries(route.answers).map(([status, answer]) => [status, answerWords(answer)]),
    ),
    ...example(route),
  ]
}

/** What comes, and its form: of the whole answer, or of the data of each frame. */
function answerWords({ description, shape, page, type }: AnswerForm): string {
  const form = shape === undefined ? '' : ` ${type === undefined ? 'Form' : 'Each'}: ${shapeLink(shape)}.`
  return `${description}${form}${page === undefined ? '' : ` A page: ${shapeLink(page)}.`}`
}

function table(name: string, rows: readonly (readonly [string, string])[]): string[] {
  if (rows.length === 0) return []
  const lines = rows.map(([key, words]) => `| \`${key}\` | ${words.replaceAll('|', '\\|')} |`)
  return [`| ${name} | meaning |`, '|---|---|', ...lines, '']
}

function queryRows({ query = {} }: Route): (readonly [string, string])[] {
  return Object.entries(query).map(([name, { description, default: usual, enum: words }]) => {
    const choice = words === undefined ? '' : ` One of ${words.map((word) => `\`${word}\``).join(', ')}.`
    const fallback = usual === undefined || usual === '' ? '' : ` Default \`${String(usual)}\`.`
    return [name, `${description}${choice}${fallback}`]
  })
}

function bodyRows({ body }: Route): (readonly [string, string])[] {
  const properties = (body?.['properties'] ?? {}) as Readonly<Record<string, Part>>
  const required = (body?.['required'] ?? []) as readonly string[]
  return Object.entries(properties).map(([name, part]) => [
    name,
    `${wordsOf(part)}${required.includes(name) ? ' Required.' : ''}`,
  ])
}

function wordsOf({ description, type, enum: words, const: only }: Part): string {
  const form = Array.isArray(words)
    ? `One of ${words.map((word) => `\`${String(word)}\``).join(', ')}.`
    : formOf(type, only)
  return [description, form].filter(Boolean).join(' ')
}

function formOf(type: unknown, only: unknown): string {
  if (only !== undefined) return `\`${String(only)}\`.`
  if (type === undefined) return ''
  return `Type ${(Array.isArray(type) ? type : [type]).map((one) => `\`${String(one)}\``).join(' or ')}.`
}

function example({ method, path, example: given }: Route): string[] {
  if (given?.body === undefined) return []
  return ['```http', `${method} ${path}`, 'Content-Type: application/json', '', JSON.stringify(given.body), '```', '']
}
