import { type Block, type Content, textOf } from '../graph/content.ts'
import type { RunEvent } from '../graph/event.ts'
import { UiAsks } from './ui-asks.ts'
import { UiCalls } from './ui-calls.ts'
import type { UiMessageChunk, UiMetadata, UiSubagent } from './ui-chunk.ts'

/** Writes the chunks of one run. Deltas come live; the message that ends them says what was missed. */
export class UiWriter {
  private readonly runId: string
  private readonly calls: UiCalls = new UiCalls()
  private readonly asks: UiAsks = new UiAsks()
  private readonly subagents: Map<string, UiSubagent> = new Map()
  private chunks: UiMessageChunk[] = []
  /** The agent_message that is being told. */
  private nodeId: string | undefined
  private attempt = 0
  private open: { type: 'text' | 'reasoning'; id: string } | undefined
  private count = 0
  private seen = ''
  private isInStep = false
  /** Parts of the message that a page has by now, those with an id once; and where the words of this attempt are. */
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
    if (event.turnId === this.runId) this.own(event)
    else this.childs(event)
    this.put(...this.asks.write(event, this.calls.idOfTask(event.nodeId)))
    return this.chunks
  }

  private own(event: RunEvent): void {
    switch (event.type) {
      case 'text-delta':
        return this.say('text', event.text, event.nodeId)
      case 'reasoning-delta':
        return this.say('reasoning', event.text, event.nodeId)
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
    if (change !== undefined) this.child(event.turnId, { path: [...event.path], ...change })
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

  private say(type: 'text' | 'reasoning', delta: string, nodeId: string | null): void {
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

  /** What was shown cannot be unsaid in this protocol: a page can leave these parts out. */
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
    const text = saidText(content)
    if (this.count === 0) this.sayAll(event)
    else if (text.startsWith(this.seen)) this.say('text', text.slice(this.seen.length), nodeId)
    this.close()
    if (typeof content !== 'string') for (const block of content) this.put(...fileOf(block))
  }

  /** Nothing of it was heard: all is told in the order in which it was said. */
  private sayAll({ nodeId, content, reasoning = '' }: Extract<RunEvent, { type: 'message' }>): void {
    this.say('reasoning', reasoning, nodeId)
    if (typeof content === 'string') return this.say('text', content, nodeId)
    for (const block of content) {
      if (block.type === 'reasoning') this.say('reasoning', block.text, nodeId)
      else this.say('text', saidText([block]), nodeId)
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
    // Neither an abort nor an error can say how the run ended.
    this.put({ type: 'message-metadata', messageMetadata })
    if (status === 'cancelled') return this.put({ type: 'abort', reason: error?.message ?? 'cancelled' })
    this.put({ type: 'error', errorText: error?.message ?? status })
  }

  private put(...chunks: readonly UiMessageChunk[]): void {
    this.chunks.push(...chunks)
    for (const chunk of chunks) if (this.isNewPart(chunk)) this.partCount++
  }

  /** Does a page put one more part into its message for it? */
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

/** What an event of a subagent says of what it does. */
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

function saidText(content: Content): string {
  if (typeof content === 'string') return content
  const texts = content.map((block) =>
    block.type === 'text' ? block.text : block.type === 'json' ? textOf([block]) : '',
  )
  return texts.join('')
}

/** Also of what a user has said. */
export function fileOf(block: Block): { type: 'file'; url: string; mediaType: string }[] {
  if (!('mediaType' in block)) return []
  const { data, mediaType } = block
  const isUrl = /^[a-z][a-z0-9+.-]*:/i.test(data)
  return [{ type: 'file', url: isUrl ? data : `data:${mediaType};base64,${data}`, mediaType }]
}
