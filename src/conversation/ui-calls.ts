import { type Json, parseJson } from '../base/json.ts'
import { type Content, textOf } from '../graph/content.ts'
import type { RunEvent } from '../graph/event.ts'
import type { UiMessageChunk } from './ui-chunk.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** Calls as a page knows them: ids of providers repeat, those of a page must not. */
export class UiCalls {
  /** By message and the provider's id. */
  private readonly ids: Map<string, string> = new Map()
  private readonly taken: Set<string> = new Set()
  private readonly begun: Set<string> = new Set()
  /** By the task. */
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

  /** The part of the call that a task carries out; null for a task that is no call of this run. */
  idOfTask(nodeId: string | null): string | null {
    return this.tasks.get(nodeId ?? '')?.toolCallId ?? null
  }

  asked({ nodeId }: Of<'approval-request'>): UiMessageChunk[] {
    const toolCallId = this.idOfTask(nodeId)
    if (toolCallId === null || nodeId === null) return []
    this.asking.add(toolCallId)
    return [{ type: 'tool-approval-request', approvalId: nodeId, toolCallId }]
  }

  /** Arguments that a person has changed are shown as they are used. */
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

  /** The message is told again: what it was about to call is closed, its calls get other ids. */
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

/** The value that a result was written of; its words where they are more than that. */
function valueIn(content: Content): Json {
  const read = typeof content === 'string' ? parseJson(content) : undefined
  return read?.ok === true ? read.value : shown(content)
}

function shown(content: Content): Json {
  return typeof content === 'string' ? content : content.map((block) => ({ ...block }))
}
