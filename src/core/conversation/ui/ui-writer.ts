import { addUsage, type Block, type Content, NO_USAGE, textOf, type Usage } from '../../graph/content.ts'
import type { RunEvent } from '../../graph/event.ts'
import { UiAsks } from './ui-asks.ts'
import { UiCalls, type UiForm } from './ui-calls.ts'
import type { UiDataPart, UiMessageChunk7, UiMetadata } from './ui-chunk.ts'
import { UiSubagents } from './ui-subagents.ts'

/** Writes the chunks of one run. Deltas come live; the message at their end fills the gaps. */
export class UiWriter {
  private readonly runId: string
  private readonly form: UiForm
  private readonly calls: UiCalls
  private readonly asks: UiAsks = new UiAsks()
  private readonly subagents: UiSubagents = new UiSubagents()
  private usage: Usage = NO_USAGE
  private wasWaiting = false
  private chunks: UiMessageChunk7[] = []
  /** The agent_message that is being written. */
  private nodeId: string | undefined
  private attempt = 0
  private open: { type: 'text' | 'reasoning'; id: string } | undefined
  private count = 0
  private seen = ''
  private isInStep = false
  /**
   * The number of parts that the page's message has by now, those with an id once; and the indexes of this attempt's
   * text.
   */
  private partCount = 0
  private readonly named: Set<string> = new Set()
  private spoken: number[] = []
  /** The data parts that stand in this step, as they are now. */
  private readonly stepData: Map<string, UiDataPart> = new Map()

  constructor(runId: string, form: UiForm) {
    this.runId = runId
    this.form = form
    this.calls = new UiCalls(form)
  }

  /** True while the run does nothing but wait for a person's word on calls of its own, or for their results from outside. */
  get isWaiting(): boolean {
    return this.calls.isWaiting
  }

  /** True when all of these tasks have waited for somebody. */
  hasAsked(nodeIds: readonly string[]): boolean {
    return this.calls.hasAsked(nodeIds)
  }

  /** The own calls that wait for somebody, with the hash of what each asks. */
  get waitingFor(): ReadonlyMap<string, string> {
    return this.calls.waitingFor
  }

  /** Ends the stream while the run waits. */
  pause(): UiMessageChunk7 {
    return { type: 'finish', finishReason: 'tool-calls', messageMetadata: { runId: this.runId, status: 'waiting' } }
  }

  start(): Extract<UiMessageChunk7, { type: 'start' }> {
    return { type: 'start', messageId: this.runId, messageMetadata: { runId: this.runId } }
  }

  write(event: RunEvent): readonly UiMessageChunk7[] {
    this.chunks = []
    if (event.runId === this.runId) this.own(event)
    else this.put(...this.subagents.write(event))
    this.put(...this.asks.write(event, this.calls.idOfTask(event.nodeId)))
    if (event.type === 'usage') this.spend(event.usage)
    if (this.isWaiting !== this.wasWaiting) this.wait(event.type !== 'run-end')
    return this.chunks
  }

  private tell(metadata: Omit<UiMetadata, 'runId'>): void {
    this.put({ type: 'message-metadata', messageMetadata: { runId: this.runId, ...metadata } })
  }

  private spend(usage: Usage): void {
    this.usage = addUsage(this.usage, usage)
    const { inputTokens, outputTokens } = this.usage
    this.tell({ inputTokens, outputTokens })
  }

  private wait(isOpen: boolean): void {
    this.wasWaiting = this.isWaiting
    if (isOpen) this.tell({ status: this.isWaiting ? 'waiting' : 'running' })
  }

  private own(event: RunEvent): void {
    switch (event.type) {
      case 'text-delta':
        return this.writeDelta('text', event.text, event.nodeId)
      case 'reasoning-delta':
        return this.writeDelta('reasoning', event.text, event.nodeId)
      case 'tool-input-delta':
        this.enter(event.nodeId)
        this.close()
        this.put(...this.calls.delta(this.nodeId ?? '', event))
        return
      case 'reset':
        return this.reset(event.nodeId)
      case 'message':
        if (event.role === 'agent' && event.purpose !== 'plan') this.message(event)
        return
      default:
        return this.ownTask(event)
    }
  }

  private ownTask(event: RunEvent): void {
    switch (event.type) {
      case 'tool-call':
        this.put(...this.calls.called(this.nodeId ?? '', event))
        return
      case 'approval-request':
        this.put(...this.calls.approve(event))
        return
      case 'question':
        return this.calls.handedOut(event)
      case 'approval-answer':
        this.put(...this.calls.answered(event))
        return
      case 'tool-result':
        this.put(...this.calls.ended(event))
        return
      case 'run-queued':
        return this.tell({ status: 'queued' })
      case 'run-start':
        return this.tell({ status: 'running' })
      case 'run-end':
        return this.end(event)
      default:
        this.put(...this.subagents.writeHost(event))
        return
    }
  }

  /** A message begins a step; the results of its calls belong to it. */
  private enter(nodeId: string | null): void {
    if (nodeId === null || nodeId === this.nodeId) return
    this.close()
    if (this.isInStep) this.put({ type: 'finish-step' })
    this.put({ type: 'start-step' })
    this.isInStep = true
    this.nodeId = nodeId
    this.attempt = 0
    this.count = 0
    this.spoken = []
    this.seen = ''
    this.calls.enter()
    this.stepData.clear()
  }

  private writeDelta(type: 'text' | 'reasoning', delta: string, nodeId: string | null): void {
    this.enter(nodeId)
    if (delta === '') return
    if (type === 'text') this.seen += delta
    if (this.open?.type !== type) {
      this.close()
      this.open = { type, id: `${this.nodeId}:${this.attempt}:${this.count++}` }
      this.spoken.push(this.partCount)
      this.put({ type: `${type}-start`, id: this.open.id })
    }
    this.put({ type: `${type}-delta`, id: this.open.id, delta })
  }

  private close(): void {
    if (this.open === undefined) return
    this.put({ type: `${this.open.type}-end`, id: this.open.id })
    this.open = undefined
  }

  private reset(nodeId: string | null): void {
    this.enter(nodeId)
    this.close()
    this.takeBack()
    this.put(...this.calls.forget(this.nodeId ?? ''))
    this.attempt++
    this.count = 0
    this.spoken = []
    this.seen = ''
  }

  /**
   * Version 7 drops all parts of the step, so those that still count are begun anew. Version 6 cannot take text back: a page
   * is told which parts to leave out.
   */
  private takeBack(): void {
    if (this.form.ui === 7) this.put({ type: 'reset-step' }, ...this.calls.again(), ...this.stepData.values())
    else if (this.spoken.length > 0) {
      this.put({ type: 'data-reset', data: { back: this.spoken.map((at) => this.partCount - at) } })
    }
  }

  private message(event: Extract<RunEvent, { type: 'message' }>): void {
    const { nodeId, content } = event
    this.enter(nodeId)
    const text = textIn(content)
    if (this.count === 0) this.writeAll(event)
    else if (text.startsWith(this.seen)) this.writeDelta('text', text.slice(this.seen.length), nodeId)
    this.close()
    if (typeof content !== 'string') for (const block of content) this.put(...fileOf(block))
  }

  /** Writes the whole message in its order, because nothing of it was streamed. */
  private writeAll({ nodeId, content, reasoning = '' }: Extract<RunEvent, { type: 'message' }>): void {
    this.writeDelta('reasoning', reasoning, nodeId)
    if (typeof content === 'string') return this.writeDelta('text', content, nodeId)
    for (const block of content) {
      if (block.type === 'reasoning') this.writeDelta('reasoning', block.text, nodeId)
      else this.writeDelta('text', textIn([block]), nodeId)
    }
  }

  private end({ outcome }: Extract<RunEvent, { type: 'run-end' }>): void {
    const { status, usage, error } = outcome
    const { inputTokens, outputTokens } = usage
    const ended: UiMetadata = { runId: this.runId, status, inputTokens, outputTokens }
    const messageMetadata = error === null ? ended : { ...ended, error: { code: error.code, message: error.message } }
    this.close()
    if (this.isInStep) this.put({ type: 'finish-step' })
    const isWhole = status === 'completed'
    const isCut = ['max_turns', 'over_budget', 'timed_out'].includes(status)
    if (isWhole || isCut) {
      return this.put({ type: 'finish', finishReason: isWhole ? 'stop' : 'length', messageMetadata })
    }
    // Neither an abort nor an error can carry the status of the run's end.
    this.put({ type: 'message-metadata', messageMetadata })
    if (status === 'cancelled') return this.put({ type: 'abort', reason: error?.message ?? 'cancelled' })
    this.put({ type: 'error', errorText: error?.message ?? status })
  }

  private put(...chunks: readonly UiMessageChunk7[]): void {
    this.chunks.push(...chunks)
    for (const chunk of chunks) {
      const isNew = this.isNewPart(chunk)
      if (isNew) this.partCount++
      if ('data' in chunk && 'id' in chunk) this.keep(chunk, isNew)
    }
  }

  private keep(part: Extract<UiDataPart, { id: string }>, isNew: boolean): void {
    const key = `${part.type} ${part.id}`
    if (isNew || this.stepData.has(key)) this.stepData.set(key, part)
  }

  /** True when the chunk adds a part to the page's message. */
  private isNewPart(chunk: UiMessageChunk7): boolean {
    switch (chunk.type) {
      case 'start-step':
      case 'text-start':
      case 'reasoning-start':
      case 'file':
      case 'data-reset':
        return true
      case 'tool-input-start':
      case 'tool-input-available':
        return this.isFirst(`tool ${chunk.toolCallId}`)
      case 'data-subagent':
      case 'data-subagent-call':
      case 'data-approval':
      case 'data-question':
        return this.isFirst(`${chunk.type} ${chunk.id}`)
      default:
        return false
    }
  }

  private isFirst(name: string): boolean {
    const { size } = this.named
    return this.named.add(name).size > size
  }
}

function textIn(content: Content): string {
  if (typeof content === 'string') return content
  const texts = content.map((block) =>
    block.type === 'text' ? block.text : block.type === 'json' ? textOf([block]) : '',
  )
  return texts.join('')
}

/** Also for a user's message. */
export function fileOf(block: Block): { type: 'file'; url: string; mediaType: string }[] {
  if (!('mediaType' in block)) return []
  const { data, mediaType } = block
  const isUrl = /^[a-z][a-z0-9+.-]*:/i.test(data)
  return [{ type: 'file', url: isUrl ? data : `data:${mediaType};base64,${data}`, mediaType }]
}
