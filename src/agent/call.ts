import { DeniedError, ModelError } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'
import { parseJson, sizeOf } from '../base/json.ts'
import type { LiveNode } from '../conversation/feed.ts'
import { decide } from '../grant/decide.ts'
import { type Block, type Content, NO_USAGE, type ToolCall, type Usage } from '../graph/content.ts'
import type { LiveBody } from '../graph/event.ts'
import type { Answer } from '../graph/expand.ts'
import type { Model, ModelRequest, Part } from '../model/model.ts'
import type { NodeRun } from './node-run.ts'

/** Thrown with what was said before the call failed or was stopped, so that it is not lost. */
export class CallFailed extends Error {
  readonly partial: Answer

  constructor(partial: Answer, cause: unknown) {
    super('the model call failed', { cause })
    this.partial = partial
  }
}

/** The one way to a model (I8). What it streams is seen live; what it said is returned whole. */
export async function call(run: NodeRun, model: Model, request: ModelRequest): Promise<Answer> {
  const { work, node } = run
  const heard = new Heard(run, model)
  try {
    const decision = decide(run.layers, 'model', model.id)
    if (decision.verdict !== 'allow') {
      throw new DeniedError('denied', `The model ${model.id} is not allowed here: ${decision.reason}.`)
    }
    if (node.attempt > 1) heard.emit({ type: 'reset', attempt: node.attempt })
    for await (const part of model.stream(request, work)) {
      heard.take(part)
      if (work.stopCause !== null) throw work.signal.reason
    }
    if (!heard.finished) throw cutStream(model)
    return heard.answer()
  } catch (error) {
    throw new CallFailed(heard.answer(), error)
  } finally {
    heard.end()
  }
}

function cutStream(model: Model): ModelError {
  return new ModelError('model', `The stream of ${model.id} ended before the answer was complete.`, {
    isRetryable: true,
  })
}

/** Collects the parts of one answer. */
class Heard {
  finished = false
  private readonly run: NodeRun
  private readonly model: Model
  private live: LiveNode | undefined
  private text = ''
  private chunks = 0
  private reasoning = ''
  private usage: Usage = NO_USAGE
  private blocks: Block[] | undefined
  private calls: ToolCall[] | undefined

  constructor(run: NodeRun, model: Model) {
    this.run = run
    this.model = model
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
        this.calls ??= []
        this.calls.push(readCall(part))
        return
      case 'block':
        this.blocks ??= []
        this.blocks.push(part.block)
        return
      case 'finish':
        this.finished = true
        this.usage = part.usage
        return
    }
  }

  answer(): Answer {
    return {
      content: this.content(),
      reasoning: this.reasoning,
      calls: this.calls ?? NO_CALLS,
      droppedCalls: 0,
      usage: this.usage,
      model: this.model.id,
      streamed: this.chunks < 2 ? null : { chunks: this.chunks, bytes: sizeOf(this.text), sha256: sha256(this.text) },
    }
  }

  private content(): Content {
    if (this.blocks === undefined) return this.text
    return this.text === '' ? this.blocks : [{ type: 'text', text: this.text }, ...this.blocks]
  }

  /** A node has a place to stream to from its first delta until its end. */
  emit(body: LiveBody): void {
    const { node, conversation, home } = this.run
    this.live ??= home.feeds.beginLive(node, conversation)
    this.live.emit(body, home.ledger.clock.now())
  }

  end(): void {
    if (this.live !== undefined) this.run.home.feeds.endLive(this.run.node)
  }
}

const NO_CALLS: readonly ToolCall[] = []

/** Arguments that are not JSON stay as text, marked: the task answers the model with what is wrong. */
function readCall(part: Extract<Part, { type: 'tool-call' }>): ToolCall {
  const { id, name, input } = part
  if (typeof input !== 'string') return { id, name, input }
  if (input.trim() === '') return { id, name, input: {} }
  const parsed = parseJson(input)
  if (parsed.ok) return { id, name, input: parsed.value }
  return { id, name, input, invalid: parsed.error }
}
