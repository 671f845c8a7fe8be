import type { FuncKeywordDefinition } from 'ajv'
import type { JsonSchema } from './json-schema.ts'

const STEP = 'legate-step'
/** References that one check follows, and so many more for each value there is. */
const MOST_STEPS = 100_000
const STEPS_PER_VALUE = 20
/** Characters that one check compares with patterns. */
const MOST_CHARACTERS = 1_000_000

/** Counts what one check does that a schema can make it do again and again. */
export class WorkMeter {
  private value: unknown
  private stepsLeft = 0
  private isCounted = false
  private characters = 0

  /** Checks a value, which is not kept. */
  run(check: (value: unknown) => unknown, value: unknown): boolean {
    this.value = value
    this.stepsLeft = MOST_STEPS
    this.isCounted = false
    this.characters = 0
    try {
      return check(value) === true
    } finally {
      this.value = undefined
    }
  }

  /** Stands beside each reference. */
  readonly keyword: FuncKeywordDefinition = {
    keyword: STEP,
    before: '$ref',
    validate: () => {
      if (--this.stepsLeft < 0) this.allowMore()
      return true
    },
  }

  /** Most values are checked with far fewer steps: only what needs more is counted. */
  private allowMore(): void {
    if (this.isCounted) throw new Error('the schema refers to itself too often to be checked')
    this.isCounted = true
    this.stepsLeft = valuesIn(this.value) * STEPS_PER_VALUE
  }

  read(text: string): void {
    this.characters += text.length
    if (this.characters <= MOST_CHARACTERS) return
    throw new Error(`more than ${MOST_CHARACTERS} characters would have to be compared with patterns`)
  }
}

function valuesIn(root: unknown): number {
  const open: unknown[] = [root]
  let count = 0
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    count++
    if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) open.push(item)
  }
  return count
}

/** The schema with a step to count beside each of its references. Only these can make a check longer than value and schema are. */
export function countedReferences(schema: JsonSchema): JsonSchema {
  return counted(schema) as JsonSchema
}

function counted(part: unknown, isMap = false): unknown {
  if (Array.isArray(part)) return part.map((item) => counted(item))
  if (typeof part !== 'object' || part === null) return part
  const entries = Object.entries(part).map(([key, inner]): [string, unknown] => {
    return [key, !isMap && DATA.has(key) ? inner : counted(inner, !isMap && MAPS.has(key))]
  })
  const hasReference = !isMap && entries.some(([key, inner]) => REFERENCES.has(key) && typeof inner === 'string')
  return Object.fromEntries(hasReference ? [...entries, [STEP, true]] : entries)
}

const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef', '$recursiveRef'])
/** Whose keys are names of the user's. */
const MAPS: ReadonlySet<string> = new Set('properties patternProperties $defs definitions dependentSchemas'.split(' '))
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples'])
