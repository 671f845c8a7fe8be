import { execFileSync } from 'node:child_process'
import { validate } from '@readme/openapi-parser'
import { expect, test } from 'vitest'
import { TABLE } from '../../src/server/http/routes/table.ts'
import { operationId } from '../../src/server/http/table/openapi.ts'
import { takesBody } from '../../src/server/http/table/route.ts'
import { ANSWER_SCHEMAS } from './support/answer-schemas.ts'
import { referencePage } from './support/reference-page.ts'
import { startServer } from './support/server.ts'

/** Pages for people are described nowhere else. */
const api = TABLE.filter(({ isPage }) => isPage !== true)

test('the description of the API is OpenAPI 3.1', async () => {
  await using setting = await startServer()

  const description = await (await setting.get('/v1/openapi.json')).json()
  const found = await validate(description as Parameters<typeof validate>[0])

  expect(found).toMatchObject({ valid: true, warnings: [] })
  const { paths } = description as { paths: Record<string, object> }
  expect(Object.values(paths).flatMap(Object.keys)).toHaveLength(api.length)
})

test('every answer has a schema, or is a text or empty', () => {
  const forms = TABLE.flatMap(({ answers }) => Object.entries(answers))
  const bare = forms.filter(
    ([status, { shape, type }]) => Number(status) < 300 && !['204'].includes(status) && !shape && !type,
  )
  const unknown = forms
    .flatMap(([, { shape, page }]) => [shape, page])
    .filter((name) => name && !(name in ANSWER_SCHEMAS))

  expect(bare).toEqual([])
  expect(unknown).toEqual([])
  expect(
    Object.entries(ANSWER_SCHEMAS).filter(([, { type, anyOf }]) => type === undefined && anyOf === undefined),
  ).toEqual([])
})

test('every route has its own name and says what it answers', () => {
  const names = api.map(operationId)

  expect(new Set(names).size).toBe(names.length)
  expect(TABLE.filter(({ answers }) => Object.keys(answers).length === 0)).toEqual([])
  expect(TABLE.filter(({ method, body, takesLines }) => takesBody(method) && !body && !takesLines)).toEqual([])
})

test('the reference page is what the table says', async () => {
  await expect(referencePage(TABLE)).toMatchFileSnapshot('../../docs/reference/http-api.md')
})

test('the licences of the code that is copied in are listed', () => {
  execFileSync(process.execPath, ['scripts/third-party.mjs', '--check'])
})
