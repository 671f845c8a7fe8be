import { DefinitionError } from '../../base/error.ts'
import { flag, int, listOf, type OptionRules, oneOf, readOptions, text } from '../../base/options.ts'
import type { CheckedSchema } from '../../base/schema/schema.ts'
import { hasField } from '../../fields/locate.ts'
import { readPath } from '../../fields/path-pattern.ts'

/** How to handle an answer that is empty or does not fit. Each new try is a model call of its own. */
export interface Repair {
  /** How many more tries there are. Default 1. */
  readonly retries?: number
  /** Fields that must be present, even where the schema makes them optional: `items[*].title`. */
  readonly ensure?: readonly string[]
  /** Whether an ensured field may be null. Default true. */
  readonly allowNull?: boolean
  /** False: the model is asked again as if for the first time. Default true: it reads what was wrong. */
  readonly feedback?: boolean
  /** True: stops the call as soon as a complete field does not fit. */
  readonly failFast?: boolean
  /** `return`: accepts a last value that does not fit. Default `fail`: the run ends `invalid_output`. */
  readonly onFailure?: 'fail' | 'return'
}

const OPTIONS: OptionRules<Repair> = {
  retries: int(0, 100),
  ensure: listOf(text, 'paths'),
  allowNull: flag,
  feedback: flag,
  failFast: flag,
  onFailure: oneOf('fail', 'return'),
}

/** Checks the settings; null where there are none. */
export function readRepair(repair: Repair | undefined, output: CheckedSchema | null, where: string): Repair | null {
  if (repair === undefined) return null
  const {
    ensure = [],
    failFast = false,
    onFailure = 'fail',
  } = readOptions(`agent(): ${where}, repair`, repair, OPTIONS)
  if (output === null && (ensure.length > 0 || failFast || onFailure === 'return')) {
    refuse(where, 'it is about the fields of an answer: give the agent an output.')
  }
  if (output !== null) for (const path of ensure) checkPath(output, path, where)
  return Object.freeze({ ...repair, ensure: Object.freeze([...ensure]) })
}

function checkPath({ jsonSchema }: CheckedSchema, path: string, where: string): void {
  if (!hasField(jsonSchema, readPath(path))) refuse(where, `ensure: the output schema has no ${JSON.stringify(path)}.`)
}

function refuse(where: string, message: string): never {
  throw new DefinitionError('definition', `agent(): ${where}, repair: ${message}`)
}
