import { toJson } from '../base/json.ts'
import { type Block, type Content, textOf } from '../graph/content.ts'
import { ErrorResult, ShownResult } from '../tool/result.ts'
import type { ToolContext } from '../tool/tool.ts'

/** The code of a tool of the AI SDK. */
export interface AiSdkCode {
  readonly execute: (input: unknown, options: object) => unknown
  readonly toModelOutput: ((given: { toolCallId: string; input: unknown; output: unknown }) => unknown) | undefined
}

/** Runs a tool of the AI SDK as one of ours. */
export async function runAiSdkTool(
  { execute, toModelOutput }: AiSdkCode,
  input: unknown,
  context: ToolContext,
): Promise<unknown> {
  const toolCallId = context.node.id
  const options = Object.assign(Object.create(context), { toolCallId, messages: [], abortSignal: context.signal })
  const output = await lastOf(execute(input, options), context)
  if (toModelOutput === undefined) return output
  return shown(output, await toModelOutput({ toolCallId, input, output }))
}

/** A generator yields results while it works: each is progress, the last one is the result. */
async function lastOf(started: unknown, { progress, signal }: ToolContext): Promise<unknown> {
  if (typeof started !== 'object' || started === null || !(Symbol.asyncIterator in started)) return started
  let last: unknown
  for await (const value of started as AsyncIterable<unknown>) {
    signal.throwIfAborted()
    last = value
    const json = toJson(value)
    progress('A preliminary result.', json.ok ? json.value : null)
  }
  return last
}

interface ModelOutput {
  readonly type?: unknown
  readonly value?: unknown
  readonly reason?: unknown
}

/** The content that the model reads instead of the output itself. */
function shown(output: unknown, given: unknown): unknown {
  const { type, value, reason } = (typeof given === 'object' && given !== null ? given : {}) as ModelOutput
  switch (type) {
    case 'text':
      return new ShownResult(output, String(value))
    case 'json':
      return new ShownResult(output, JSON.stringify(value ?? null))
    case 'error-text':
      return new ErrorResult(String(value))
    case 'error-json':
      return new ErrorResult(JSON.stringify(value ?? null))
    case 'execution-denied':
      return new ErrorResult(`This call was denied. ${typeof reason === 'string' ? reason : ''}`.trimEnd())
    case 'content':
      return new ShownResult(output, contentOf(value))
    default:
      throw new TypeError(
        `toModelOutput gave ${JSON.stringify(type)} as its type: text, json, content, error-text, ...`,
      )
  }
}

function contentOf(parts: unknown): Content {
  const blocks = (Array.isArray(parts) ? parts : []).map(blockOf)
  return blocks.every(({ type }) => type === 'text') ? textOf(blocks) : blocks
}

function blockOf(part: Readonly<Record<string, unknown>>): Block {
  const { type, text, data, url, mediaType } = part
  if (type === 'text') return { type: 'text', text: String(text) }
  const source = data ?? url
  if (typeof source !== 'string') return { type: 'text', text: JSON.stringify(part) }
  const isImage = String(type).startsWith('image') || String(mediaType).startsWith('image/')
  return {
    type: isImage ? 'image' : 'file',
    mediaType: String(mediaType ?? (isImage ? 'image/*' : '*/*')),
    data: source,
  }
}
