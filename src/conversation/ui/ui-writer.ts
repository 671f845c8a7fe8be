import { type Json, parseJson } from '../../base/json.ts'
import { type Block, type Content, textOf } from '../../graph/content.ts'
import type { RunEvent } from '../../graph/event.ts'
import type { UiApproval, UiDataPart, UiMessageChunk, UiMetadata, UiQuestion, UiSubagent } from './ui-chunk.ts'

/** Writes the chunks of one run. Deltas come live; the message at their end fills the gaps. */
export class UiWriter {
  private readonly runId: string
  private readonly calls: UiCalls = new UiCalls()
  private readonly asks: UiAsks = new UiAsks()
  private readonly subagents: Map<string, UiSubagent> = new Map()
  private chunks: UiMessageChunk[] = []
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

  constructor(runId: string) {
    this.runId = runId
  }

  start(): Extract<UiMessageChunk, { type: 'start' }> {
    return { type: 'start', messageId: this.runId, messageMetadata: { runId: this.runId } }
  }

  write(event: RunEvent): readonly UiMessageChunk[] {
    this.chunks = []
    if (event.runId === this.runId) this.own(event)
    else this.childs(event)
    this.put(...this.asks.write(event, this.calls.idOfTask(event.nodeId)))
    return this.chunks
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
        this.put(...this.calls.asked(event))
        return
      case 'approval-answer':
        this.put(...this.calls.answered(event))
        return
      case 'tool-result':
        this.put(...this.calls.ended(event))
        return
      case 'delegation-start':
        return this.child(event.childRunId, { agent: event.agent, path: [...event.path, event.agent] })
      case 'delegation-end':
        return this.child(event.childRunId, { status: event.status, tool: null })
      case 'run-end':
        return this.end(event)
      default:
        return
    }
  }

  private childs(event: RunEvent): void {
    const change = changeOf(event)
    if (change !== undefined) this.child(event.runId, { path: [...event.path], ...change })
  }

  private child(id: string, change: Partial<UiSubagent>): void {
    const before = this.subagents.get(id) ?? { agent: '', path: [], status: 'running', tool: null }
    const data = { ...before, ...change }
    if (data.agent === '') data.agent = data.path.at(-1) ?? ''
    this.subagents.set(id, data)
    this.put({ type: 'data-subagent', id, data })
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

  /** The protocol cannot take text back, so a page is told to leave these parts out. */
  private reset(nodeId: string | null): void {
    this.enter(nodeId)
    this.close()
    if (this.spoken.length > 0) this.put({ type: 'data-reset', data: { parts: this.spoken } })
    this.put(...this.calls.forget(this.nodeId ?? ''))
    this.attempt++
    this.count = 0
    this.spoken = []
    this.seen = ''
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

  private put(...chunks: readonly UiMessageChunk[]): void {
    this.chunks.push(...chunks)
    for (const chunk of chunks) if (this.isNewPart(chunk)) this.partCount++
  }

  /** True when the chunk adds a part to the page's message. */
  private isNewPart(chunk: UiMessageChunk): boolean {
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

/** The activity of a subagent that an event shows. */
function changeOf(event: RunEvent): Partial<UiSubagent> | undefined {
  switch (event.type) {
    case 'run-start':
      return { agent: event.agent }
    case 'tool-call':
      return { tool: event.call.name }
    case 'tool-result':
      return { tool: null }
    case 'approval-request':
    case 'question':
      return { status: 'waiting' }
    case 'approval-answer':
    case 'answer':
      return { status: 'running' }
    case 'run-end':
      return { status: event.outcome.status, tool: null }
    default:
      return undefined
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

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** The calls under a page's ids: ids of providers repeat, those of a page may not. */
export class UiCalls {
  /** Keyed by message and the provider's id. */
  private readonly ids: Map<string, string> = new Map()
  private readonly taken: Set<string> = new Set()
  private readonly begun: Set<string> = new Set()
  /** Keyed by the task. */
  private readonly tasks: Map<string, { toolCallId: string; toolName: string }> = new Map()
  private readonly asking: Set<string> = new Set()

  delta(messageId: string, { callId, tool, text }: Of<'tool-input-delta'>): UiMessageChunk[] {
    const toolCallId = this.idOf(messageId, callId)
    const begin = this.begin(toolCallId, tool)
    return text === '' ? begin : [...begin, { type: 'tool-input-delta', toolCallId, inputTextDelta: text }]
  }

  called(messageId: string, { nodeId, call }: Of<'tool-call'>): UiMessageChunk[] {
    const toolCallId = this.idOf(messageId, call.id)
    // The next call of this message with the same id is another one.
    this.ids.delete(keyOf(messageId, call.id))
    this.tasks.set(nodeId ?? '', { toolCallId, toolName: call.name })
    return [{ type: 'tool-input-available', toolCallId, toolName: call.name, input: call.input }]
  }

  /** The id of the call that a task runs; null for a task that is no call of this run. */
  idOfTask(nodeId: string | null): string | null {
    return this.tasks.get(nodeId ?? '')?.toolCallId ?? null
  }

  asked({ nodeId }: Of<'approval-request'>): UiMessageChunk[] {
    const toolCallId = this.idOfTask(nodeId)
    if (toolCallId === null || nodeId === null) return []
    this.asking.add(toolCallId)
    return [{ type: 'tool-approval-request', approvalId: nodeId, toolCallId }]
  }

  /** Shows arguments that a person has changed, as they are used. */
  answered({ nodeId, input }: Of<'approval-answer'>): UiMessageChunk[] {
    const task = this.tasks.get(nodeId ?? '')
    return task === undefined || input === undefined ? [] : [{ type: 'tool-input-available', ...task, input }]
  }

  ended({ nodeId, content, isError, state, json }: Of<'tool-result'>): UiMessageChunk[] {
    const toolCallId = this.idOfTask(nodeId)
    if (toolCallId === null) return []
    if (state === 'rejected' && this.asking.has(toolCallId)) return [{ type: 'tool-output-denied', toolCallId }]
    if (isError || state !== 'finished') return [{ type: 'tool-output-error', toolCallId, errorText: textOf(content) }]
    return [{ type: 'tool-output-available', toolCallId, output: json === true ? valueIn(content) : shown(content) }]
  }

  /** The message starts over: closes its open calls, and gives its next calls other ids. */
  forget(messageId: string): UiMessageChunk[] {
    const open = [...this.ids].filter(([key]) => key.startsWith(keyOf(messageId, '')))
    for (const [key] of open) this.ids.delete(key)
    return open.map(([, toolCallId]) => ({
      type: 'tool-output-error',
      toolCallId,
      errorText: 'The answer was cut and is asked for again.',
    }))
  }

  private begin(toolCallId: string, toolName: string): UiMessageChunk[] {
    if (this.begun.has(toolCallId)) return []
    this.begun.add(toolCallId)
    return [{ type: 'tool-input-start', toolCallId, toolName }]
  }

  private idOf(messageId: string, callId: string): string {
    const known = this.ids.get(keyOf(messageId, callId))
    if (known !== undefined) return known
    let id = callId === '' ? 'call' : callId
    for (let count = 2; this.taken.has(id); count++) id = `${callId === '' ? 'call' : callId}_${count}`
    this.taken.add(id)
    this.ids.set(keyOf(messageId, callId), id)
    return id
  }
}

function keyOf(messageId: string, callId: string): string {
  return `${messageId}/${callId}`
}

/** The value behind a result's text; the text itself where it is no JSON. */
function valueIn(content: Content): Json {
  const read = typeof content === 'string' ? parseJson(content) : undefined
  return read?.ok === true ? read.value : shown(content)
}

function shown(content: Content): Json {
  return typeof content === 'string' ? content : content.map((block) => ({ ...block }))
}

/** The requests to people in a run and below it, as data parts with everything that an answer needs. */
export class UiAsks {
  /** The last request of each node. */
  private readonly approvals: Map<string, UiApproval> = new Map()
  private readonly questions: Map<string, UiQuestion> = new Map()

  /** The part that an event of any depth changes. `toolCallId` belongs to the host's own call. */
  write(event: RunEvent, toolCallId: string | null): UiDataPart[] {
    switch (event.type) {
      case 'approval-request':
        return this.asked(event, toolCallId)
      case 'approval-answer':
        return this.allowed(event)
      case 'question':
        return this.questioned(event, toolCallId)
      case 'answer':
        return this.answered(event)
      case 'tool-result':
      case 'node-state':
        return this.over(event.nodeId ?? '')
      default:
        return []
    }
  }

  private asked(event: Of<'approval-request'>, toolCallId: string | null): UiDataPart[] {
    const { nodeId, digest, path, request, call, input, reason, expiresAt } = event
    if (nodeId === null) return []
    const tool = call?.name ?? null
    const asked = { nodeId, digest, path: [...path], request, tool, input, reason, expiresAt, toolCallId }
    return this.putApproval({ ...asked, status: 'open', by: null, answer: null })
  }

  private allowed({ nodeId, allowed, by, reason, input }: Of<'approval-answer'>): UiDataPart[] {
    const asked = this.approvals.get(nodeId ?? '')
    if (asked === undefined) return []
    const edited = input === undefined ? {} : { input }
    return this.putApproval({ ...asked, ...edited, status: allowed ? 'allowed' : 'denied', by, answer: reason })
  }

  private questioned(event: Of<'question'>, toolCallId: string | null): UiDataPart[] {
    const { nodeId, path, text, to, expiresAt } = event
    if (nodeId === null) return []
    const asked = { nodeId, path: [...path], text, to, expiresAt, toolCallId }
    return this.putQuestion({ ...asked, status: 'open', by: null, answer: null })
  }

  private answered({ nodeId, by, text }: Of<'answer'>): UiDataPart[] {
    const asked = this.questions.get(nodeId ?? '')
    if (asked === undefined) return []
    const isOver = by === 'nobody'
    return this.putQuestion(isOver ? { ...asked, status: 'over' } : { ...asked, status: 'answered', by, answer: text })
  }

  /** Closes the requests of a node that has ended. */
  private over(nodeId: string): UiDataPart[] {
    const [approval, question] = [this.approvals.get(nodeId), this.questions.get(nodeId)]
    return [
      ...(approval?.status === 'open' ? this.putApproval({ ...approval, status: 'over' }) : []),
      ...(question?.status === 'open' ? this.putQuestion({ ...question, status: 'over' }) : []),
    ]
  }

  /** A node may ask several times, one after the other: each request is a part. */
  private putApproval(data: UiApproval): UiDataPart[] {
    this.approvals.set(data.nodeId, data)
    return [{ type: 'data-approval', id: `${data.nodeId}/${data.digest}`, data }]
  }

  private putQuestion(data: UiQuestion): UiDataPart[] {
    this.questions.set(data.nodeId, data)
    return [{ type: 'data-question', id: data.nodeId, data }]
  }
}
