import { InputError, LegateError, messageOf } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import { readOptions, record } from '../../base/options.ts'
import { describeIssues, type JsonSchema } from '../../base/schema/schema.ts'
import type { Run } from '../../conversation/run.ts'
import type { Content } from '../../graph/content.ts'
import type { RunOutcome } from '../../graph/outcome.ts'
import { objectSchema } from '../../model/object-schema.ts'
import type { Agent, RunOptions } from '../definition/agent.ts'

/** A tool for `tools` of the AI SDK's `generateText`, `streamText` and agents. */
export interface AiSdkTool<In = unknown> {
  readonly description: string
  readonly inputSchema: AiSdkSchema<In>
  readonly execute: (input: In, options: { readonly abortSignal?: AbortSignal | undefined }) => Promise<Json>
}

/** A Standard Schema, which is a schema of the AI SDK as well. */
export interface AiSdkSchema<In> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (
      value: unknown,
    ) => Promise<{ readonly value: In } | { readonly issues: readonly { readonly message: string }[] }>
    readonly jsonSchema: Readonly<Record<'input' | 'output', () => Record<string, unknown>>>
    readonly types?: { readonly input: unknown; readonly output: In } | undefined
  }
}

/**
 * The input type of the tool. Providers take one object: the agent's input, where it is one. An agent without an input
 * schema takes `{ message }`; any other input (a text, a list, a union) goes into `{ input }`.
 */
export type AiSdkToolInput<In> = unknown extends In
  ? In
  : [Content] extends [In]
    ? { message: string }
    : IsOneObject<Exclude<In, undefined>> extends true
      ? In
      : { input: In }

type IsOneObject<T> = [T] extends [readonly unknown[]] ? false : [T] extends [object] ? IsSingle<T> : false

/** False for a union, of which each member is less than the whole. */
type IsSingle<T, Whole = T> = T extends unknown ? ([Whole] extends [T] ? true : false) : never

/** Runs agents: any runtime. */
export interface Runner {
  run<In, Out>(agent: Agent<In, Out>, input: In, options?: RunOptions): Run<Out>
}

/**
 * Lets an agent of the AI SDK delegate to one of ours: the agent's input schema becomes the tool's, and its answer the
 * result. However the run ends, the other model reads text it can act on; only an abort throws.
 */
export function asAiSdkTool<In, Out>(
  agent: Agent<In, Out>,
  options: { readonly runtime?: Runner } = {},
): AiSdkTool<AiSdkToolInput<In>> {
  const { runtime } = readOptions('asAiSdkTool(agent, options)', options, { runtime: record })
  return {
    description: agent.description.trim() || `Call ${agent.name} to complete tasks`,
    inputSchema: schemaOf(agent),
    execute: async (given, { abortSignal }) => {
      const contract = contractOf(agent)
      const wrong = await contract.check(given)
      if (wrong !== undefined) return `The input of "${agent.name}" is wrong. ${wrong}`
      const input = contract.read(given) as In
      const aborting = abortSignal === undefined ? {} : { abortSignal }
      try {
        const run = runtime === undefined ? undefined : runtime.run(agent, input, aborting)
        return resultOf(agent, await (run === undefined ? outcomeOf(agent, input, aborting) : run.result))
      } catch (error) {
        if (InputError.isInstance(error)) return error.message
        return `"${agent.name}" could not be asked: ${messageOf(error)}`
      } finally {
        abortSignal?.throwIfAborted()
      }
    },
  }
}

/** Translates between the object that a tool takes and the input of an agent. */
interface ToolContract {
  readonly jsonSchema: JsonSchema
  read(given: unknown): unknown
  /** Explains what is wrong with the arguments; undefined where nothing is. */
  check(given: unknown): Promise<string | undefined>
}

function contractOf({ input }: Agent<never, unknown>): ToolContract {
  if (input === null) return MESSAGE
  const check = async (value: unknown) => {
    const checked = await input.validate(value)
    return checked.ok ? undefined : describeIssues(checked.issues)
  }
  const { schema: jsonSchema, field } = objectSchema(input.jsonSchema, 'input')
  if (field === null) return { jsonSchema, read: (given) => given, check }
  return { jsonSchema, read: (given) => fieldOf(given, field), check: async (given) => check(fieldOf(given, field)) }
}

const MESSAGE: ToolContract = {
  jsonSchema: {
    type: 'object',
    properties: { message: { type: 'string', description: 'What the agent is asked to do.' } },
    required: ['message'],
    additionalProperties: false,
  },
  read: (given) => fieldOf(given, 'message'),
  check: async (given) => (typeof fieldOf(given, 'message') === 'string' ? undefined : 'message: must be a text'),
}

function fieldOf(given: unknown, name: string): unknown {
  return typeof given === 'object' && given !== null ? (given as Record<string, unknown>)[name] : undefined
}

/**
 * Makes a schema that every version of the AI SDK knows: by the standard, and by the symbol that it puts on its own
 * schemas.
 */
function schemaOf<In>(agent: Agent<In, unknown>): AiSdkSchema<AiSdkToolInput<In>> {
  const { jsonSchema, check } = contractOf(agent)
  return Object.assign(
    {
      '~standard': {
        version: 1 as const,
        vendor: 'legate',
        validate: async (value: unknown) => {
          const wrong = await check(value)
          // Passes the value on unchanged: the agent reads it with its own schema.
          return wrong === undefined ? { value: value as AiSdkToolInput<In> } : { issues: [{ message: wrong }] }
        },
        jsonSchema: { input: () => ({ ...jsonSchema }), output: () => ({ ...jsonSchema }) },
      },
    },
    {
      [Symbol.for('vercel.ai.schema')]: true,
      jsonSchema,
      validate: async (value: unknown) => {
        const wrong = await check(value)
        return wrong === undefined ? { success: true, value } : { success: false, error: new Error(wrong) }
      },
    },
  )
}

/** `generate` throws unless the run completed; the error carries the outcome. */
async function outcomeOf<In, Out>(agent: Agent<In, Out>, input: In, options: RunOptions): Promise<RunOutcome<Out>> {
  try {
    return await agent.generate(input, options)
  } catch (error) {
    const outcome = LegateError.isInstance(error) ? error.details['outcome'] : undefined
    if (outcome === undefined) throw error
    return outcome as RunOutcome<Out>
  }
}

function resultOf(agent: Agent<never, unknown>, outcome: RunOutcome): Json {
  const { status, error, advice, text, output } = outcome
  if (status === 'completed') return agent.output === null ? text : (output as Json)
  const why = [`"${agent.name}" ended ${status}: ${error?.message ?? 'no reason was given'}`, advice]
  const partial = text === '' ? [] : [`What it had so far:\n${text}`]
  return [why.filter((line) => line !== null).join(' '), ...partial].join('\n\n')
}
