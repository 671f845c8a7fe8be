import type { NodeRun } from '../../agent/node-run.ts'
import type { Json } from '../../base/json.ts'
import { type CheckedSchema, type JsonSchema, readSchema } from '../../base/schema.ts'
import type { Ask } from '../../graph/approve.ts'
import type { ToolEnd } from '../../tool/result.ts'
import { errorEnd } from '../../tool/result.ts'
import { type Tool, tool } from '../../tool/tool.ts'
import { type Place, type ToolEntry, toolEntry } from '../../tool/toolkit.ts'

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
  readonly isShown?: (place: Place) => boolean
}

const operations: WeakMap<Tool, RowTool> = new WeakMap()

export interface RowToolDefinition extends RowTool {
  readonly name: string
  readonly description: string
  /** As the model is shown it. Only unknown fields are refused by it: the operation says what is wrong with the others. */
  readonly inputSchema: JsonSchema & { readonly properties: object }
  /** Fields that are taken though no model is shown them. */
  readonly alsoTakes?: readonly string[]
}

export function rowTool({ name, operation, startsChild, isShown = EVERYWHERE, ...shown }: RowToolDefinition): Tool {
  const made = tool({
    description: shown.description,
    inputSchema: shown.inputSchema,
    effect: 'idempotent',
    polls: true,
    execute: () => {
      throw new Error(`${name} works only as a tool of an agent that a runtime runs (missing_dag_context).`)
    },
  }) as Tool
  const loose = looseSchema(shown.inputSchema, shown.alsoTakes ?? [])
  const own = Object.freeze({ ...made, input: loose, timeoutMs: null })
  operations.set(own, { operation, startsChild, isShown })
  return own
}

const EVERYWHERE = () => true

function looseSchema(schema: RowToolDefinition['inputSchema'], others: readonly string[]): CheckedSchema {
  const fields = [...Object.keys(schema.properties), ...others]
  const properties = Object.fromEntries(fields.map((field) => [field, {}]))
  const check = readSchema({ type: 'object', properties, additionalProperties: false }, 'a background tool')
  return { jsonSchema: schema, validate: (value) => check.validate(value), prepare: () => check.prepare() }
}

export function operationOf(entry: ToolEntry | undefined): Operation | undefined {
  return entry?.tool == null ? undefined : operations.get(entry.tool)?.operation
}

/** A tool of an agent's own as its toolkit holds it. */
export function ownEntry(name: string, own: Tool, memberOf: readonly string[]): ToolEntry {
  const entry = toolEntry(name, own, memberOf)
  const row = operations.get(own)
  if (row === undefined) return entry
  return { ...entry, schema: entry.schema, delegates: row.startsChild, isShown: row.isShown }
}

/** What was refused as the end of its node: words for the model, the code for programs. */
export function refusedEnd(name: string, { code, message, details }: Refusal): ToolEnd {
  const end = errorEnd(`Tool '${name}' validation failed: ${message}`)
  const validation_error = { class: 'ValidationError', code, details }
  return { ...end, output: { ...end.output, metadata: { validation_error } } }
}
