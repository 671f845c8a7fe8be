import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { TABLE } from '../../../src/server/http/routes/table.ts'
import type { Route } from '../../../src/server/http/table/route.ts'
import { ANSWER_SCHEMAS } from './answer-schemas.ts'

/** Routes whose answers in JSON have been checked in this process, as `GET /v1/runs 200`. */
export const checkedAnswers = new Set<string>()

const ROUTES = TABLE.map((route) => ({
  route,
  form: new RegExp(`^${route.path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
}))

/** Fails unless an answer is one that the table describes, and its JSON has the fields of its schema and no others. */
export async function checkAnswer(method: string, path: string, answer: Response): Promise<void> {
  const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
  if (type === 'application/problem+json') return checkShape('Problem', await answer.clone().json())
  const found = ROUTES.find(({ route, form }) => route.method === method && form.test(path))
  if (found === undefined) return
  const { route } = found
  const told = route.answers[answer.status]
  const name = `${method} ${route.path} ${answer.status}`
  if (told === undefined) throw new Error(`${name} is not in the table.`)
  if (type !== 'application/json') return
  const shape = told.type === 'text/event-stream' ? told.page : told.shape
  if (shape === undefined && told.type !== type) throw new Error(`${name} answers with JSON that has no schema.`)
  if (shape !== undefined) checkShape(shape, await answer.clone().json(), name)
  checkedAnswers.add(name)
}

/** The answers in JSON that a route has, as `checkedAnswers` names them. */
export function jsonAnswersOf({ method, path, answers }: Route): string[] {
  return Object.entries(answers)
    .filter(([, { shape, type }]) => shape !== undefined && type === undefined)
    .map(([status]) => `${method} ${path} ${status}`)
}

const checks = new Map<string, ValidateFunction>()
const ajv = new Ajv2020({ strict: false, allErrors: false })
ajv.addSchema(closed({ $id: 'legate', components: { schemas: ANSWER_SCHEMAS } }) as object)

/** Fails unless a value has the form of a shape, without a field more. */
export function checkShape(shape: string, value: unknown, where: string = shape): void {
  const check = checks.get(shape) ?? ajv.compile({ $ref: `legate#/components/schemas/${shape}` })
  checks.set(shape, check)
  if (check(value)) return
  const words = check.errors?.map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  )
  throw new Error(
    `${where} is no ${shape}: ${words?.slice(0, 12).join('; ')}\n${JSON.stringify(value).slice(0, 2_000)}`,
  )
}

/** The schema with every object closed: callers may meet new fields one day, tests may not. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const parts = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  const isOpen = parts['type'] !== 'object' || parts['properties'] === undefined
  return isOpen || 'additionalProperties' in parts ? parts : { ...parts, additionalProperties: false }
}
