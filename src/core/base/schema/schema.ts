// Schemas: one form for Standard Schema objects (zod, valibot, ...) and raw JSON Schema.
//
// Owns:      `readSchema`, which turns either into a `CheckedSchema`, and the text of issues for people and models.
// Called by: tools, agents and recipes for their input and output; the checks run when values arrive.
// Must stay true:
//   - `validate` never throws and never rejects: every failure is an issue.
//   - A schema is compiled when it is first needed, so that defining an agent stays cheap.
//   - A check takes time in proportion to the value (I10).

import { DefinitionError, isLegateError, messageOf } from '../error.ts'
import { type Path, pathText } from '../text.ts'
import type { JsonCheck } from './json-check.ts'
import { type JsonSchema, looksLikeJsonSchema, refuseMistakes, tidyJsonSchema } from './json-schema.ts'

export type { JsonSchema } from './json-schema.ts'

/** Standard Schema v1, with Standard JSON Schema where the library has it. */
export interface StandardSchema<In = unknown, Out = In> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Out> | Promise<StandardResult<Out>>
    readonly types?: { readonly input: In; readonly output: Out } | undefined
    readonly jsonSchema?: Readonly<Record<SchemaSide, StandardConverter>> | undefined
  }
}

export type StandardResult<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

export type StandardConverter = (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>

export type SchemaSide = 'input' | 'output'

/** Every form of schema that users may pass. */
export type Schema<T = unknown> = StandardSchema<unknown, T> | JsonSchema

/** The type that a caller writes; `unknown` for a raw JSON Schema. */
export type InferInput<S> = S extends StandardSchema<infer In, unknown> ? In : unknown

/** The type that validation gives; `unknown` for a raw JSON Schema. */
export type InferOutput<S> = S extends StandardSchema<unknown, infer Out> ? Out : unknown

export interface Issue {
  readonly path: Path
  readonly message: string
}

export type Validation<T = unknown> = { ok: true; value: T } | { ok: false; issues: readonly Issue[] }

export interface CheckedSchema<T = unknown> {
  /** Converted when it is first read. Throws a DefinitionError when the library cannot express the schema. */
  readonly jsonSchema: JsonSchema
  /** Never throws and never rejects: every failure is an issue. */
  validate(value: unknown): Validation<T> | Promise<Validation<T>>
  /**
   * Compiles the schema; undefined where nothing has to wait. Rejects with a DefinitionError when the schema cannot be used.
   */
  prepare(): Promise<unknown> | undefined
}

/**
 * Takes a Standard Schema or a raw JSON Schema. `where` begins the messages, as in `input of tool "search"`; `side` chooses
 * which JSON Schema is shown. Throws a DefinitionError for a value that is not a schema, and for a schema whose library could give
 * JSON Schema but did not.
 */
export function readSchema<T = unknown>(
  schema: Schema<T>,
  where: string,
  side: SchemaSide = 'input',
): CheckedSchema<T> {
  const standard = standardOf(schema)
  const reason = refusal(schema, standard)
  if (reason !== undefined) throw new DefinitionError('definition', `${where}: ${reason}`)
  if (standard !== undefined) return readStandard<T>(standard, where, side)
  return readRaw(schema, where) as CheckedSchema<T>
}

/** Reads the schema of a definition: a type that no model can be shown, such as a date, is refused here and not at the first run. */
export function readShownSchema<T = unknown>(schema: Schema<T>, where: string, side?: SchemaSide): CheckedSchema<T> {
  const checked = readSchema<T>(schema, where, side)
  shownForm(checked)
  return checked
}

/** Makes the form that models are shown. Throws where a type has none. */
function shownForm({ jsonSchema }: CheckedSchema): JsonSchema {
  return jsonSchema
}

/** One line for each issue, `path: message`; at most 20 lines of 300 characters. */
export function describeIssues(issues: readonly Issue[]): string {
  const lines = issues.slice(0, shownIssues).map(describeIssue)
  if (issues.length > shownIssues) lines.push(`… and ${issues.length - shownIssues} more`)
  return lines.join('\n')
}

type Standard = StandardSchema['~standard']

const shownIssues = 20
const keptIssues = 100
const lineLength = 300

function readStandard<T>(standard: Standard, where: string, side: SchemaSide): CheckedSchema<T> {
  let jsonSchema: JsonSchema | undefined
  const shown = () => {
    jsonSchema ??= convert(standard, where, side)
    return jsonSchema
  }
  return {
    get jsonSchema() {
      return shown()
    },
    validate(value) {
      try {
        const result = standard.validate(value)
        if (!isThenable(result)) return readResult<T>(result)
        return Promise.resolve(result)
          .then((late) => readResult<T>(late))
          .catch(failed)
      } catch (error) {
        return failed(error)
      }
    },
    prepare: () => (jsonSchema === undefined ? Promise.resolve().then(shown) : undefined),
  }
}

function readRaw(schema: unknown, where: string): CheckedSchema {
  const jsonSchema = tidyJsonSchema(schema, where)
  refuseMistakes(jsonSchema, where)
  let check: JsonCheck | undefined
  let compiling: Promise<JsonCheck> | undefined
  const compile = async () => {
    compiling ??= import('./json-check.ts').then(({ compileJsonSchema }) => compileJsonSchema(jsonSchema, where))
    check = await compiling
    return check
  }
  return {
    jsonSchema,
    validate(value) {
      if (check !== undefined) return runCheck(check, value)
      return compile()
        .then((compiled) => runCheck(compiled, value))
        .catch(failed)
    },
    prepare: () => (check === undefined ? compile() : undefined),
  }
}

function standardOf(schema: unknown): Standard | undefined {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) return undefined
  const standard: unknown = Reflect.get(schema, '~standard')
  if (typeof standard !== 'object' || standard === null) return undefined
  return typeof Reflect.get(standard, 'validate') === 'function' ? (standard as Standard) : undefined
}

function refusal(schema: unknown, standard: Standard | undefined): string | undefined {
  if (typeof standard?.jsonSchema === 'object') return undefined
  if (isZod(schema, standard)) return zodRefusal(schema)
  if (standard?.vendor === 'valibot') return valibotRefusal
  if (standard !== undefined) return undefined
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return notASchema
  if (Object.values(schema).some((field) => standardOf(field) !== undefined || isZod(field, undefined))) {
    return 'this is a shape, not a schema; wrap it, as in z.object({ ... }).'
  }
  return looksLikeJsonSchema(schema) ? undefined : notASchema
}

const notASchema = 'this is not a schema; give a zod 4, arktype or other Standard Schema, or a JSON Schema object.'

const valibotRefusal =
  "a valibot schema has no JSON Schema of its own; wrap it: toStandardJsonSchema(schema), from '@valibot/to-json-schema'."

function isZod(schema: unknown, standard: Standard | undefined): schema is object {
  if (standard !== undefined) return standard.vendor === 'zod'
  if (typeof schema !== 'object' || schema === null) return false
  const definition: unknown = Reflect.get(schema, '_def')
  if (typeof definition !== 'object' || definition === null) return false
  const name: unknown = Reflect.get(definition, 'typeName')
  return typeof name === 'string' && name.startsWith('Zod')
}

function zodRefusal(schema: object): string {
  if (!('_zod' in schema)) return 'zod 3 schemas cannot be shown to a model; upgrade to zod 4 (npm install zod@4).'
  return "this zod schema has no JSON Schema; import z from 'zod' itself, version 4.2 or newer."
}

function convert(standard: Standard, where: string, side: SchemaSide): JsonSchema {
  const { jsonSchema } = standard
  if (typeof jsonSchema?.[side] !== 'function') {
    const advice = 'add ~standard.jsonSchema, or give a JSON Schema instead'
    const message = `${where}: this ${standard.vendor} schema has no JSON Schema to show to a model; ${advice}.`
    throw new DefinitionError('definition', message)
  }
  try {
    return tidyJsonSchema(jsonSchema[side]({ target: 'draft-2020-12' }), where)
  } catch (error) {
    if (isLegateError(error)) throw error
    const message = `${where}: the ${standard.vendor} schema has no JSON Schema: ${messageOf(error)}`
    throw new DefinitionError('definition', message, { cause: error })
  }
}

function isThenable(value: unknown): value is PromiseLike<StandardResult<unknown>> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** Copies lists with Array.from: libraries hand out subclasses of Array, which `map` would construct again. */
function readResult<T>(result: StandardResult<unknown>): Validation<T> {
  if (result.issues === undefined || result.issues === null) return { ok: true, value: result.value as T }
  const issues = Array.from(result.issues).slice(0, keptIssues).map(readIssue)
  return { ok: false, issues: issues.length > 0 ? issues : [{ path: [], message: 'is not valid' }] }
}

function readIssue(issue: StandardIssue): Issue {
  const path = Array.from(issue.path ?? [], (segment) => {
    const key = typeof segment === 'object' ? segment.key : segment
    return typeof key === 'number' ? key : String(key)
  })
  return { path, message: messageOf(issue.message) }
}

function runCheck(check: JsonCheck, value: unknown): Validation {
  try {
    const errors = check(value)
    if (errors.length === 0) return { ok: true, value }
    const issues = errors.slice(0, keptIssues)
    return {
      ok: false,
      issues: issues.map((error) => ({ path: pathOf(error.pointer, value), message: messageOf(error.message) })),
    }
  } catch (error) {
    return failed(error)
  }
}

/** A pointer does not distinguish an index from a property name; the value does. */
function pathOf(pointer: string, root: unknown): Path {
  let value = root
  return pointer
    .split('/')
    .slice(1)
    .map((part) => {
      const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
      const key = Array.isArray(value) ? Number(name) : name
      value = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
      return key
    })
}

function failed(error: unknown): { ok: false; issues: readonly Issue[] } {
  const message = isLegateError(error) ? messageOf(error.message) : `the schema failed: ${messageOf(error)}`
  return { ok: false, issues: [{ path: [], message }] }
}

function describeIssue(issue: Issue): string {
  const place = pathText(issue.path)
  const line = messageOf(place === '' ? issue.message : `${place}: ${issue.message}`)
  return line.length <= lineLength ? line : `${line.slice(0, lineLength - 1).toWellFormed()}…`
}
