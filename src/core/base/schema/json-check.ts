import type { CodeKeywordDefinition, FuncKeywordDefinition } from 'ajv'
import { DefinitionError, messageOf } from '../error.ts'
import { canonicalJson, type Json } from '../json.ts'
import type { JsonSchema } from './json-schema.ts'

export type JsonCheck = (value: unknown) => readonly JsonCheckError[]

export interface JsonCheckError {
  /** A JSON pointer into the value. */
  readonly pointer: string
  readonly message: string
}

/**
 * Compiles with a validator of its own, so that schemas with equal `$id` never meet, and so that nothing stays in memory when
 * the check is dropped. Fetches nothing. Ignores unknown keywords and formats. Rejects with a DefinitionError when the schema
 * cannot be used. A check takes time in proportion to the value, and throws where a schema that refers to itself would take
 * longer. For a large value it reports only the first error.
 */
export async function compileJsonSchema(schema: JsonSchema, where: string): Promise<JsonCheck> {
  const { Ajv2020, ...codegen } = await import('ajv/dist/2020.js')
  const meter = new WorkMeter()
  try {
    if (hasMoreValues(schema, MOST_SCHEMA_VALUES)) throw new Error(`it has more than ${MOST_SCHEMA_VALUES} values`)
    const regExp = await patternReaderFor(schema, meter)
    const compile = (allErrors: boolean) => {
      const ajv = new Ajv2020({ ...ajvOptions, allErrors, code: { optimize: false, ...(regExp && { regExp }) } })
      for (const keyword of ['uniqueItems', 'enum', 'maxLength', 'minLength']) ajv.removeKeyword(keyword)
      const ours = [uniqueItems(meter), listed(meter), ...lengths(meter, codegen), meter.keyword]
      return ajv.addVocabulary(ours).compile(countedSteps(schema))
    }
    const isWide = hasMoreValues(schema, MOST_NESTED)
    const first = compile(isWide)
    let all: typeof first | undefined = isWide ? first : undefined
    return (value) => {
      if (isWide && hasMoreValues(value, MOST_VALUES)) throw new Error('the value is too large for so large a schema')
      if (meter.run(first, value)) return []
      if (hasMoreValues(value, MOST_VALUES)) return (first.errors ?? []).map(readError)
      all ??= compile(true)
      meter.run(all, value)
      return (all.errors ?? []).map(readError)
    }
  } catch (error) {
    const message = `${where}: not a usable JSON Schema: ${messageOf(error)}`
    throw new DefinitionError('definition', message, { cause: error })
  }
}

const ajvOptions = {
  strict: false,
  ownProperties: true,
  validateFormats: false,
  validateSchema: false,
  meta: false,
  logger: false,
} as const

/** The validator generates code from a schema, and takes more than linear time for it. */
const MOST_SCHEMA_VALUES = 5_000
/** Code that stops at the first error nests as deep as a schema is long, so only short schemas use it. */
const MOST_NESTED = 1_000

/** To compile as many keywords takes half a second: more of them are refused where others wrote the schema. */
export const MOST_KEYWORDS = 1_500

/** Tells whether a schema of a file or a server would take long to compile. Words and sample values cost nothing. */
export function hasTooManyKeywords(schema: JsonSchema): boolean {
  const parts: unknown[] = [schema]
  let keywords = 0
  for (const part of parts) {
    const entries = typeof part === 'object' && part !== null ? Object.entries(part) : []
    keywords += entries.filter(([key]) => !FREE.has(key)).length
    if (keywords > MOST_KEYWORDS) return true
    for (const [key, inner] of entries) for (const one of DATA.has(key) ? [] : schemasIn(key, inner)) parts.push(one)
  }
  return false
}

function schemasIn(key: string, value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null) return []
  return MAPS.has(key) || Array.isArray(value) ? Object.values(value) : [value]
}

function hasMoreValues(value: unknown, most: number): boolean {
  const open: unknown[] = [value]
  for (let at = 0; at < open.length; at++) {
    const next = open[at]
    if (typeof next !== 'object' || next === null) continue
    const inner: readonly unknown[] = Object.values(next)
    if (open.length + inner.length > most) return true
    open.push(...inner)
  }
  return false
}

/** Above this size the check stops at the first error: the validator would copy all errors with each one it finds. */
const MOST_VALUES = 5_000

/** Compares each item with the earlier ones by its text: the validator's own keyword compares every pair. */
function uniqueItems(meter: WorkMeter): FuncKeywordDefinition {
  const wasSeen = (seen: Map<string, number>, item: Json, index: number) => {
    const text = textOf(item, meter)
    if (seen.has(text)) return true
    seen.set(text, index)
    return false
  }
  const compile = (isWanted: boolean) => {
    const check: ReturnType<NonNullable<FuncKeywordDefinition['compile']>> = (items: readonly Json[]) => {
      const seen = new Map<string, number>()
      const at = isWanted ? items.findIndex((item, index) => wasSeen(seen, item, index)) : -1
      if (at === -1) return true
      const before = seen.get(canonicalJson(items[at] ?? null)) ?? 0
      const message = `must NOT have duplicate items (items ## ${before} and ${at} are identical)`
      check.errors = [{ keyword: 'uniqueItems', message, params: { i: at, j: before } }]
      return false
    }
    return check
  }
  return { keyword: 'uniqueItems', type: 'array', schemaType: 'boolean', compile }
}

/** Checks `enum` with one look-up, however many values are allowed. */
function listed(meter: WorkMeter): FuncKeywordDefinition {
  const compile = (allowedValues: readonly Json[]) => {
    const allowed = new Set(allowedValues.map(canonicalJson))
    const check: ReturnType<NonNullable<FuncKeywordDefinition['compile']>> = (value: Json) => {
      if (allowed.has(textOf(value, meter))) return true
      check.errors = [
        { keyword: 'enum', message: 'must be equal to one of the allowed values', params: { allowedValues } },
      ]
      return false
    }
    return check
  }
  return { keyword: 'enum', schemaType: 'array', compile }
}

/** Checks `maxLength` and `minLength`. The validator's own keywords count the characters of a text once per keyword. */
function lengths(meter: WorkMeter, { _, str }: Pick<typeof import('ajv/dist/2020.js'), '_' | 'str'>) {
  const isTooLong = (text: string, limit: number) => isLonger(text, limit, meter)
  const isTooShort = (text: string, limit: number) => limit > 0 && !isLonger(text, limit - 1, meter)
  const keyword = (name: string, side: string, isWrong: typeof isTooLong): CodeKeywordDefinition => ({
    keyword: name,
    type: 'string',
    schemaType: 'number',
    error: {
      message: ({ schemaCode }) => str`must NOT have ${side} than ${schemaCode} characters`,
      params: ({ schemaCode }) => _`{limit: ${schemaCode}}`,
    },
    code: (check) => {
      check.fail(_`${check.gen.scopeValue('func', { ref: isWrong })}(${check.data}, ${check.schemaCode})`)
    },
  })
  return [keyword('maxLength', 'more', isTooLong), keyword('minLength', 'fewer', isTooShort)]
}

/** A character has one or two units. So the units mostly decide, and the characters are counted only where they do not. */
function isLonger(text: string, limit: number, meter: WorkMeter): boolean {
  if (text.length <= limit) return false
  return text.length / 2 > limit || meter.charactersIn(text) > limit
}

/** Gives equal texts for equal values. A long text counts as work, that of a list or an object as more. */
function textOf(value: Json, meter: WorkMeter): string {
  const text = canonicalJson(value)
  meter.step(Math.ceil(text.length / (typeof value === 'object' ? 2 : 32)))
  return text
}

function readError(error: {
  instancePath: string
  keyword: string
  params: Readonly<Record<string, unknown>>
  message?: string
}): JsonCheckError {
  const message = error.message ?? `breaks "${error.keyword}"`
  return { pointer: error.instancePath, message: message + detailOf(error.params) }
}

/** The detail that a person or a model needs to correct the value and that the standard message leaves out. */
function detailOf(params: Readonly<Record<string, unknown>>): string {
  const extra = params['additionalProperty'] ?? params['unevaluatedProperty']
  if (typeof extra === 'string') return `: "${extra}"`
  const allowed = params['allowedValues'] ?? ('allowedValue' in params ? [params['allowedValue']] : undefined)
  if (!Array.isArray(allowed)) return ''
  return `: ${allowed
    .slice(0, 20)
    .map((value) => JSON.stringify(value))
    .join(', ')}`
}

/** Compiles a pattern of a JSON Schema; the validator wants a name for its source. */
export interface PatternReader {
  (pattern: string): { test(text: string): boolean }
  code: string
}

/**
 * Gives the reader for the patterns of a schema; undefined where it has none. Each pattern runs in linear time, so none can run
 * away. Patterns that linear time does not allow (lookahead, lookbehind, backreferences, counts above 1,000) are refused.
 */
async function patternReaderFor(schema: unknown, meter: WorkMeter): Promise<PatternReader | undefined> {
  if (!JSON.stringify(schema).includes('"pattern')) return undefined
  const { RE2JS } = await import('re2js')
  const read = (pattern: string) => {
    try {
      const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern))
      return {
        test: (text: string) => {
          meter.read(text)
          return compiled.test(text)
        },
        toString: () => pattern,
      }
    } catch (error) {
      throw new Error(`the pattern ${JSON.stringify(pattern.slice(0, 100))} cannot be used. ${ADVICE}`, {
        cause: error,
      })
    }
  }
  return Object.assign(read, { code: 'readPattern' })
}

const ADVICE =
  'Write it without lookahead, lookbehind, backreferences and counts above 1000, or check the text with code: give a zod schema.'

const STEP = 'legate-step'
/** How many parts of the schema one check may try: references, alternatives and long lists of names. */
const MOST_STEPS = 1_000_000
/** How many characters one check may compare with patterns. */
const MOST_CHARACTERS = 1_000_000

/** Counts the work of one check that a schema can repeat without bound. */
class WorkMeter {
  private stepsLeft = 0
  private characters = 0
  /** The last text whose characters were counted, and their number. */
  private counted: readonly [text: string, characters: number] = ['', 0]

  run(check: (value: unknown) => unknown, value: unknown): boolean {
    this.stepsLeft = MOST_STEPS
    this.characters = 0
    try {
      return check(value) === true
    } finally {
      this.counted = ['', 0]
    }
  }

  /** A keyword in each part of a schema that one value may try many times; its number is the work of one try. */
  readonly keyword: FuncKeywordDefinition = {
    keyword: STEP,
    before: '$ref',
    validate: (steps: number) => {
      this.step(steps)
      return true
    },
  }

  step(steps: number): void {
    this.stepsLeft -= steps
    if (this.stepsLeft >= 0) return
    throw new Error(`more than ${MOST_STEPS} references and alternatives of the schema would have to be tried`)
  }

  charactersIn(text: string): number {
    if (this.counted[0] === text) return this.counted[1]
    this.step(Math.ceil(text.length / 32))
    let characters = 0
    for (let at = 0; at < text.length; characters++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
    this.counted = [text, characters]
    return characters
  }

  read(text: string): void {
    this.characters += text.length
    if (this.characters <= MOST_CHARACTERS) return
    throw new Error(`more than ${MOST_CHARACTERS} characters would have to be compared with patterns`)
  }
}

/**
 * Copies the schema and notes the work beside each part that costs more than its value: only those parts can make a check long.
 */
function countedSteps(schema: JsonSchema): JsonSchema {
  return counted(schema, false) as JsonSchema
}

function counted(part: unknown, isBranch: boolean): unknown {
  if (typeof part !== 'object' || part === null || Array.isArray(part)) return part
  const entries = Object.entries(part).map(([key, inner]): [string, unknown] => [key, countedIn(key, inner)])
  const isCounted = isBranch || entries.some(([key, inner]) => REFERENCES.has(key) && typeof inner === 'string')
  const steps = (isCounted ? 1 : 0) + Math.floor(namesIn(part) / NAMES_PER_STEP)
  return Object.fromEntries(steps > 0 ? [...entries, [STEP, steps]] : entries)
}

function countedIn(key: string, inner: unknown): unknown {
  if (DATA.has(key)) return inner
  const isBranch = BRANCHES.has(key)
  if (Array.isArray(inner)) return inner.map((item) => counted(item, isBranch))
  if (!MAPS.has(key) || typeof inner !== 'object' || inner === null) return counted(inner, isBranch)
  return Object.fromEntries(Object.entries(inner).map(([name, item]) => [name, counted(item, isBranch)]))
}

/** Counts the names that a check looks for in each object. */
function namesIn(part: object): number {
  let names = 0
  for (const inner of Object.values(part)) {
    if (typeof inner === 'object' && inner !== null) names += Object.keys(inner).length
  }
  return names
}

/** Looking for a name takes far less time than trying an alternative. */
const NAMES_PER_STEP = 16

/** Keywords whose parts a check tries beside other parts, for one value. */
const BRANCHES: ReadonlySet<string> = new Set(
  'anyOf oneOf allOf not if then else contains dependentSchemas propertyNames patternProperties'.split(' '),
)
const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef', '$recursiveRef'])
/** Keywords whose keys are names that the user chose. */
const MAPS: ReadonlySet<string> = new Set('properties patternProperties $defs definitions dependentSchemas'.split(' '))
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples'])
const FREE: ReadonlySet<string> = new Set(['description', '$comment', 'format', 'default', 'examples'])
