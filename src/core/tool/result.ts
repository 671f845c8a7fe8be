// The ends of a task: turns the value, the content or the error of a tool into the rows' form, and cuts what is too
// long to show. `tool/invoke`, `delegation/run` and the hooks make ends with it; tools return `ErrorResult` or
// `ShownResult` where a plain value does not suffice. It also has `read_result`, the tool that pages through a cut
// result.
//
// Stays true:
// - A result is JSON that fits the tool's output schema, or an error that the model can read. It never throws.
// - A long result is stored whole as a body, and shown in part.
// - `read_result` reads results of its own conversation only; any other id answers as if it did not exist (I9).

import { type Json, toJson, truncateUtf8 } from '../base/json.ts'
import { describeIssues } from '../base/schema/schema.ts'
import { outputContent, outputText, SHOWN_BYTES } from '../graph/commit.ts'
import { type Block, type Content, isBlock } from '../graph/content.ts'
import type { StoreReader } from '../graph/reader.ts'
import type { Body, Node } from '../graph/rows.ts'
import type { NodeEnd } from '../rules/turn/end-node.ts'
import { lookWith } from '../store/look.ts'
import type { CodeResult } from './tape.ts'
import { type Tool, tool } from './tool.ts'

export interface ToolEnd extends NodeEnd {
  /** The whole of a result too large to show. */
  readonly body: Body | null
  /** The tool's whole result where a model is shown less: for hooks that may still change it. */
  readonly whole?: { readonly content: Content; readonly value: Json | undefined }
}

/** Return this from a tool that failed and has more to show than a message. */
export class ErrorResult {
  readonly content: string | readonly Block[]

  constructor(content: string | readonly Block[]) {
    this.content = content
  }
}

/** Return this from a tool whose model should read something else than the value. */
export class ShownResult {
  readonly value: unknown
  readonly content: Content

  constructor(value: unknown, content: Content) {
    this.value = value
    this.content = content
  }
}

/** Reads the value that a tool returned: checks it and makes it JSON. */
export async function readToolValue(tool: Tool, value: unknown): Promise<CodeResult> {
  if (value instanceof ErrorResult) return { error: value.content }
  if (value instanceof ShownResult) {
    const given = await readToolValue(tool, value.value)
    return 'value' in given ? { ...given, shown: value.content } : given
  }
  const checked = tool.output === null ? { ok: true as const, value } : await tool.output.validate(value)
  if (!checked.ok) return { error: `The tool gave a result that is not as promised: ${describeIssues(checked.issues)}` }
  const json = toJson(checked.value)
  return json.ok ? { value: json.value } : { error: `The tool gave a result that is not JSON: ${json.error}` }
}

/** The end of a node with this value, cut where it is too long to show. */
export function valueEnd(value: Json, nodeId: string): ToolEnd {
  if (isShown(value)) return contentEnd(value, nodeId)
  if (typeof value === 'string') return contentEnd(value, nodeId)
  const content = JSON.stringify(value)
  const { output, body } = outputText(content, nodeId)
  if (body === null) return { state: 'finished', output: { ...output, value }, body }
  return { state: 'finished', output, body, whole: { content, value } }
}

/**
 * The end of a node whose model reads something else than the value. Leaves out a value that is too long to store
 * beside it.
 */
export function shownEnd(value: Json, content: Content, nodeId: string): ToolEnd {
  const end = contentEnd(content, nodeId)
  const kept = valueEnd(value, nodeId)
  return kept.body === null ? { ...end, output: { ...end.output, value } } : end
}

function contentEnd(content: Content, nodeId: string): ToolEnd {
  const { output, body } = outputContent(content, nodeId)
  if (body === null) return { state: 'finished', output, body }
  return { state: 'finished', output, body, whole: { content, value: undefined } }
}

/** The end of a node that failed with an explanation. */
export function failedWith(content: ErrorResult['content'], nodeId: string): ToolEnd {
  const end = contentEnd(content.length === 0 ? 'Error: the tool failed and did not say why.' : content, nodeId)
  return { ...end, output: { ...end.output, isError: true } }
}

/** A list of blocks with a picture or file is shown to the model; any other list is data. */
function isShown(value: Json): value is Json & readonly Block[] {
  if (!Array.isArray(value) || !value.every(isBlock)) return false
  return value.some((block) => typeof block === 'object' && block !== null && 'mediaType' in block)
}

/** Ends a node with a failure as data: the model reads it and continues (never an exception). */
export function errorEnd(message: string): ToolEnd {
  return { state: 'finished', output: { content: message, isError: true }, body: null }
}

export const READ_RESULT = 'read_result'

let reader: Tool | undefined

/**
 * Pages through results that were too long to show. A conversation with such a result offers it; it reads only its own
 * results. Its schema is read once, for all stores.
 */
export function readResultTool(store: StoreReader): Tool {
  reader ??= tool({
    description: 'Reads more of an earlier tool result that was cut. Use the id and offset that the cut result names.',
    input: {
      type: 'object',
      properties: {
        id: { type: 'string', description: 'The id named by the cut result' },
        offset: { type: 'integer', minimum: 0, description: 'Where to read on, in characters' },
      },
      required: ['id', 'offset'],
      additionalProperties: false,
    },
    effect: 'pure',
    execute: () => undefined,
  }) as Tool
  const execute: Tool['execute'] = (input, { node }) => readOn(store, node, input as PageOfResult)
  return Object.freeze({ ...reader, execute })
}

type Caller = Pick<Node, 'id' | 'conversationId'>

interface PageOfResult {
  readonly id: string
  readonly offset: number
}

async function readOn(store: StoreReader, node: Caller, { id, offset }: PageOfResult): Promise<string> {
  const { isOwnResult } = await import('../graph/lane.ts')
  const text = await lookWith(store, node.id, (tree) => {
    const task = tree.node(id)
    const isOwn = task !== undefined && isOwnResult(tree, node, task)
    const own = isOwn ? task.output.bodyRef : undefined
    return own === undefined ? undefined : tree.body(own)
  })
  if (text === undefined) throw new Error(`there is no cut result ${id} in this conversation`)
  const page = truncateUtf8(text.slice(offset, offset + SHOWN_BYTES), SHOWN_BYTES - 1_024)
  const end = offset + page.length
  if (end >= text.length) return page
  return `${page}\n[${text.length - end} characters left. To read on: offset ${end}]`
}
