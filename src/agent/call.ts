import { DeniedError, ModelError } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'
import { parseJson, sizeOf } from '../base/json.ts'
import type { LiveNode } from '../conversation/feed.ts'
import type { Work } from '../engine/engine.ts'
import { decide } from '../grant/decide.ts'
import type { Layer } from '../grant/grant.ts'
import { type Block, type Content, NO_USAGE, type ToolCall, type Usage } from '../graph/content.ts'
import type { Answer } from '../graph/expand.ts'
import type { FinishReason, Model, ModelRequest, Part } from '../model/model.ts'

export interface ModelCall {
  readonly model: Model
  readonly request: ModelRequest
  readonly layers: readonly Layer[]
  readonly work: Work
  readonly live: () => LiveNode
  readonly now: () => number
}

export interface CallResult {
  readonly answer: Answer
  readonly reason: FinishReason
}

/** Thrown with what was said before the call failed or was stopped, so that it is not lost. */
export class CallFailed extends Error {
  readonly partial: Answer

  constructor(partial: Answer, cause: unknown) {
    super('the model call failed', { cause })
    this.partial = partial
  }
}

/** The one way to a model (I8). What it streams is seen live; what it said is returned whole. */
export async function call(options: ModelCall): Promise<CallResult> {
  const { model, request, layers, work } = options
  const decision = decide(layers, 'model', model.id)
  if (decision.verdict !== 'allow') {
    throw new DeniedError('denied', `The model ${model.id} is not allowed here: ${decision.reason}.`)
  }
  const heard = new Heard(options)
  try {
    for await (const part of model.stream(request, work)) {
      heard.take(part)
      if (work.stopCause !== null) throw work.signal.reason
    }
    if (heard.reason === undefined) throw cutStream(model)
    return { answer: heard.answer(), reason: heard.reason }
  } catch (error) {
    throw new CallFailed(heard.answer(), error)
  }
}

function cutStream(model: Model): ModelError {
  return new ModelError('model', `The stream of ${model.id} ended before the answer was complete.`, {
    isRetryable: true,
  })
}

/** Collects the parts of one answer. */
class Heard {
  reason: FinishReason | undefined
  private readonly options: ModelCall
  private text = ''
  private chunks = 0
  private reasoning = ''
  private usage: Usage = NO_USAGE
  private readonly blocks: Block[] = []
  private readonly calls: ToolCall[] = []

  constructor(options: ModelCall) {
    this.options = options
  }

  take(part: Part): void {
    switch (part.type) {
      case 'text-delta':
        if (part.text === '') return
        this.text += part.text
        this.chunks++
        return this.emit(part)
      case 'reasoning-delta':
        this.reasoning += part.text
        return this.emit(part)
      case 'tool-input-delta':
        return this.emit({ type: 'tool-input-delta', callId: part.id, tool: part.name, text: part.text })
      case 'tool-call':
        this.calls.push(readCall(part))
        return
      case 'block':
        this.blocks.push(part.block)
        return
      case 'finish':
        this.reason = part.reason
        this.usage = part.usage
        return
    }
  }

  answer(): Answer {
    return {
      content: this.content(),
      reasoning: this.reasoning,
      calls: this.calls,
      droppedCalls: 0,
      usage: this.usage,
      model: this.options.model.id,
      streamed: this.chunks < 2 ? null : { chunks: this.chunks, bytes: sizeOf(this.text), sha256: sha256(this.text) },
    }
  }

  private content(): Content {
    if (this.blocks.length === 0) return this.text
    return this.text === '' ? this.blocks : [{ type: 'text', text: this.text }, ...this.blocks]
  }

  private emit(body: Parameters<LiveNode['emit']>[0]): void {
    this.options.live().emit(body, this.options.now())
  }
}

/** Arguments that are not JSON stay as text, marked: the task answers the model with what is wrong. */
function readCall(part: Extract<Part, { type: 'tool-call' }>): ToolCall {
  const { id, name, input } = part
  if (typeof input !== 'string') return { id, name, input }
  if (input.trim() === '') return { id, name, input: {} }
  const parsed = parseJson(input)
  if (parsed.ok) return { id, name, input: parsed.value }
  return { id, name, input, invalid: parsed.error }
}
