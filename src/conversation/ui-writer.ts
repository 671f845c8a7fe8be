import { type Block, textOf } from '../graph/content.ts'
import type { RunEvent } from '../graph/event.ts'
import { UiCalls } from './ui-calls.ts'
import type { UiMessageChunk, UiSubagent } from './ui-chunk.ts'

/** Writes the chunks of one run. Deltas come live; the message that ends them says what was missed. */
export class UiWriter {
  private readonly runId: string
  private readonly calls: UiCalls = new UiCalls()
  private readonly subagents: Map<string, UiSubagent> = new Map()
  private chunks: UiMessageChunk[] = []
  /** The agent_message that is being told. */
  private nodeId: string | undefined
  private attempt = 0
  private open: { type: 'text' | 'reasoning'; id: string } | undefined
  private count = 0
  private seen = ''
  private isInStep = false

  constructor(runId: string) {
    this.runId = runId
  }

  start(): UiMessageChunk {
    return { type: 'start', messageId: this.runId, messageMetadata: { runId: this.runId } }
  }

  write(event: RunEvent): readonly UiMessageChunk[] {
    this.chunks = []
    if (event.turnId === this.runId) this.own(event)
    else this.childs(event)
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
    const path = [...event.path]
    if (event.type === 'run-start') this.child(event.turnId, { agent: event.agent, path })
    if (event.type === 'tool-call') this.child(event.turnId, { path, tool: event.call.name })
    if (event.type === 'tool-result') this.child(event.turnId, { path, tool: null })
    if (event.type === 'run-end') this.child(event.turnId, { path, status: event.outcome.status, tool: null })
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
    this.seen = ''
  }

  private say(type: 'text' | 'reasoning', delta: string, nodeId: string | null): void {
    this.enter(nodeId)
    if (delta === '') return
    if (type === 'text') this.seen += delta
    if (this.open?.type !== type) {
      this.close()
      this.open = { type, id: `${this.nodeId}:${this.attempt}:${this.count++}` }
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
    const parts = Array.from({ length: this.count }, (_, at) => `${this.nodeId}:${this.attempt}:${at}`)
    if (parts.length > 0) this.put({ type: 'data-reset', data: { parts } })
    this.put(...this.calls.forget(this.nodeId ?? ''))
    this.attempt++
    this.count = 0
    this.seen = ''
  }

  private message({ nodeId, content }: Extract<RunEvent, { type: 'message' }>): void {
    this.enter(nodeId)
    const text = typeof content === 'string' ? content : content.flatMap(saidText).join('')
    if (text.startsWith(this.seen)) this.say('text', text.slice(this.seen.length), nodeId)
    this.close()
    if (typeof content !== 'string') for (const block of content) this.put(...fileOf(block))
  }

  private end({ outcome }: Extract<RunEvent, { type: 'run-end' }>): void {
    const { status, usage, error } = outcome
    this.close()
    if (this.isInStep) this.put({ type: 'finish-step' })
    if (status === 'cancelled') return this.put({ type: 'abort', reason: error?.message ?? 'cancelled' })
    const isWhole = status === 'completed'
    const isCut = ['max_turns', 'over_budget', 'timed_out'].includes(status)
    if (!isWhole && !isCut) return this.put({ type: 'error', errorText: error?.message ?? status })
    this.put({
      type: 'finish',
      finishReason: isWhole ? 'stop' : 'length',
      messageMetadata: {
        runId: this.runId,
        status,
        inputTokens: usage.inputTokens,
        outputTokens: usage.outputTokens,
      },
    })
  }

  private put(...chunks: readonly UiMessageChunk[]): void {
    this.chunks.push(...chunks)
  }
}

function saidText(block: Block): string[] {
  return block.type === 'text' ? [block.text] : block.type === 'json' ? [textOf([block])] : []
}

function fileOf(block: Block): UiMessageChunk[] {
  if (!('mediaType' in block)) return []
  const { data, mediaType } = block
  const isUrl = /^[a-z][a-z0-9+.-]*:/i.test(data)
  return [{ type: 'file', url: isUrl ? data : `data:${mediaType};base64,${data}`, mediaType }]
}
