// Row tools: tools that read and write only rows, in one commit that also holds their result. The background tools
// (`subagent_*`, `ask_host`, `ask_person`) and those of recipes (`subagent`, `delegate`, `load`) are row tools.
//
// Owns: the map from a `Tool` to its operation, and the form of a refusal.
// Called by: `run/task`, which runs the operation with the checks every tool gets.
//
// Must stay true:
// - An operation that returns `done` has ended or parked its node in its own commit; nothing else may commit it.
// - A refusal has words for the model and a code for programs.

import type { NodeRun } from '../../agent/hooks/node-run.ts'
import type { Json } from '../../base/json.ts'
import { type CheckedSchema, type JsonSchema, readSchema } from '../../base/schema/schema.ts'
import type { Keeper } from '../../files/files.ts'
import type { ApprovalRequest } from '../../rules/turn/approval-of.ts'
import { errorEnd, type ToolEnd } from '../../tool/result.ts'
import { type Tool, tool } from '../../tool/tool.ts'
import { type OfferPlace, type ToolEntry, toolEntry } from '../../tool/toolkit.ts'
import { askOutside } from './ask-outside.ts'

/**
 * How a call ended: `done` if its commit ended the node or left it waiting, else a refusal with a code, a question for
 * a person, or a result.
 */
export type RowToolEnd = 'done' | ToolRefusal | { readonly ask: ApprovalRequest } | ToolEnd

export interface ToolRefusal {
  readonly code: string
  readonly message: string
  readonly details: { readonly [key: string]: Json }
}

export type RowOperation = (
  run: NodeRun,
  input: { readonly [key: string]: unknown },
) => RowToolEnd | Promise<RowToolEnd>

/** A tool that takes exactly one commit: it reads rows, and the commit that changes them also holds its result. */
interface RowTool {
  readonly operation: RowOperation
  /** Whether the tool is offered only where the agent may start a child. */
  readonly startsChild: boolean
  /** Decides whether a model sees the tool at this place. Default: wherever it is allowed. */
  readonly isShown?: (place: OfferPlace) => boolean
  /** False if the tool works without a grant that names it. Default true. */
  readonly needsGrant?: boolean
  /** Makes the description a model sees, in place of the fixed one. */
  readonly describe?: (isKept: Keeper) => Promise<string>
}

const operations: WeakMap<Tool, RowTool> = new WeakMap()

export interface RowToolDefinition extends RowTool {
  readonly name: string
  readonly description: string
  /** The schema a model sees. It rejects only unknown fields; the operation reports what is wrong with the others. */
  readonly input: JsonSchema & { readonly properties: object }
  /**
   * Fields the tool accepts although no model sees them; `all` accepts anything and leaves the check to the operation.
   */
  readonly alsoTakes?: readonly string[] | 'all'
}

export function rowTool({ name, description, input, alsoTakes = [], ...row }: RowToolDefinition): Tool {
  const made = tool({
    description,
    input,
    effect: 'idempotent',
    polls: true,
    execute: () => {
      throw new Error(`${name} works only as a tool of an agent that a runtime runs (missing_dag_context).`)
    },
  }) as Tool
  const loose = alsoTakes === 'all' ? anySchema(input) : looseSchema(input, alsoTakes)
  const own = Object.freeze({ ...made, input: loose, timeoutMs: null })
  operations.set(own, row)
  return own
}

function looseSchema(schema: RowToolDefinition['input'], others: readonly string[]): CheckedSchema {
  const fields = [...Object.keys(schema.properties), ...others]
  const properties = Object.fromEntries(fields.map((field) => [field, {}]))
  const check = readSchema({ type: 'object', properties, additionalProperties: false }, 'a background tool')
  return { jsonSchema: schema, validate: (value) => check.validate(value), prepare: () => check.prepare() }
}

function anySchema(jsonSchema: JsonSchema): CheckedSchema {
  return { jsonSchema, validate: (value) => ({ ok: true, value }), prepare: async () => undefined }
}

export function operationOf(entry: ToolEntry | undefined): RowOperation | undefined {
  if (entry?.tool == null) return undefined
  return entry.tool.outside === null ? operations.get(entry.tool)?.operation : askOutside
}

/** Wraps one of an agent's own tools as an entry of its toolkit. */
export function ownEntry(name: string, own: Tool, memberOf: readonly string[]): ToolEntry {
  const entry = toolEntry(name, own, memberOf)
  const row = operations.get(own)
  if (row === undefined) return entry
  const { startsChild, isShown, needsGrant = true, describe } = row
  return { ...entry, schema: entry.schema, delegates: startsChild, isShown, needsGrant, describe }
}

/** Turns a refusal into the end of its node: words for the model, a code for programs. */
export function refusedEnd(name: string, { code, message, details }: ToolRefusal): ToolEnd {
  const end = errorEnd(`Tool '${name}' validation failed: ${message}`)
  const validation_error = { class: 'ValidationError', code, details }
  return { ...end, output: { ...end.output, metadata: { validation_error } } }
}
