import { type Json, parseJson, toJson } from '../base/json.ts'
import { type CheckedSchema, describeIssues } from '../base/schema.ts'
import { textOf } from '../graph/content.ts'
import type { Answer } from '../graph/expand.ts'
import type { Node } from '../graph/rows.ts'
import type { AgentCore } from './agent.ts'
import { saysNothing } from './messages.ts'

/** What becomes of an answer without tool calls. */
export type Judged =
  | { readonly end: 'completed'; readonly value: Json | undefined }
  | { readonly end: 'again'; readonly nudge: string }
  | { readonly end: 'failed'; readonly code: string; readonly message: string }

const EMPTY_NUDGE = 'Your last answer was empty. Give your final answer now.'

/** An empty or invalid answer is asked for once more; after that it is a failure with a name, never an empty success (I6). */
export function judge(agent: AgentCore, node: Node, answer: Answer): Judged | Promise<Judged> {
  const isSecond = node.purpose === 'repair'
  if (saysNothing(answer.content)) {
    if (!isSecond) return { end: 'again', nudge: EMPTY_NUDGE }
    return { end: 'failed', code: 'empty_answer', message: 'The model gave no answer, also when asked again.' }
  }
  if (agent.output === null || node.purpose === 'wrap_up') return { end: 'completed', value: undefined }
  return judgeValue(agent.output, textOf(answer.content), isSecond)
}

async function judgeValue(schema: CheckedSchema, text: string, isSecond: boolean): Promise<Judged> {
  const read = await readValue(schema, text)
  if (read.ok) return { end: 'completed', value: read.value }
  if (isSecond) return { end: 'failed', code: 'invalid_output', message: read.error }
  return { end: 'again', nudge: `Your answer does not fit. ${read.error}\nAnswer again with only the corrected JSON.` }
}

async function readValue(
  schema: CheckedSchema,
  text: string,
): Promise<{ ok: true; value: Json } | { ok: false; error: string }> {
  const parsed = parseJson(unfenced(text))
  if (!parsed.ok) return { ok: false, error: `It is not JSON: ${parsed.error}` }
  const checked = await schema.validate(parsed.value)
  if (!checked.ok) return { ok: false, error: describeIssues(checked.issues) }
  const json = toJson(checked.value)
  return { ok: true, value: json.ok ? json.value : parsed.value }
}

/** Models like to put JSON into a code fence. */
function unfenced(text: string): string {
  const trimmed = text.trim()
  const isFenced = trimmed.startsWith('```') && trimmed.endsWith('```') && trimmed.length >= 6
  return isFenced ? trimmed.slice(3, -3).replace(/^[a-z0-9]+(?=\s)/i, '') : trimmed
}
