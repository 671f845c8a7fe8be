import { type Json, toJson } from '../base/json.ts'
import { describeIssues } from '../base/schema.ts'
import { outputContent, outputText } from '../graph/body.ts'
import { type Block, isBlock } from '../graph/content.ts'
import type { NodeEnd } from '../graph/end-node.ts'
import type { Body } from '../graph/rows.ts'
import type { Tool } from './tool.ts'

export interface ToolEnd extends NodeEnd {
  /** The whole of a result too large to show. */
  readonly body: Body | null
}

/** What a tool gives instead of a value when it failed and has more to say than a message. */
export class ErrorResult {
  readonly content: string | readonly Block[]

  constructor(content: string | readonly Block[]) {
    this.content = content
  }
}

/** A tool's value as the end of its node: checked, made JSON, cut where it is too long to show. */
export async function toolEnd(tool: Tool, value: unknown, nodeId: string): Promise<ToolEnd> {
  if (value instanceof ErrorResult) return failedWith(value, nodeId)
  const checked = tool.output === null ? { ok: true as const, value } : await tool.output.validate(value)
  if (!checked.ok) return errorEnd(`The tool gave a result that is not as promised: ${describeIssues(checked.issues)}`)
  const json = toJson(checked.value)
  if (!json.ok) return errorEnd(`The tool gave a result that is not JSON: ${json.error}`)
  return valueEnd(json.value, nodeId)
}

/** The same of a value that is JSON already. */
export function valueEnd(value: Json, nodeId: string): ToolEnd {
  if (isShown(value)) return { state: 'finished', ...outputContent(value, nodeId) }
  if (typeof value === 'string') return { state: 'finished', ...outputText(value, nodeId) }
  const { output, body } = outputText(JSON.stringify(value), nodeId)
  return { state: 'finished', output: body === null ? { ...output, value } : output, body }
}

function failedWith({ content }: ErrorResult, nodeId: string): ToolEnd {
  const { output, body } = outputContent(
    content.length === 0 ? 'Error: the tool failed and did not say why.' : content,
    nodeId,
  )
  return { state: 'finished', output: { ...output, isError: true }, body }
}

/** Blocks with a picture or file among them are for the model to see; any other list is data. */
function isShown(value: Json): value is Json & readonly Block[] {
  if (!Array.isArray(value) || !value.every(isBlock)) return false
  return value.some((block) => typeof block === 'object' && block !== null && 'mediaType' in block)
}

/** A failure as data: the model reads it and goes on (never an exception). */
export function errorEnd(message: string): ToolEnd {
  return { state: 'finished', output: { content: message, isError: true }, body: null }
}
