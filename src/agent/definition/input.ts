import { DefinitionError } from '../../base/error.ts'
import { type Json, toJson } from '../../base/json.ts'
import { after } from '../../base/maybe.ts'
import { type CheckedSchema, describeIssues, type Issue, type Validation } from '../../base/schema/schema.ts'
import { type Block, type Content, isBlock } from '../../graph/content.ts'
import type { Effect } from '../../graph/rows.ts'
import type { TurnBriefing } from '../../rules/turn/open-turn.ts'

export type ReadInput =
  | {
      readonly ok: true
      readonly value: Json
      /** The value as JSON, where that was made. */
      readonly text?: string
      readonly said?: SaidInput
    }
  | { readonly ok: false; readonly error: string; readonly issues: readonly Issue[] }

/** What an agent is asked, and may be. */
export type Given = Extract<ReadInput, { ok: true }>

/**
 * What an agent is asked: checked against its `input` schema, with defaults filled in, as JSON; without one, a text or
 * blocks.
 */
export function readInput(name: string, schema: CheckedSchema | null, input: unknown): ReadInput | Promise<ReadInput> {
  if (schema !== null) return after(schema.validate(input), (checked) => asJson(checked, input))
  if (typeof input === 'string' && input.trim() !== '') return { ok: true, value: input }
  if (Array.isArray(input)) return readBlocks(name, input)
  return refused(`"${name}" has no input schema: give it a text that is not empty, or a list of blocks.`)
}

/** What an agent was told in words, instead of an input of its own form. */
export interface SaidInput {
  readonly content: Content
  /** Messages before it, as a model reads them. */
  readonly before: readonly Json[]
  /** What the rows keep of a request in slots. */
  readonly asked?: Json
}

/** An input that was given to the agent itself: it may be in words. */
export class Direct {
  readonly input: unknown

  constructor(input: unknown) {
    this.input = input
  }
}

/** What an agent is asked, by whatever way it is started. */
export function readGiven(agent: InputTaker, given: unknown): ReadInput | Promise<ReadInput> {
  if (given instanceof AskedInput) return after(readSlot(agent, given), (read) => withAsked(read, given))
  const isDirect = given instanceof Direct
  const input = isDirect ? given.input : given
  if (input === undefined && agent.prompt !== null) return readDirect(agent, agent.prompt)
  // Code takes its input only: there is nobody to be told something in words.
  return isDirect && agent.reply === null ? readDirect(agent, input) : readInput(agent.name, agent.input, input)
}

/** An input in slots: what of it is said, and what the rows keep. */
export abstract class AskedInput extends Direct {
  abstract readonly record: Json
  /** What people read of it in the conversation. */
  abstract readonly content: Content
}

/** The slot of the input is checked like an input; a request that has none asks in its other slots. */
function readSlot(agent: InputTaker, { input, record }: AskedInput): ReadInput | Promise<ReadInput> {
  if (input === undefined || agent.input === null) return { ok: true, value: toValue(input ?? record) }
  return readDirect(agent, input)
}

function toValue(input: unknown): Json {
  const json = toJson(input)
  return json.ok ? json.value : null
}

function withAsked(read: ReadInput, { record, content }: AskedInput): ReadInput {
  return read.ok ? { ...read, said: { content, before: [], asked: record } } : read
}

interface InputTaker {
  readonly name: string
  readonly prompt: string | null
  readonly input: CheckedSchema | null
  readonly reply: ReplyCore | null
}

/**
 * What an agent may be asked directly: its input; or, whatever its input is, a text, or `{ messages }` of which the last
 * is a user's.
 */
function readDirect({ name, input: schema }: InputTaker, input: unknown): ReadInput | Promise<ReadInput> {
  return after(readInput(name, schema, input), (read) => {
    if (read.ok || !mayBeSaid(schema)) return read
    return asSaid(name, input) ?? read
  })
}

/** An input that is itself a text is checked like any other: there is nothing to be said beside it. */
function mayBeSaid(schema: CheckedSchema | null): boolean {
  return schema === null || schema.jsonSchema['type'] === 'object'
}

function asSaid(name: string, input: unknown): ReadInput | undefined {
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
    const which = wrong >= 0 ? `number ${wrong} is none` : 'the last one must be a user’s'
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

/** Calls of tools are not taken over: there would be nothing that has run them. */
function asMessage(message: Json): Json {
  const { role = '', content = '' } = message as { readonly role?: Json; readonly content?: Json }
  return role === 'assistant' ? { role, content, calls: [] } : { role, content }
}

/** Messages that were given with the last one, as what is told before it; null when there are none. */
export function saidBefore({ said }: Given): TurnBriefing | null {
  return said === undefined || said.before.length === 0 ? null : { content: '', messages: said.before }
}

/** The input as the first message says it: JSON where the agent has a schema. */
export function inputContent(schema: CheckedSchema | null, { value, text }: Pick<Given, 'value' | 'text'>): Content {
  if (typeof value === 'string') return value
  if (schema === null && Array.isArray(value)) return value as unknown as readonly Block[]
  return text ?? JSON.stringify(value)
}

function readBlocks(name: string, input: readonly unknown[]): ReadInput {
  const json = toJson(input)
  if (!json.ok) return refused(`The blocks for "${name}" are not JSON: ${json.error}`)
  const blocks = json.value as Json[]
  const wrong = blocks.findIndex((block) => !isBlock(block))
  if (blocks.length > 0 && wrong === -1) return { ok: true, value: blocks }
  const which = blocks.length === 0 ? 'there is none' : `number ${wrong} is none`
  return refused(
    `"${name}" takes blocks, { type: 'text', text }, { type: 'json', value } or { type: 'image' | 'audio' | 'video' | 'file', mediaType, data }: ${which}.`,
  )
}

/** What a schema made of the input need not be JSON; then the input itself is taken. */
function asJson(checked: Validation, input: unknown): ReadInput {
  if (!checked.ok) return { ok: false, error: describeIssues(checked.issues), issues: checked.issues }
  const parsed = toJson(checked.value)
  const json = parsed.ok ? parsed : toJson(input)
  return json.ok ? json : refused(`It is not JSON: ${json.error}`)
}

function refused(error: string): ReadInput {
  return { ok: false, error, issues: [] }
}

/** Code that answers instead of a model. */
export interface ReplyCore {
  /** May it run again when its process dies in the middle? */
  readonly effect: Effect
  /** Gives the answer, now or later, or a generator of its words that returns it. */
  readonly code: (input: never, context: never) => unknown
}

interface MaybeReply {
  readonly name: string
  readonly reply: ReplyCore | null
}

/** Refuses what only an agent with a model can be given. */
export function refuseForReply({ name, reply }: MaybeReply, what: string): void {
  if (reply === null) return
  const message = `agent "${name}" has a reply: its code answers, and there is no model for ${what}.`
  throw new DefinitionError('definition', message)
}
