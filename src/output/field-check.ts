import type { JsonSchema } from '../base/json-schema.ts'
import type { Path } from '../base/path.ts'
import { type Checked, type CheckedSchema, type Issue, readSchema } from '../base/schema.ts'
import { type Location, locate } from './locate.ts'

/**
 * Checks single fields of a document against what its schema says of them. The whole is checked at the end, so what
 * cannot be told from one field alone is left to that.
 */
export class FieldCheck {
  private readonly schema: JsonSchema
  private readonly checks = new Map<string, Promise<CheckedSchema | undefined>>()
  private readonly ready = new Map<string, CheckedSchema | undefined>()

  constructor(schema: JsonSchema) {
    this.schema = schema
  }

  /** At once where a field of the same place was checked before. The issues have their path from the root. */
  check(path: Path, value: unknown): readonly Issue[] | Promise<readonly Issue[]> {
    const location = locate(this.schema, path)
    if (location === undefined) return []
    if (location === null) return [{ path, message: 'is not in the schema' }]
    const name = JSON.stringify(location)
    if (this.ready.has(name)) return run(this.ready.get(name), path, value)
    return this.prepared(name, location).then((check) => run(check, path, value))
  }

  private prepared(name: string, location: Location): Promise<CheckedSchema | undefined> {
    const known = this.checks.get(name)
    if (known !== undefined) return known
    const making = this.prepare(location).then((check) => {
      this.ready.set(name, check)
      return check
    })
    this.checks.set(name, making)
    return making
  }

  /** Undefined for a part that cannot be used alone. */
  private async prepare(location: Location): Promise<CheckedSchema | undefined> {
    const { $id: _, ...schema } = this.schema
    try {
      const part = { $defs: { whole: { ...schema, $id: wholeId } }, allOf: [spelled(location)] }
      const check = readSchema(part, 'a field of the output')
      await check.prepare()
      return check
    } catch {
      return undefined
    }
  }
}

const wholeId = 'legate:whole'

function spelled(location: Location): JsonSchema {
  if ('all' in location) return { allOf: location.all.map(spelled) }
  if ('any' in location) return { anyOf: location.any.map(spelled) }
  return { $ref: `${wholeId}#${location.at.split('/').map(encodeURIComponent).join('/')}` }
}

function run(
  check: CheckedSchema | undefined,
  path: Path,
  value: unknown,
): readonly Issue[] | Promise<readonly Issue[]> {
  const checked = check?.validate(value)
  if (checked === undefined) return []
  return checked instanceof Promise ? checked.then((late) => issuesOf(late, path)) : issuesOf(checked, path)
}

function issuesOf(checked: Checked, path: Path): readonly Issue[] {
  return checked.ok ? [] : checked.issues.map((issue) => ({ ...issue, path: [...path, ...issue.path] }))
}
