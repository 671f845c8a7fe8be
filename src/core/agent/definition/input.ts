import { DefinitionError } from '../../base/error.ts'
import { type Json, toJson } from '../../base/json.ts'
import { after } from '../../base/maybe.ts'
import { type CheckedSchema, describeIssues, type Issue, type Validation } from '../../base/schema/schema.ts'
import type { Request } from '../../grant/request.ts'
import { type Block, type Content, isBlock } from '../../graph/content.ts'
import type { Effect } from '../../graph/rows.ts'
import type { TurnBriefing } from '../../rules/turn/open-turn.ts'

export type InputResult =
  | {
      readonly ok: true
      readonly value: Json
      /** The value as JSON text, where that was made. */
      readonly text?: string
      readonly said?: MessageInput
    }
  | { readonly ok: false; readonly error: string; readonly issues: readonly Issue[] }

/** A valid input of an agent. */
export type ValidInput = Extract<InputResult, { ok: true }>

/**
 * Checks an input against the agent's `input` schema, fills in defaults and makes it JSON; without a schema, takes a
 * text or blocks.
 */
export function readInput(
  name: string,
  schema: CheckedSchema | null,
  input: unknown,
): InputResult | Promise<InputResult> {
  if (schema !== null) return after(schema.validate(input), (checked) => asJson(checked, input))
  if (typeof input === 'string' && input.trim() !== '') return { ok: true, value: input }
  if (Array.isArray(input)) return readBlocks(name, input)
  return refused(`"${name}" has no input schema: give it a text that is not empty, or a list of blocks.`)
}

/** An input in words, instead of one that fits the agent's schema. */
export interface MessageInput {
  readonly content: Content
  /** Messages before it, as a model reads them. */
  readonly before: readonly Json[]
  /** The record of a request in slots, for the rows. */
  readonly asked?: Json
}

/** An input that a caller gave to the agent directly: it may be in words. */
export class CallerInput {
  readonly input: unknown

  constructor(input: unknown) {
    this.input = input
  }
}

/** Reads the input of an agent, whichever way it is started. */
export function readAgentInput(agent: InputTaker, given: unknown): InputResult | Promise<InputResult> {
  if (given instanceof SlotInput) return after(readSlot(agent, given), (read) => withRecord(read, given))
  const isDirect = given instanceof CallerInput
  const input = isDirect ? given.input : given
  if (input === undefined && agent.prompt !== null) return readDirect(agent, agent.prompt)
  // An agent that is code takes its typed input only: no model would read words.
  return isDirect && agent.reply === null ? readDirect(agent, input) : readInput(agent.name, agent.input, input)
}

/** An input in slots: its text, and its record for the rows. */
export abstract class SlotInput extends CallerInput {
  abstract readonly record: Json
  /** The text that people read in the conversation. */
  abstract readonly content: Content
}

/** Checks the input slot like an input; a request without one asks in its other slots. */
function readSlot(agent: InputTaker, { input, record }: SlotInput): InputResult | Promise<InputResult> {
  if (input === undefined || agent.input === null) return { ok: true, value: toValue(input ?? record) }
  return readDirect(agent, input)
}

function toValue(input: unknown): Json {
  const json = toJson(input)
  return json.ok ? json.value : null
}

function withRecord(read: InputResult, { record, content }: SlotInput): InputResult {
  return read.ok ? { ...read, said: { content, before: [], asked: record } } : read
}

interface InputTaker {
  readonly name: string
  readonly prompt: string | null
  readonly input: CheckedSchema | null
  readonly reply: ReplyCore | null
}

/**
 * Reads a direct input: the typed input; or, for any agent, a text, or `{ messages }` of which the last is a user's.
 */
function readDirect({ name, input: schema }: InputTaker, input: unknown): InputResult | Promise<InputResult> {
  return after(readInput(name, schema, input), (read) => {
    if (read.ok || !acceptsWords(schema)) return read
    return readMessages(name, input) ?? read
  })
}

/** False for an agent whose typed input is itself a text: it is checked like any other input. */
function acceptsWords(schema: CheckedSchema | null): boolean {
  return schema === null || schema.jsonSchema['type'] === 'object'
}

function readMessages(name: string, input: unknown): InputResult | undefined {
  if (typeof input === 'string' && input.trim() !== '') {
    return { ok: true, value: input, said: { content: input, before: [] } }
  }
  if (typeof input !== 'object' || input === null || Object.keys(input).join() !== 'messages') return undefined
  const json = toJson(Reflect.get(input, 'messages'))
  if (!json.ok) return refused(`The messages for "${name}" are not JSON: ${json.error}`)
  const messages = Array.isArray(json.value) ? (json.value as readonly Json[]) : []
  const wrong = messages.findIndex((message) => !isSayable(message))
  const last = messages.at(-1) as { readonly role: string; readonly content: Content } | undefined
  if (last === undefined || wrong >= 0 || last.role !== 'user') {
    const which = wrong >= 0 ? `number ${wrong} is not valid` : 'the last one must be a user’s'
    return refused(`"${name}" takes messages { role: "system" | "user" | "assistant", content }: ${which}.`)
  }
  const before = messages.slice(0, -1).map(asMessage)
  return { ok: true, value: { messages: json.value }, said: { content: last.content, before } }
}

function isSayable(message: Json): boolean {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return false
  const { role, content = '' } = message
  if (typeof content === 'string')
    return ['system', 'user', 'assistant'].includes(String(role)) && content.trim() !== ''
  const isBlocks = Array.isArray(content) && content.length > 0 && content.every((block) => isBlock(block as Json))
  return isBlocks && (role === 'user' || role === 'assistant')
}

/** Drops tool calls of given messages, because nothing has run them. */
function asMessage(message: Json): Json {
  const { role = '', content = '' } = message as { readonly role?: Json; readonly content?: Json }
  return role === 'assistant' ? { role, content, calls: [] } : { role, content }
}

/** The messages before the last one, as the turn's briefing; null when there are none. */
export function earlierMessages({ said }: ValidInput): TurnBriefing | null {
  return said === undefined || said.before.length === 0 ? null : { content: '', messages: said.before }
}

/** The input as the first message shows it: JSON where the agent has a schema. */
export function inputContent(
  schema: CheckedSchema | null,
  { value, text }: Pick<ValidInput, 'value' | 'text'>,
): Content {
  if (typeof value === 'string') return value
  if (schema === null && Array.isArray(value)) return value as unknown as readonly Block[]
  return text ?? JSON.stringify(value)
}

function readBlocks(name: string, input: readonly unknown[]): InputResult {
  const json = toJson(input)
  if (!json.ok) return refused(`The blocks for "${name}" are not JSON: ${json.error}`)
  const blocks = json.value as Json[]
  const wrong = blocks.findIndex((block) => !isBlock(block))
  if (blocks.length > 0 && wrong === -1) return { ok: true, value: blocks }
  const which = blocks.length === 0 ? 'there is none' : `number ${wrong} is not valid`
  return refused(
    `"${name}" takes blocks, { type: 'text', text }, { type: 'json', value } or { type: 'image' | 'audio' | 'video' | 'file', mediaType, data }: ${which}.`,
  )
}

/** Takes the input itself where the schema's result is not JSON. */
function asJson(checked: Validation, input: unknown): InputResult {
  if (!checked.ok) return { ok: false, error: describeIssues(checked.issues), issues: checked.issues }
  const parsed = toJson(checked.value)
  const json = parsed.ok ? parsed : toJson(input)
  return json.ok ? json : refused(`It is not JSON: ${json.error}`)
}

function refused(error: string): InputResult {
  return { ok: false, error, issues: [] }
}

/** Code that answers instead of a model. */
export interface ReplyCore {
  /** May it run again when its process dies in the middle? */
  readonly effect: Effect
  /** Gives the requests that are decided before the code runs; null: it has none. */
  readonly needs: ((input: never) => readonly (string | Request)[]) | null
  /** Gives the answer, now or later, or a generator of its words that returns it. */
  readonly code: (input: never, context: never) => unknown
}

/** Refuses what only an agent with a model can be given. */
export function refuseForReply(
  { name, reply }: { readonly name: string; readonly reply: ReplyCore | null },
  what: string,
): void {
  if (reply === null) return
  const message = `agent "${name}" has a reply: its code answers, and there is no model for ${what}.`
  throw new DefinitionError('definition', message)
}
