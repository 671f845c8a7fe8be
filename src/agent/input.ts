import { after } from '../base/after.ts'
import { type Json, toJson } from '../base/json.ts'
import { type Checked, type CheckedSchema, describeIssues, type Issue } from '../base/schema.ts'

export type ReadInput =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly error: string; readonly issues: readonly Issue[] }

/** What an agent is asked: checked against its `input` schema, with defaults filled in, as JSON; without one, a text. */
export function readInput(name: string, schema: CheckedSchema | null, input: unknown): ReadInput | Promise<ReadInput> {
  if (schema !== null) return after(schema.validate(input), (checked) => asJson(checked, input))
  if (typeof input === 'string' && input.trim() !== '') return { ok: true, value: input }
  return refused(`"${name}" has no input schema: give it a text that is not empty.`)
}

/** What a schema made of the input need not be JSON; then the input itself is taken. */
function asJson(checked: Checked, input: unknown): ReadInput {
  if (!checked.ok) return { ok: false, error: describeIssues(checked.issues), issues: checked.issues }
  const parsed = toJson(checked.value)
  const json = parsed.ok ? parsed : toJson(input)
  return json.ok ? { ok: true, value: json.value } : refused(`It is not JSON: ${json.error}`)
}

function refused(error: string): ReadInput {
  return { ok: false, error, issues: [] }
}
