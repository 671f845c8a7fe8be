import { type Json, parseJson } from '../../base/json.ts'
import { type Content, textOf } from '../../graph/content.ts'
import type { RunEvent } from '../../graph/event.ts'
import type { UiMessageChunk7 } from './ui-chunk.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** The form of the chunks: for which version of the AI SDK, and whether the page may answer approvals. */
export interface UiForm {
  readonly ui: 6 | 7
  /** False: no call asks for an approval. It only shows that it waits. */
  readonly asks: boolean
}

/** The calls under a page's ids: ids of providers repeat, those of a page may not. */
export class UiCalls {
  private readonly form: UiForm
  /** Keyed by message and the provider's id. */
  private readonly ids: Map<string, string> = new Map()
  private readonly taken: Set<string> = new Set()
  private readonly begun: Set<string> = new Set()
  /** Keyed by the task. */
  private readonly tasks: Map<string, { toolCallId: string; toolName: string }> = new Map()
  private readonly asking: Set<string> = new Set()
  /** The tasks that have waited for somebody. */
  private readonly asked: Set<string> = new Set()
  /** The tasks that have not ended; and those of them that wait for somebody, with the hash of what they ask. */
  private readonly running: Set<string> = new Set()
  private readonly waiting: Map<string, string> = new Map()
  /** The chunks of this step's tasks. */
  private told: UiMessageChunk7[] = []

  constructor(form: UiForm) {
    this.form = form
  }

  /** True while this run does nothing but wait for a person's word on calls of its own, or for their results from outside. */
  get isWaiting(): boolean {
    return this.waiting.size > 0 && this.waiting.size === this.running.size
  }

  /** The tasks that wait for somebody, with the hash of what each asks. */
  get waitingFor(): ReadonlyMap<string, string> {
    return this.waiting
  }

  /** True when all of these tasks have waited for somebody. */
  hasAsked(nodeIds: readonly string[]): boolean {
    return nodeIds.every((id) => this.asked.has(id))
  }

  /** A step begins: what was told before it stays. */
  enter(): void {
    this.told = []
  }

  /** The chunks of this step's tasks once more, for a page that has dropped its parts. */
  again(): readonly UiMessageChunk7[] {
    return this.told
  }

  delta(messageId: string, { callId, tool, text }: Of<'tool-input-delta'>): UiMessageChunk7[] {
    const toolCallId = this.idOf(messageId, callId)
    const begin = this.begin(toolCallId, tool)
    return text === '' ? begin : [...begin, { type: 'tool-input-delta', toolCallId, inputTextDelta: text }]
  }

  called(messageId: string, { nodeId, call }: Of<'tool-call'>): UiMessageChunk7[] {
    const toolCallId = this.idOf(messageId, call.id)
    // The next call of this message with the same id is another one.
    this.ids.delete(keyOf(messageId, call.id))
    this.tasks.set(nodeId ?? '', { toolCallId, toolName: call.name })
    this.running.add(nodeId ?? '')
    return this.tell({ type: 'tool-input-available', toolCallId, toolName: call.name, input: call.input })
  }

  /** The id of the call that a task runs; null for a task that is no call of this run. */
  idOfTask(nodeId: string | null): string | null {
    return this.tasks.get(nodeId ?? '')?.toolCallId ?? null
  }

  /** A call is executed elsewhere: it waits for its result. A page sees that it has no output yet. */
  handedOut({ nodeId, to, seen }: Of<'question'>): void {
    if (to === 'outside' && this.tasks.has(nodeId ?? '')) this.wait(nodeId ?? '', seen)
  }

  approve({ nodeId, reason, seen }: Of<'approval-request'>): UiMessageChunk7[] {
    const toolCallId = this.idOfTask(nodeId)
    if (toolCallId === null || nodeId === null) return []
    this.wait(nodeId, seen)
    if (!this.form.asks) return []
    this.asking.add(toolCallId)
    const why = this.form.ui === 7 && reason !== '' ? { reason } : {}
    return this.tell({ type: 'tool-approval-request', approvalId: nodeId, toolCallId, ...why })
  }

  /** Shows arguments that a person has changed, as they are used; to version 7 also the answer. */
  answered({ nodeId, input, allowed, reason }: Of<'approval-answer'>): UiMessageChunk7[] {
    const task = this.tasks.get(nodeId ?? '')
    this.waiting.delete(nodeId ?? '')
    if (task === undefined || nodeId === null) return []
    const changed = input === undefined ? [] : this.tell({ type: 'tool-input-available', ...task, input })
    if (this.form.ui !== 7 || !this.asking.has(task.toolCallId)) return changed
    const why = reason === null ? {} : { reason }
    return [...changed, ...this.tell({ type: 'tool-approval-response', approvalId: nodeId, approved: allowed, ...why })]
  }

  ended(event: Of<'tool-result'>): UiMessageChunk7[] {
    const toolCallId = this.idOfTask(event.nodeId)
    this.waiting.delete(event.nodeId ?? '')
    this.running.delete(event.nodeId ?? '')
    if (toolCallId === null) return []
    if (event.state === 'rejected' && this.asking.has(toolCallId)) {
      return this.tell({ type: 'tool-output-denied', toolCallId })
    }
    const { output, errorText } = uiResult(event)
    if (errorText !== null) return this.tell({ type: 'tool-output-error', toolCallId, errorText })
    return this.tell({ type: 'tool-output-available', toolCallId, output })
  }

  /** The message starts over: closes its open calls, and gives its next calls other ids. */
  forget(messageId: string): UiMessageChunk7[] {
    const open = [...this.ids].filter(([key]) => key.startsWith(keyOf(messageId, '')))
    for (const [key] of open) this.ids.delete(key)
    if (this.form.ui === 7) return []
    return open.map(([, toolCallId]) => ({
      type: 'tool-output-error',
      toolCallId,
      errorText: 'The answer was cut and is asked for again.',
    }))
  }

  private wait(nodeId: string, seen: string): void {
    this.asked.add(nodeId)
    this.waiting.set(nodeId, seen)
  }

  private tell(chunk: UiMessageChunk7): UiMessageChunk7[] {
    this.told.push(chunk)
    return [chunk]
  }

  private begin(toolCallId: string, toolName: string): UiMessageChunk7[] {
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

/** The result of a call as a page shows it: the value that its tool returned, or the words of its failure. */
export function uiResult({
  content,
  isError,
  state,
  json,
}: Pick<Of<'tool-result'>, 'content' | 'isError' | 'state' | 'json'>): UiResult {
  if (isError || state !== 'finished') return { output: null, errorText: textOf(content) }
  return { output: json === true ? valueIn(content) : shown(content), errorText: null }
}

export interface UiResult {
  readonly output: Json
  /** Null for a call that went well. */
  readonly errorText: string | null
}

/** The value behind a result's text; the text itself where it is not JSON. */
function valueIn(content: Content): Json {
  const read = typeof content === 'string' ? parseJson(content) : undefined
  return read?.ok === true ? read.value : shown(content)
}

function shown(content: Content): Json {
  return typeof content === 'string' ? content : content.map((block) => ({ ...block }))
}
