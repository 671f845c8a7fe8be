import type { UiApproval, UiDataPart, UiMessage, UiMessageChunk, UiPart, UiToolPart } from './ui-chunk.ts'

type TextPart = Extract<UiPart, { type: 'text' | 'reasoning' }>

/** Makes the message of its chunks, as the AI SDK does on a page. */
export class UiMessageMaker {
  readonly message: UiMessage
  private readonly open: Map<string, TextPart> = new Map()
  private readonly calls: Map<string, UiToolPart> = new Map()

  constructor({ messageId, messageMetadata }: Extract<UiMessageChunk, { type: 'start' }>) {
    this.message = { id: messageId, role: 'assistant', metadata: messageMetadata, parts: [] }
  }

  take(chunk: UiMessageChunk): void {
    switch (chunk.type) {
      case 'start-step':
        return this.add({ type: 'step-start' })
      case 'text-start':
      case 'reasoning-start':
        return this.begin(chunk.type, chunk.id)
      case 'text-delta':
      case 'reasoning-delta':
        return this.grow(chunk.id, chunk.delta)
      case 'text-end':
      case 'reasoning-end':
        return this.end(chunk.id)
      case 'file':
        return this.add({ type: 'file', mediaType: chunk.mediaType, url: chunk.url })
      case 'message-metadata':
      case 'finish':
        this.message.metadata = { ...this.message.metadata, ...chunk.messageMetadata }
        return
      default:
        return this.takeCall(chunk)
    }
  }

  private takeCall(chunk: UiMessageChunk): void {
    switch (chunk.type) {
      case 'tool-input-available':
        return this.call(chunk)
      case 'tool-approval-request':
        return this.change(chunk.toolCallId, { state: 'approval-requested', approval: { id: chunk.approvalId } })
      case 'tool-output-available':
        this.answered(chunk.toolCallId)
        return this.change(chunk.toolCallId, { state: 'output-available', output: chunk.output })
      case 'tool-output-error':
        this.answered(chunk.toolCallId)
        return this.change(chunk.toolCallId, { state: 'output-error', errorText: chunk.errorText })
      case 'tool-output-denied':
        return this.change(chunk.toolCallId, { state: 'output-denied' })
      case 'data-subagent':
      case 'data-approval':
      case 'data-question':
        return this.data(chunk)
      default:
        return
    }
  }

  private add(part: UiPart): void {
    this.message.parts.push(part)
  }

  private begin(type: 'text-start' | 'reasoning-start', id: string): void {
    const said = { text: '', state: 'streaming' } as const
    const part: TextPart = type === 'text-start' ? { type: 'text', ...said } : { type: 'reasoning', id, ...said }
    this.open.set(id, part)
    this.add(part)
  }

  private grow(id: string, delta: string): void {
    const part = this.open.get(id)
    if (part !== undefined) part.text += delta
  }

  private end(id: string): void {
    const part = this.open.get(id)
    if (part !== undefined) part.state = 'done'
  }

  private call({ toolCallId, toolName, input }: Extract<UiMessageChunk, { type: 'tool-input-available' }>): void {
    // One whose arguments a person has changed is shown with those.
    if (this.calls.has(toolCallId)) return this.change(toolCallId, { input })
    const part: UiToolPart = { type: `tool-${toolName}`, toolCallId, state: 'input-available', input }
    this.calls.set(toolCallId, part)
    this.add(part)
  }

  private change(toolCallId: string, change: Partial<UiToolPart>): void {
    const part = this.calls.get(toolCallId)
    if (part !== undefined) Object.assign(part, change)
  }

  /** What ended without a person's yes says nothing of one. */
  private answered(toolCallId: string): void {
    const part = this.calls.get(toolCallId)
    if (part?.approval?.approved !== true) delete part?.approval
  }

  private data(chunk: Exclude<UiDataPart, { type: 'data-reset' }>): void {
    const known = this.message.parts.find((part) => part.type === chunk.type && part.id === chunk.id)
    if (known === undefined) this.add({ ...chunk })
    else Object.assign(known, chunk)
    if (chunk.type === 'data-approval') this.decide(chunk.data)
  }

  /** The stream has no word for an answer; a page says it of itself when a person has clicked. */
  private decide({ toolCallId, nodeId: id, status, answer }: UiApproval): void {
    const part = toolCallId === null ? undefined : this.calls.get(toolCallId)
    if (part === undefined || (status !== 'allowed' && status !== 'denied')) return
    part.approval = { id, approved: status === 'allowed', ...(answer === null ? {} : { reason: answer }) }
    if (part.state === 'approval-requested') part.state = 'approval-responded'
  }
}
