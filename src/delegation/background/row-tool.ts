import type { NodeRun } from '../../agent/hooks/node-run.ts'
import type { Json } from '../../base/json.ts'
import { type CheckedSchema, type JsonSchema, readSchema } from '../../base/schema/schema.ts'
import type { Keeper } from '../../files/files.ts'
import type { Ask } from '../../rules/turn/approve.ts'
import { errorEnd, type ToolEnd } from '../../tool/result.ts'
import { type Tool, tool } from '../../tool/tool.ts'
import { type OfferPlace, type ToolEntry, toolEntry } from '../../tool/toolkit.ts'

/** What a call did: its node has its end or waits; or it was refused with a code; or a person must be asked first. */
export type RowToolEnd = 'done' | Refusal | { readonly ask: Ask } | ToolEnd

export interface Refusal {
  readonly code: string
  readonly message: string
  readonly details: { readonly [key: string]: Json }
}

export type Operation = (run: NodeRun, input: { readonly [key: string]: unknown }) => RowToolEnd | Promise<RowToolEnd>

/** A tool that is one commit: it reads rows, and the same commit is its result. */
interface RowTool {
  readonly operation: Operation
  /** Offered only where a child may be started. */
  readonly startsChild: boolean
  /** Where it is shown to a model; left out: wherever it is allowed. */
  readonly isShown?: (place: OfferPlace) => boolean
  /** False: no grant has to name it. Default true. */
  readonly needsGrant?: boolean
  /** Says what it is for when a model is about to be shown it, instead of its description. */
  readonly describe?: (isKept: Keeper) => Promise<string>
}

const operations: WeakMap<Tool, RowTool> = new WeakMap()

export interface RowToolDefinition extends RowTool {
  readonly name: string
  readonly description: string
  /** As the model is shown it. Only unknown fields are refused by it: the operation says what is wrong with the others. */
  readonly inputSchema: JsonSchema & { readonly properties: object }
  /** Fields that are taken though no model is shown them; `all`: anything, for the operation to judge. */
  readonly alsoTakes?: readonly string[] | 'all'
}

export function rowTool({ name, description, inputSchema, alsoTakes = [], ...row }: RowToolDefinition): Tool {
  const made = tool({
    description,
    inputSchema,
    effect: 'idempotent',
    polls: true,
    execute: () => {
      throw new Error(`${name} works only as a tool of an agent that a runtime runs (missing_dag_context).`)
    },
  }) as Tool
  const loose = alsoTakes === 'all' ? anySchema(inputSchema) : looseSchema(inputSchema, alsoTakes)
  const own = Object.freeze({ ...made, input: loose, timeoutMs: null })
  operations.set(own, row)
  return own
}

function looseSchema(schema: RowToolDefinition['inputSchema'], others: readonly string[]): CheckedSchema {
  const fields = [...Object.keys(schema.properties), ...others]
  const properties = Object.fromEntries(fields.map((field) => [field, {}]))
  const check = readSchema({ type: 'object', properties, additionalProperties: false }, 'a background tool')
  return { jsonSchema: schema, validate: (value) => check.validate(value), prepare: () => check.prepare() }
}

function anySchema(jsonSchema: JsonSchema): CheckedSchema {
  return { jsonSchema, validate: (value) => ({ ok: true, value }), prepare: async () => undefined }
}

export function operationOf(entry: ToolEntry | undefined): Operation | undefined {
  return entry?.tool == null ? undefined : operations.get(entry.tool)?.operation
}

/** A tool of an agent's own as its toolkit holds it. */
export function ownEntry(name: string, own: Tool, memberOf: readonly string[]): ToolEntry {
  const entry = toolEntry(name, own, memberOf)
  const row = operations.get(own)
  if (row === undefined) return entry
  const { startsChild, isShown, needsGrant = true, describe } = row
  return { ...entry, schema: entry.schema, delegates: startsChild, isShown, needsGrant, describe }
}

/** What was refused as the end of its node: words for the model, the code for programs. */
export function refusedEnd(name: string, { code, message, details }: Refusal): ToolEnd {
  const end = errorEnd(`Tool '${name}' validation failed: ${message}`)
  const validation_error = { class: 'ValidationError', code, details }
  return { ...end, output: { ...end.output, metadata: { validation_error } } }
}
