import type { FuncKeywordDefinition } from 'ajv'
import type { JsonSchema } from './json-schema.ts'

const STEP = 'legate-step'
/** Parts of the schema that one check tries: references, alternatives and long lists of names. */
const MOST_STEPS = 1_000_000
/** Characters that one check compares with patterns. */
const MOST_CHARACTERS = 1_000_000

/** Counts what one check does that a schema can make it do again and again. */
export class WorkMeter {
  private stepsLeft = 0
  private characters = 0

  run(check: (value: unknown) => unknown, value: unknown): boolean {
    this.stepsLeft = MOST_STEPS
    this.characters = 0
    return check(value) === true
  }

  /** Stands in each part of a schema that may be tried many times for one value; its number is the work of one try. */
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

  read(text: string): void {
    this.characters += text.length
    if (this.characters <= MOST_CHARACTERS) return
    throw new Error(`more than ${MOST_CHARACTERS} characters would have to be compared with patterns`)
  }
}

/** The schema with the work beside each of its parts that is more than its value: only these can make a check long. */
export function countedSteps(schema: JsonSchema): JsonSchema {
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

/** Names that are looked for in each object. */
function namesIn(part: object): number {
  let names = 0
  for (const inner of Object.values(part)) {
    if (typeof inner === 'object' && inner !== null) names += Object.keys(inner).length
  }
  return names
}

/** To look for a name takes far less than to try an alternative. */
const NAMES_PER_STEP = 16

/** What is tried beside other parts, for the same value. */
const BRANCHES: ReadonlySet<string> = new Set(
  'anyOf oneOf allOf not if then else contains dependentSchemas propertyNames patternProperties'.split(' '),
)
const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef', '$recursiveRef'])
/** Whose keys are names of the user's. */
const MAPS: ReadonlySet<string> = new Set('properties patternProperties $defs definitions dependentSchemas'.split(' '))
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples'])
