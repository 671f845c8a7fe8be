import { DefinitionError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { InferInput, InferOutput, Schema } from '../../base/schema/schema.ts'
import type { Request } from '../../grant/request.ts'
import type { Content } from '../../graph/content.ts'
import type { RunOutcome } from '../../graph/outcome.ts'
import type { Effect } from '../../graph/rows.ts'
import type { DelegateOptions } from '../../tool/attempts.ts'
import type { Delegate, KindContext } from '../../tool/tool.ts'
import type { AgentDefinition, Subagents } from '../definition/agent.ts'
import type { ReplyCore } from '../definition/input.ts'

/** Options for a model only. */
const FOR_MODELS = [
  'model',
  'instructions',
  'tools',
  'prompt',
  'settings',
  'sources',
  'toolkit',
  'repair',
  'eager',
  'briefing',
  'toolTrace',
  'acceptTruncated',
  'contextTurns',
] as const satisfies readonly (keyof AgentDefinition<undefined, undefined>)[]

type ForModels = (typeof FOR_MODELS)[number]

/** An agent that is code: `reply` answers instead of a model. Everything else is as for any agent. */
export interface ReplyDefinition<
  In extends Schema | undefined,
  Out extends Schema | undefined,
  Below extends Subagents = Record<never, never>,
> extends Omit<AgentDefinition<In, Out>, ForModels | 'subagents' | 'reply' | 'effect' | 'needs'> {
  /**
   * Returns the answer. A generator also yields text on the way, which readers see live; its return value is the
   * answer, or, without `output`, all the text it yielded.
   */
  reply(input: ReplyInput<In>, context: ReplyContext<Below>): ReplyAnswer<Out>
  /**
   * Whether it may run again, from its start, when its process dies in the middle. Default `effectful`: it may not, and
   * ends `uncertain`. Otherwise each `delegate` and `ask` gets the result that it had before, in whatever order the code
   * makes them.
   */
  readonly effect?: Effect
  /**
   * Everything that its code does beside answering, such as `net:api.example.com`: each is decided before the code runs. If
   * a person must allow one, the run waits for it.
   */
  needs?(input: ReplyInput<In>): readonly (string | Request)[]
  /** Agents it may delegate to, by key: `context.delegate('key', input)`. */
  readonly subagents?: Below
}

/** The input after the schema has read it, as JSON; without a schema, the message. */
export type ReplyInput<In extends Schema | undefined> = In extends Schema ? InferOutput<In> : Content

export type ReplyAnswer<Out extends Schema | undefined> = Out extends Schema
  ? InferInput<Out> | Promise<InferInput<Out>> | AsyncGenerator<string, InferInput<Out>, void>
  : // biome-ignore lint/suspicious/noConfusingVoidType: what a generator without a return is said to return.
    Content | Promise<Content> | AsyncGenerator<string, Content | void, void>

/** The second argument of the code: everything that tools and kinds of nodes get, and a person to ask. */
export interface ReplyContext<Below = Record<never, never>> extends Omit<KindContext, 'delegate'> {
  /** Starts an agent as a child of this answer and returns its outcome. */
  readonly delegate: ReplyDelegate<Below>
  /**
   * Asks a person and returns the answer; null where nobody answered in time. Needs `tool:ask_person`, and counts as a
   * tool call. `runtime.questions()` lists the questions, `runtime.answer(nodeId, { text })` answers one.
   */
  ask(question: string): Promise<string | null>
  /** The value that the code kept in an earlier try of this answer; null where there is none. */
  readonly kept: Json
  /**
   * Keeps a value of at most 100,000 bytes in the row of this answer. When the process dies and the code runs again, it finds
   * the value in `kept`: such as the id of something that it began elsewhere.
   */
  keep(value: Json): Promise<void>
}

/** Also takes the key of one of its subagents, with the settings it has there. */
export interface ReplyDelegate<Below> extends Delegate {
  /** Starts one of its subagents by its key, as a child of this answer. */
  <Key extends KeyOf<Below>>(
    key: Key,
    input: InputOf<Below[Key]>,
    options?: DelegateOptions,
  ): Promise<RunOutcome<OutputOf<Below[Key]>>>
}

type KeyOf<Below> = Below extends readonly unknown[] ? never : keyof Below & string

type AgentIn<Value> = Value extends { readonly agent: infer Given }
  ? AgentIn<Given>
  : Value extends { '~asked'?(input: never): void }
    ? Value
    : Value extends () => infer Made
      ? Made
      : never

type InputOf<Value> = AgentIn<Value> extends { '~asked'?(input: infer In): void } ? WithoutPresets<In, Value> : never

type WithoutPresets<In, Value> = Value extends { readonly presets: infer Presets }
  ? Omit<In, keyof Presets> & Partial<In>
  : In

type OutputOf<Value> =
  AgentIn<Value> extends { generate(input: never): Promise<{ readonly output: infer Out }> } ? Out : never

/** Reads the code and its effect; null for an agent with a model. Refuses options for a model. */
export function readReply(definition: object, name: string): ReplyCore | null {
  const given = definition as { readonly reply?: unknown; readonly effect?: unknown; readonly needs?: unknown }
  const { reply, effect = 'effectful', needs } = given
  if (reply === undefined) {
    const lone = given.effect === undefined ? (needs === undefined ? undefined : 'needs') : 'effect'
    if (lone === undefined) return null
    return refuse(`"${name}": ${lone} is of code that answers: give it a reply too, or leave ${lone} out.`)
  }
  if (typeof reply !== 'function') return refuse(`the reply of "${name}" must be a function: reply(input, context).`)
  const other = FOR_MODELS.find((key) => Reflect.get(definition, key) !== undefined)
  if (other !== undefined) {
    refuse(
      `"${name}" has a reply and "${other}", which is for a model. An agent has a model or a reply: leave one out.`,
    )
  }
  if (!EFFECTS.includes(effect as Effect)) {
    refuse(`the effect of "${name}" is "pure", "idempotent" or "effectful", not ${JSON.stringify(effect)}.`)
  }
  if (needs !== undefined && typeof needs !== 'function')
    refuse(`the needs of "${name}" must be a function of its input.`)
  return { effect: effect as Effect, code: reply as ReplyCore['code'], needs: (needs ?? null) as ReplyCore['needs'] }
}

const EFFECTS: readonly Effect[] = ['pure', 'idempotent', 'effectful']

function refuse(message: string): never {
  throw new DefinitionError('definition', `agent(): ${message}`)
}
