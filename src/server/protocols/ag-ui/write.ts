// Turns the events of a run and of all below it into events of AG-UI. Pure: it reads events and holds what is open.
//
// Must stay true:
//   - Everything of a subagent carries its `subagentRunId`, and lies between its SUBAGENT_STARTED and its end.
//   - What was opened is closed before the run ends: messages, then subagents, the deepest first.
//   - Ids of calls are ids of nodes. A message that a model writes anew gets another id.

import type { EventType } from '@ag-ui/core'
import type { Json, RunEvent } from '../../../index.ts'
import { contentText } from './rows.ts'

/** A subagent that was known before the stream began. */
export interface KnownSubagent {
  readonly runId: string
  readonly agent: string
  readonly taskId: string
  readonly hostRunId: string
}

/** A message that is being written. */
interface OpenMessage {
  readonly messageId: string
  readonly what: 'text' | 'reasoning'
  readonly runId: string
  said: string
}

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

export class AgUiWriter {
  private readonly runId: string
  private readonly known: Map<string, KnownSubagent>
  /** Subagents that the stream has opened and not closed, the host before its children. */
  private readonly open: Set<string> = new Set()
  private readonly writing: Map<string, OpenMessage> = new Map()
  /** How often each node was written anew. */
  private readonly tries: Map<string, number> = new Map()
  private readonly spoken: Set<string> = new Set()
  private readonly used: Map<string, Usage> = new Map()
  /** Nodes that have asked for something in this stream, and were not answered in it. */
  readonly asked: Set<string> = new Set()

  constructor(runId: string, known: readonly KnownSubagent[] = []) {
    this.runId = runId
    this.known = new Map(known.map((one) => [one.runId, one]))
  }

  write(event: RunEvent): AgUiEvent[] {
    const told = this.tell(event)
    return told.length === 0 ? told : [...this.opened(event), ...told]
  }

  /** Closes everything, and says which subagents go on. `waiting` names the interrupts of each. */
  close(waiting: ReadonlyMap<string, readonly string[]> = new Map()): AgUiEvent[] {
    const ends = [...this.writing.keys()].flatMap((nodeId) => this.finish(nodeId))
    const left = [...this.open].toReversed().map((subagentRunId): AgUiEvent => {
      const interruptIds = [...(waiting.get(subagentRunId) ?? [])]
      const outcome = { type: 'suspended', ...(interruptIds.length === 0 ? {} : { interruptIds }) }
      return { type: 'SUBAGENT_FINISHED', subagentRunId, outcome }
    })
    this.open.clear()
    return [...ends, ...left]
  }

  /** Tokens by model, those of subagents included. */
  usage(): Json[] {
    return [...this.used].map(([id, sums]) => {
      const at = id.indexOf('/')
      return { provider: at < 0 ? 'unknown' : id.slice(0, at), model: id.slice(at + 1), ...sums }
    })
  }

  private tell(event: RunEvent): AgUiEvent[] {
    switch (event.type) {
      case 'text-delta':
        return this.delta(event, 'text', event)
      case 'reasoning-delta':
        return this.delta(event, 'reasoning', event)
      case 'live':
        return [
          ...this.delta(event, 'reasoning', { text: event.reasoning, cumulative: true }),
          ...this.delta(event, 'text', { text: event.text, cumulative: true }),
        ]
      case 'reset':
        return this.again(event.nodeId ?? '')
      case 'message':
        return this.message(event)
      case 'tool-call':
        return this.call(event)
      case 'tool-result':
        return this.result(event)
      case 'delegation-start':
        return this.start(event)
      case 'delegation-end':
        return this.end(event)
      case 'approval-request':
      case 'question':
        this.asked.add(event.nodeId ?? '')
        return []
      case 'approval-answer':
      case 'answer':
        this.asked.delete(event.nodeId ?? '')
        return []
      case 'usage':
        return this.count(event)
      case 'progress':
        return [{ type: 'CUSTOM', name: 'legate.progress', value: { nodeId: event.nodeId, message: event.message } }]
      default:
        return []
    }
  }

  private from(runId: string): { readonly subagentRunId?: string } {
    return runId === this.runId ? {} : { subagentRunId: runId }
  }

  /** Opens the subagent that an event is of, and those above it, where the stream has not yet. */
  private opened({ runId }: RunEvent): AgUiEvent[] {
    if (runId === this.runId || this.open.has(runId)) return []
    const known = this.known.get(runId)
    return known === undefined ? [] : this.begin(known)
  }

  private begin({ runId, agent, taskId, hostRunId }: KnownSubagent): AgUiEvent[] {
    if (this.open.has(runId)) return []
    const host = hostRunId === this.runId ? undefined : this.known.get(hostRunId)
    const above = host === undefined ? [] : this.begin(host)
    this.open.add(runId)
    const parent = host === undefined ? {} : { parentSubagentRunId: hostRunId }
    return [
      ...above,
      { type: 'SUBAGENT_STARTED', subagentRunId: runId, name: agent, parentToolCallId: taskId, ...parent },
    ]
  }

  private start({ runId, nodeId, agent, childRunId }: Of<'delegation-start'>): AgUiEvent[] {
    const known = { runId: childRunId, agent, taskId: nodeId ?? '', hostRunId: runId }
    this.known.set(childRunId, known)
    return this.begin(known)
  }

  private end({ childRunId, status }: Of<'delegation-end'>): AgUiEvent[] {
    if (!this.open.has(childRunId)) return []
    this.open.delete(childRunId)
    const ended = [...this.writing].filter(([, { runId }]) => runId === childRunId)
    const closed = ended.flatMap(([nodeId]) => this.finish(nodeId))
    if (status === 'completed') return [...closed, { type: 'SUBAGENT_FINISHED', subagentRunId: childRunId }]
    return [
      ...closed,
      { type: 'SUBAGENT_ERROR', subagentRunId: childRunId, message: `It ended ${status}.`, code: status },
    ]
  }

  private delta(event: RunEvent, what: OpenMessage['what'], { text, cumulative }: Piece): AgUiEvent[] {
    const nodeId = event.nodeId ?? ''
    if (text === '' || this.spoken.has(nodeId)) return []
    const known = this.writing.get(nodeId)
    const switched = known !== undefined && known.what !== what ? this.finish(nodeId) : []
    const begun = this.writing.get(nodeId) === undefined ? this.beginMessage(event, what) : []
    const open = this.writing.get(nodeId)
    if (open === undefined) return []
    const piece = cumulative === true ? text.slice(open.said.length) : text
    open.said += piece
    if (piece === '') return [...switched, ...begun]
    const type = what === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT'
    return [...switched, ...begun, { type, messageId: open.messageId, delta: piece, ...this.from(event.runId) }]
  }

  private beginMessage({ nodeId, runId }: RunEvent, what: OpenMessage['what']): AgUiEvent[] {
    const times = this.tries.get(nodeId ?? '') ?? 0
    const own = times === 0 ? `${nodeId}` : `${nodeId}/${times + 1}`
    const messageId = what === 'text' ? own : `${own}/reasoning`
    this.writing.set(nodeId ?? '', { messageId, what, runId, said: '' })
    const from = this.from(runId)
    if (what === 'text') return [{ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', ...from }]
    return [
      { type: 'REASONING_START', messageId, ...from },
      { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning', ...from },
    ]
  }

  private finish(nodeId: string): AgUiEvent[] {
    const open = this.writing.get(nodeId)
    if (open === undefined) return []
    this.writing.delete(nodeId)
    const { messageId, what } = open
    const from = this.from(open.runId)
    if (what === 'text') return [{ type: 'TEXT_MESSAGE_END', messageId, ...from }]
    return [
      { type: 'REASONING_MESSAGE_END', messageId, ...from },
      { type: 'REASONING_END', messageId, ...from },
    ]
  }

  /** The words of this try do not count: the next try is another message. */
  private again(nodeId: string): AgUiEvent[] {
    const ended = this.finish(nodeId)
    if (ended.length > 0) this.tries.set(nodeId, (this.tries.get(nodeId) ?? 0) + 1)
    return ended
  }

  private message(event: Of<'message'>): AgUiEvent[] {
    const { role, content, nodeId } = event
    if (role !== 'agent') return []
    const text = contentText(content)
    const said = this.delta(event, 'text', { text: text.trim() === '' ? '' : text, cumulative: true })
    const ended = this.finish(nodeId ?? '')
    this.spoken.add(nodeId ?? '')
    return [...said, ...ended]
  }

  private call({ nodeId, runId, call }: Of<'tool-call'>): AgUiEvent[] {
    const from = this.from(runId)
    const toolCallId = nodeId ?? ''
    return [
      { type: 'TOOL_CALL_START', toolCallId, toolCallName: call.name, ...from },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(call.input), ...from },
      { type: 'TOOL_CALL_END', toolCallId, ...from },
    ]
  }

  private result({ nodeId, runId, content, isError, state }: Of<'tool-result'>): AgUiEvent[] {
    this.asked.delete(nodeId ?? '')
    const text = contentText(content)
    const about = { messageId: `${nodeId}/result`, toolCallId: nodeId ?? '', role: 'tool' }
    // The event has no field of its own for a failure.
    const failed = isError || state !== 'finished' ? { metadata: { isError: true } } : {}
    return [{ type: 'TOOL_CALL_RESULT', ...about, content: text, ...failed, ...this.from(runId) }]
  }

  private count({ usage, model }: Of<'usage'>): AgUiEvent[] {
    const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0, totalTokens = 0 } = this.used.get(model) ?? {}
    this.used.set(model, {
      inputTokens: inputTokens + usage.inputTokens,
      outputTokens: outputTokens + usage.outputTokens,
      totalTokens: totalTokens + usage.inputTokens + usage.outputTokens,
      cachedInputTokens: cachedInputTokens + usage.cacheReadTokens,
    })
    return []
  }
}

type Usage = {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly totalTokens: number
  readonly cachedInputTokens: number
}

interface Piece {
  readonly text: string
  readonly cumulative?: boolean
}

/** An event of AG-UI. The protocol has more fields than we send. */
export type AgUiEvent = { readonly type: `${EventType}` } & Readonly<Record<string, Json | undefined>>

/** The headers of a stream of AG-UI. */
export const AG_UI_HEADERS: Readonly<Record<string, string>> = Object.freeze({
  'content-type': 'text/event-stream; charset=utf-8',
})

/** An event as a frame. JSON has no raw line breaks, so no text of an event can end it. */
export function agUiFrame(event: AgUiEvent): string {
  return `data: ${JSON.stringify(event)}\n\n`
}
