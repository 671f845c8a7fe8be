import { DefinitionError, isLegateError, messageOf } from '../base/error.ts'
import type { JsonSchema, Schema, StandardSchema } from '../base/schema/schema.ts'
import { type ApprovalRule, type Tool, tool } from '../tool/tool.ts'
import type { AiSdkCode } from './run-ai-sdk-tool.ts'

/** A result of `tool()` or `dynamicTool()` of the AI SDK: the fields that are used here. */
export interface ForeignTool {
  readonly type?: string | undefined
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly inputSchema: object
  readonly execute?: unknown
  readonly needsApproval?: unknown
  readonly toModelOutput?: unknown
}

/** True for an object with the fields of a tool of the AI SDK. */
export function isForeignTool(value: unknown): value is ForeignTool {
  if (typeof value !== 'object' || value === null) return false
  return 'inputSchema' in value || isOfProvider(value)
}

/** Caches the results, so that one object is one tool everywhere. */
const known: WeakMap<object, Tool> = new WeakMap()

/** Wraps a tool of the AI SDK. `where` begins the messages, as in `agent "x": tools.search`. */
export function fromAiSdkTool(given: ForeignTool, where: string): Tool {
  const made = known.get(given) ?? namedTool(given, where)
  known.set(given, made)
  return made
}

/** Adds the tool's name to errors. */
function namedTool(given: ForeignTool, where: string): Tool {
  try {
    return readTool(given, where)
  } catch (error) {
    if (!isLegateError(error) || error.message.startsWith(where)) throw error
    throw new DefinitionError('definition', `${where}: ${error.message}`, { cause: error })
  }
}

function readTool(given: ForeignTool, where: string): Tool {
  if (isOfProvider(given)) refuse(where, providerWords(given))
  const { description = '', inputSchema, execute, needsApproval = false, toModelOutput } = given
  if (typeof execute !== 'function')
    refuse(where, 'has no execute: nothing could run it. Give it execute(input, options).')
  if (typeof needsApproval !== 'boolean' && typeof needsApproval !== 'function') {
    refuse(where, 'has a needsApproval that is neither true, false nor a function.')
  }
  const code = { execute: execute as AiSdkCode['execute'], toModelOutput: readOutputCode(toModelOutput, where) }
  return tool({
    description,
    input: readInputSchema(inputSchema, where),
    ...approvalOf(needsApproval as boolean | Approves),
    execute: async (input, context) => (await import('./run-ai-sdk-tool.ts')).runAiSdkTool(code, input, context),
  }) as Tool
}

type Approves = (input: unknown, options: object) => boolean | Promise<boolean>

function readOutputCode(code: unknown, where: string): AiSdkCode['toModelOutput'] {
  if (code !== undefined && typeof code !== 'function') refuse(where, 'has a toModelOutput that is not a function.')
  return code as AiSdkCode['toModelOutput']
}

function approvalOf(needs: boolean | Approves): { approval?: ApprovalRule } {
  if (typeof needs !== 'function') return needs ? { approval: 'ask' } : {}
  return { approval: (input, { nodeId }) => needs(input, { toolCallId: nodeId, messages: [] }) }
}

/** Takes Standard Schemas as they are, and the contents of `jsonSchema()` and `zodSchema()`. */
function readInputSchema(given: unknown, where: string): Schema {
  const schema = isLazy(given) ? given() : given
  if (typeof schema !== 'object' || schema === null || !isMarked(schema)) return schema as Schema
  const { jsonSchema, validate } = schema as MarkedSchema
  if (typeof Reflect.get(jsonSchema, 'then') === 'function') {
    refuse(where, 'has a JSON Schema that comes later: give jsonSchema() the schema itself.')
  }
  return typeof validate === 'function' ? standardOf(jsonSchema, validate) : jsonSchema
}

interface MarkedSchema {
  readonly jsonSchema: JsonSchema
  readonly validate?: Validate
}

type Validate = (value: unknown) => Validated | PromiseLike<Validated>
type Validated = { success: true; value: unknown } | { success: false; error: unknown }

function standardOf(jsonSchema: JsonSchema, validate: Validate): StandardSchema {
  return {
    '~standard': {
      version: 1,
      vendor: 'ai',
      validate: async (value) => {
        const checked = await validate(value)
        return checked.success ? { value: checked.value } : { issues: [{ message: messageOf(checked.error) }] }
      },
      jsonSchema: { input: () => jsonSchema, output: () => jsonSchema },
    },
  }
}

function isMarked(schema: unknown): boolean {
  return typeof schema === 'object' && schema !== null && Reflect.get(schema, MARK) === true
}

/** The AI SDK puts this symbol on its own schemas. */
const MARK = Symbol.for('vercel.ai.schema')

function isLazy(schema: unknown): schema is () => unknown {
  return typeof schema === 'function' && !('~standard' in schema)
}

/** True for a tool that only the provider can run, or that its models know by name: `openai.tools.webSearch()`. */
function isOfProvider(value: object): boolean {
  return ['provider', 'provider-defined'].includes(String((value as Partial<ForeignTool>).type))
}

function providerWords(given: object): string {
  const { id } = given as { readonly id?: unknown }
  return `is "${String(id)}", which its provider defines and runs: no grant, budget or record would hold for it. Write a tool of your own with execute, or use an MCP server for it.`
}

function refuse(where: string, words: string): never {
  throw new DefinitionError('definition', `${where} ${words}`)
}
