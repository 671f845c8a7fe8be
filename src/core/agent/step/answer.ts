// Judges an answer without tool calls: completed, again, or failed with a code. `agent/step/step` asks it before it
// ends a turn.
//
// Stays true:
// - An empty answer never completes a run (I6).
// - A value completes a run only if it fits the output schema and has the ensured fields, unless the agent accepts the
//   last one as it is (`repair.onFailure: 'return'`).
// - The number of repairs comes from the rows, so another process counts the same.
// - A long text is read in pieces, so that other runs get their turn (I10).

import { type Json, parseJson, toJson } from '../../base/json.ts'
import { type CheckedSchema, describeIssues, type Issue, type JsonSchema } from '../../base/schema/schema.ts'
import { withoutThinking } from '../../fields/document-finder.ts'
import { emptyFields } from '../../fields/field-check.ts'
import { FieldParser } from '../../fields/field-parser.ts'
import { saysNothing, writtenText } from '../../graph/content.ts'
import type { Node } from '../../graph/rows.ts'
import type { StepAnswer } from '../../rules/turn/expand.ts'
import type { Repair } from '../definition/repair.ts'
import type { NodeRun } from '../hooks/node-run.ts'
import { pieceEnd } from './answer-content.ts'

/** The verdict on an answer without tool calls. */
export type AnswerVerdict =
  | { readonly end: 'completed'; readonly value: Json | undefined; readonly written?: Json }
  /** The model must answer again; `nudge` tells it what was wrong, unless it may not know. */
  | { readonly end: 'again'; readonly nudge: string | null }
  | { readonly end: 'failed'; readonly code: string; readonly message: string }

const EMPTY_NUDGE = 'Your last answer was empty. Give your final answer now.'

/**
 * Judges an answer. An empty or invalid one is requested again; after that it is a failure with a name, never an empty
 * success (I6).
 */
export function judge(run: NodeRun, answer: StepAnswer): AnswerVerdict | Promise<AnswerVerdict> {
  const { agent, node } = run
  const { finalTool = null } = agent.protocol ?? {}
  if (finalTool !== null && node.purpose !== 'wrap_up') return { end: 'again', nudge: finalNudge(finalTool) }
  if (answer.cutBy !== null && !agent.acceptTruncated && node.purpose !== 'wrap_up') return CUT[answer.cutBy]
  if (saysNothing(answer.content)) {
    if (mayRepair(run)) return again(agent.repair, EMPTY_NUDGE)
    return { end: 'failed', code: 'empty_answer', message: 'The model gave no answer, also when asked again.' }
  }
  if (agent.output === null || node.purpose === 'wrap_up') return { end: 'completed', value: undefined }
  return judgeValue(run, agent.output, writtenText(answer.content))
}

/** Another try would be cut again, so the text is kept, and the error tells what to do. */
const CUT: { readonly [Reason in NonNullable<StepAnswer['cutBy']>]: AnswerVerdict } = {
  length: {
    end: 'failed',
    code: 'truncated',
    message:
      'The model reached its output limit: the answer is incomplete. Raise settings.maxOutputTokens or the budget, ask for less, or set acceptTruncated: true.',
  },
  'content-filter': {
    end: 'failed',
    code: 'content_filter',
    message:
      'The provider stopped the answer by its content filter: it is incomplete. Ask in other words, or set acceptTruncated: true.',
  },
}

/** Repeated as often as there are turns left, because text is no final output. */
function finalNudge(tool: string): string {
  return `You MUST call the \`${tool}\` tool NOW with the final output for the user.`
}

/** Judges an answer that was stopped in the middle, because it could no longer fit. */
export function judgeDoomed(run: NodeRun, issues: readonly Issue[]): AnswerVerdict {
  return judgeUnfit(run, { value: undefined, issue: describeIssues(issues) })
}

async function judgeValue(run: NodeRun, schema: CheckedSchema, text: string): Promise<AnswerVerdict> {
  const read = await readAnswer(schema, text, run.agent.repair)
  return read.issue === null ? { end: 'completed', value: read.value, written: read.written } : judgeUnfit(run, read)
}

function judgeUnfit(
  run: NodeRun,
  { value, issue }: { readonly value: Json | undefined; readonly issue: string },
): AnswerVerdict {
  const { repair } = run.agent
  if (mayRepair(run)) {
    return again(repair, `Your answer does not fit. ${issue}\nAnswer again with only the corrected JSON.`)
  }
  if (repair?.onFailure === 'return' && value !== undefined) return { end: 'completed', value }
  return { end: 'failed', code: 'invalid_output', message: issue }
}

/** Counts every repair of the turn, the current one included. */
function mayRepair({ tree, agent, node, turn }: NodeRun): boolean {
  const isRepair = ({ purpose, ordinal }: Node) => purpose === 'repair' && ordinal <= node.ordinal
  const repairs = tree.nodesOf(turn.id).filter(isRepair)
  return repairs.length < (agent.repair?.retries ?? 1)
}

function again(repair: Repair | null, nudge: string): AnswerVerdict {
  return { end: 'again', nudge: repair?.feedback === false ? null : nudge }
}

type AnswerReading =
  | { readonly issue: null; readonly value: Json; readonly written: Json }
  | { readonly issue: string; readonly value: Json | undefined }

/** Reads the whole text where it is JSON that fits; else the document in it that readers of its fields see. */
async function readAnswer(schema: CheckedSchema, text: string, repair: Repair | null): Promise<AnswerReading> {
  const whole = parseJson(unfenced(text))
  if (text.length > LONG) await nextTurn()
  const first = whole.ok ? await readValue(schema, whole.value, repair) : undefined
  if (first?.issue === null) return first
  const plain = plainValue(schema.jsonSchema, text)
  const said = plain === undefined ? undefined : await readValue(schema, plain, repair)
  if (said?.issue === null) return said
  const parser = await findDocument(schema, text)
  if (parser.state === 'complete') {
    const found = await readValue(schema, parser.value as Json, repair)
    return found.issue === null ? found : (first ?? found)
  }
  if (first !== undefined) return first
  const isAbsent = parser.state === 'absent' && !whole.ok
  return {
    issue: isAbsent ? `It is not JSON: ${whole.error.replace(/^Not valid JSON: /, '')}` : parser.problem,
    value: undefined,
  }
}

/**
 * A schema for a text, or for one of several words, also accepts it without quotes. Undefined where the schema allows
 * anything else, because only JSON can tell them apart.
 */
function plainValue({ type, enum: words, const: only }: JsonSchema, text: string): string | undefined {
  const values = Array.isArray(words) ? words : only === undefined ? [] : [only]
  const isText = type === 'string' || (type === undefined && values.length > 0)
  if (!isText || values.some((value) => typeof value !== 'string')) return undefined
  const said = withoutThinking(text).trim()
  return values.length === 0 || values.includes(said) ? said : values.find((word) => isSameWord(word, said))
}

/** `Red.`, `"red"` and `**red**` mean red. */
function isSameWord(word: string, said: string): boolean {
  if (said.length > word.length + MOST_AROUND) return false
  return said.replace(/^[\s"'`*]+|[\s"'`*.!]+$/g, '').toLowerCase() === word.toLowerCase()
}

const MOST_AROUND = 12

/** Reads a long text piece by piece, so that other work gets a turn in between. */
async function findDocument(schema: CheckedSchema, text: string): Promise<FieldParser> {
  const parser = new FieldParser(schema, {})
  for (let at = 0; at < text.length; at = pieceEnd(text, at)) {
    if (at > 0) await nextTurn()
    parser.push(text.slice(at, pieceEnd(text, at)))
  }
  parser.end()
  return parser
}

/** From this length on, each step on the way to the store gets a turn of its own. */
const LONG = 1_000_000

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

async function readValue(schema: CheckedSchema, written: Json, repair: Repair | null): Promise<AnswerReading> {
  const checked = await schema.validate(written)
  if (!checked.ok) return { issue: describeIssues(checked.issues), value: written }
  const json = toJson(checked.value)
  if (json.ok && json.text.length > LONG) await nextTurn()
  const value = json.ok ? json.value : written
  const missing = repair?.ensure === undefined ? [] : emptyFields(written, repair.ensure, repair.allowNull ?? true)
  if (missing.length > 0) return { issue: `It lacks ${missing.slice(0, MOST_NAMED).join(', ')}.`, value }
  return { issue: null, value, written }
}

const MOST_NAMED = 20

/** Removes the code fence that models like to put around JSON. */
function unfenced(text: string): string {
  const trimmed = text.trim()
  const isFenced = trimmed.startsWith('```') && trimmed.endsWith('```') && trimmed.length >= 6
  return isFenced ? trimmed.slice(3, -3).replace(/^[a-z0-9]+(?=\s)/i, '') : trimmed
}
