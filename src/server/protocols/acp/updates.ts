// Events of a run as updates of an ACP session. A pure translator: the same events give the same updates, live or replayed.
//
// Must stay true:
//   - What a node said is sent once: as deltas where it was heard live, else whole.
//   - Every call of the tree is a call of the session, under the id of its node. A child's words are the content of the call
//     that started it, which names the child's session.

import { visible } from '../../../core/base/text.ts'
import type { Content, Json, RunEvent } from '../../../index.ts'
import { diffsOf, kindOf, locationsOf, planOf, textContent, titleOf, visibleJson } from './tool-view.ts'

/** An update of a session, as ACP writes it. */
export type Update = { readonly sessionUpdate: string; readonly [key: string]: unknown }

export interface WriterOptions {
  /** The folder of the session, for paths that an editor can open. */
  readonly folder: string
  /** True: messages of the person are sent too, because the editor asks for what was said before. */
  readonly isReplay: boolean
  /** The window of a model in tokens; null where it is not known. */
  readonly windowOf: (model: string) => number | null
  /** The dollars that a call cost; null where the price is not known. */
  readonly costOf: (event: Extract<RunEvent, { type: 'usage' }>) => number | null
}

/** Writes the updates of one session, event by event. */
export class UpdateWriter {
  private readonly options: WriterOptions
  /** The text of each node that was sent live: only the rest of its message is news. */
  private readonly heard: Map<string, string> = new Map()
  /** The call that started each run below the root. */
  private readonly callOf: Map<string, string> = new Map()
  /** The words of each child, by the call that started it. */
  private readonly words: Map<string, string> = new Map()
  private readonly tries: Map<string, number> = new Map()
  private usd = 0

  constructor(options: WriterOptions) {
    this.options = options
  }

  /** The updates that an event means; none for events that an editor does not show. */
  write(event: RunEvent): readonly Update[] {
    return WRITERS[event.type]?.call(this, event as never) ?? []
  }

  /** Words of the agent at the root, or of a child. */
  said(event: RunEvent, kind: 'agent_message_chunk' | 'agent_thought_chunk', text: string): Update[] {
    if (text === '') return []
    const call = this.callOf.get(event.runId)
    if (call === undefined)
      return [{ sessionUpdate: kind, content: { type: 'text', text }, messageId: this.idOf(event) }]
    if (kind === 'agent_thought_chunk') return []
    const all = `${this.words.get(call) ?? ''}${text}`
    this.words.set(call, all)
    return [{ sessionUpdate: 'tool_call_update', toolCallId: call, content: textContent(all) }]
  }

  /** A message that is said anew has another id. */
  private idOf({ nodeId }: RunEvent): string {
    const attempt = this.tries.get(nodeId ?? '') ?? 0
    return attempt === 0 ? (nodeId ?? '') : `${nodeId}.${attempt}`
  }

  delta(event: Extract<RunEvent, { type: 'text-delta' | 'reasoning-delta' }>): Update[] {
    const before = this.heard.get(event.nodeId ?? '') ?? ''
    this.heard.set(event.nodeId ?? '', event.type === 'text-delta' ? before + event.text : before)
    return this.said(event, event.type === 'text-delta' ? 'agent_message_chunk' : 'agent_thought_chunk', event.text)
  }

  live(event: Extract<RunEvent, { type: 'live' }>): Update[] {
    this.heard.set(event.nodeId ?? '', event.text)
    return [
      ...this.said(event, 'agent_thought_chunk', event.reasoning),
      ...this.said(event, 'agent_message_chunk', event.text),
    ]
  }

  reset(event: Extract<RunEvent, { type: 'reset' }>): Update[] {
    this.tries.set(event.nodeId ?? '', event.attempt)
    this.heard.delete(event.nodeId ?? '')
    return []
  }

  message(event: Extract<RunEvent, { type: 'message' }>): Update[] {
    if (event.role === 'user') return this.asked(event)
    if (event.role !== 'agent' || BESIDE.has(event.purpose ?? '')) return []
    const heard = this.heard.get(event.nodeId ?? '')
    const text = wordsOf(event.content)
    if (heard !== undefined) {
      return text.startsWith(heard) ? this.said(event, 'agent_message_chunk', text.slice(heard.length)) : []
    }
    return [
      ...this.said(event, 'agent_thought_chunk', event.reasoning ?? ''),
      ...this.said(event, 'agent_message_chunk', text),
    ]
  }

  private asked({ runId, nodeId, content }: Extract<RunEvent, { type: 'message' }>): Update[] {
    if (!this.options.isReplay || this.callOf.has(runId)) return []
    const text = wordsOf(content)
    return text === ''
      ? []
      : [{ sessionUpdate: 'user_message_chunk', content: { type: 'text', text }, messageId: nodeId }]
  }

  call({ nodeId, call, delegates, path }: Extract<RunEvent, { type: 'tool-call' }>): Update[] {
    const { folder } = this.options
    const plan = path.length > 1 ? undefined : planOf(call)
    const locations = locationsOf(call, folder)
    const content = diffsOf(call, folder)
    return [
      {
        sessionUpdate: 'tool_call',
        toolCallId: nodeId,
        title: titleOf(call, path),
        kind: kindOf(call, delegates),
        status: 'in_progress',
        rawInput: visibleJson(call.input),
        ...(locations.length === 0 ? {} : { locations }),
        ...(content.length === 0 ? {} : { content }),
        _meta: { 'legate/path': path as Json },
      },
      ...(plan === undefined ? [] : [{ sessionUpdate: 'plan', entries: plan }]),
    ]
  }

  result({ nodeId, state, isError, content }: Extract<RunEvent, { type: 'tool-result' }>): Update[] {
    const isFine = state === 'finished' && !isError
    const said = textContent(content)
    const update = { sessionUpdate: 'tool_call_update', toolCallId: nodeId, status: isFine ? 'completed' : 'failed' }
    // The change of a call is worth more than the news that it ended.
    return [
      { ...update, ...(said.length === 0 || this.words.has(nodeId ?? '') ? {} : { rawOutput: wordsOf(content) }) },
    ]
  }

  delegation(event: Extract<RunEvent, { type: 'delegation-start' }>): Update[] {
    const { nodeId, agent, childConversationId: sessionId, childRunId: runId } = event
    this.callOf.set(runId, nodeId ?? '')
    return [
      {
        sessionUpdate: 'tool_call_update',
        toolCallId: nodeId,
        title: visible(agent),
        kind: 'think',
        _meta: { 'legate/child': { sessionId, runId } },
      },
    ]
  }

  state(nodeId: string | null, status: 'pending' | 'in_progress'): Update[] {
    return [{ sessionUpdate: 'tool_call_update', toolCallId: nodeId, status }]
  }

  usage(event: Extract<RunEvent, { type: 'usage' }>): Update[] {
    const cost = this.options.costOf(event)
    this.usd += cost ?? 0
    const size = this.options.windowOf(event.model)
    if (size === null || this.callOf.has(event.runId)) return []
    const { inputTokens, outputTokens } = event.usage
    const spent = cost === null ? {} : { cost: { amount: this.usd, currency: 'USD' } }
    return [{ sessionUpdate: 'usage_update', used: inputTokens + outputTokens, size, ...spent }]
  }
}

/** Messages that no person is meant to read. */
const BESIDE: ReadonlySet<string> = new Set(['brief', 'summarize'])

type Writers = {
  readonly [Type in RunEvent['type']]?: (
    this: UpdateWriter,
    event: Extract<RunEvent, { type: Type }>,
  ) => readonly Update[]
}

const WRITERS: Writers = {
  'text-delta': UpdateWriter.prototype.delta,
  'reasoning-delta': UpdateWriter.prototype.delta,
  live: UpdateWriter.prototype.live,
  reset: UpdateWriter.prototype.reset,
  message: UpdateWriter.prototype.message,
  'tool-call': UpdateWriter.prototype.call,
  'tool-result': UpdateWriter.prototype.result,
  'delegation-start': UpdateWriter.prototype.delegation,
  usage: UpdateWriter.prototype.usage,
  'approval-request'({ nodeId, call }) {
    return call === null ? [] : this.state(nodeId, 'pending')
  },
  'approval-answer'({ nodeId, allowed }) {
    return allowed ? this.state(nodeId, 'in_progress') : []
  },
  question(event) {
    return event.to === 'person' ? this.said(event, 'agent_message_chunk', event.text) : []
  },
}

/** All text of a content, without thoughts. */
function wordsOf(content: Content): string {
  if (typeof content === 'string') return content
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}
