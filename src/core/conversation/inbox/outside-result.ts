import { InputError } from '../../base/error.ts'
import { type Json, parseJson, toJson } from '../../base/json.ts'
import { anything, flag, type OptionRules, readOptions, text } from '../../base/options.ts'
import { type CheckedSchema, describeIssues, readSchema } from '../../base/schema/schema.ts'
import type { Node } from '../../graph/rows.ts'
import type { OutsideResult } from '../../rules/delegation/question.ts'
import { questionOf } from '../../rules/turn/question-of.ts'
import { valueEnd } from '../../tool/result.ts'

/** The word of whoever executed a call. */
interface ResultRequest {
  readonly result: Json
  readonly isError?: boolean
  readonly by?: string
  readonly seen?: string
}

const RULES: OptionRules<ResultRequest> = { result: anything, isError: flag, by: text, seen: text }

/**
 * Reads a result before anything is awaited. What it gives checks the result against the call: by the JSON Schema of the row, and
 * by the tool's own schema where this process has it.
 */
export function readResult(word: ResultRequest): (node: Node, own: CheckedSchema | null) => Promise<OutsideResult> {
  const { result, isError = false, by = 'user', seen } = readOptions('answer(nodeId, { result })', word, RULES)
  const json = toJson(result)
  if (!json.ok) throw new InputError('invalid_input', `answer(nodeId, { result }): it is not JSON. ${json.error}`)
  const { value } = json
  return async (node, own) => {
    const given = isError ? value : await checkedResult(node, own, value)
    const { state, output = {}, body } = valueEnd(given, node.id)
    const end = { state, output: isError ? { ...output, isError } : output }
    return { by, body, end, ...(seen === undefined ? {} : { seen }) }
  }
}

/**
 * The result as the tool promised it. Many clients write every result as a text: one that holds JSON which fits counts too.
 * Throws an InputError for any other; the call stays open.
 */
async function checkedResult(node: Node, own: CheckedSchema | null, value: Json): Promise<Json> {
  const name = node.input.call?.name ?? ''
  const schema = questionOf(node)?.outside?.schema ?? null
  const isSchema = typeof schema === 'object' && schema !== null && !Array.isArray(schema)
  const promised = [...(isSchema ? [readSchema(schema, `The result of ${name}`)] : []), ...(own === null ? [] : [own])]
  const issues = await misfitOf(promised, value)
  if (issues === null) return value
  const parsed = typeof value === 'string' ? parseJson(value) : undefined
  if (parsed?.ok === true && (await misfitOf(promised, parsed.value)) === null) return parsed.value
  throw new InputError('invalid_input', `Nothing was answered: the result of ${name} is wrong. ${issues}`)
}

/** The error of the first schema that a value does not fit; null where it fits all. */
async function misfitOf(schemas: readonly CheckedSchema[], value: Json): Promise<string | null> {
  for (const schema of schemas) {
    const checked = await schema.validate(value)
    if (!checked.ok) return describeIssues(checked.issues)
  }
  return null
}
