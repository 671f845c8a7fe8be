// Events of a run as updates of an ACP session. A pure translator: the same events give the same updates, live or replayed.
//
// Must stay true:
//   - What a node said is sent once: as deltas where it was heard live, else whole.
//   - Every call of the tree is a call of the session, under the id of its node. A child's words are the content of the call
//     that started it, which names the child's session.

import { resolve } from 'node:path'
import { visible, visibleLines } from '../../../core/base/text.ts'
import type { AskedFacts } from '../../../doors/rows.ts'
import type { Content, Json, RunEvent } from '../../../index.ts'

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
    return [{ sessionUpdate: 'tool_call_update', toolCallId: call, content: callContent(all) }]
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
        title: callTitle(call, path),
        kind: callKind(call, delegates),
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
    const said = callContent(content)
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

/** Where the files of a session are. */
export type Folder = string

/** The kinds of calls that editors know. */
export type CallKind = 'read' | 'edit' | 'delete' | 'search' | 'execute' | 'think' | 'fetch' | 'other'

interface Call {
  readonly name: string
  readonly input: Json
}

const KINDS: readonly (readonly [RegExp, CallKind])[] = [
  [/^(?:read|get|list)_|^view|^describe/, 'read'],
  [/search|grep|glob|find/, 'search'],
  [/^delete_|^remove_/, 'delete'],
  [/^(?:write|edit|create|update|patch)_|replace/, 'edit'],
  [/shell|exec|bash|command|^run_/, 'execute'],
  [/fetch|http|url|web/, 'fetch'],
]

/** The kind of a call: by the request that a rule decides on, else by the tool's name. */
export function callKind({ name }: Call, delegates: boolean): CallKind {
  if (delegates) return 'think'
  return KINDS.find(([form]) => form.test(name))?.[1] ?? 'other'
}

/** A title for people: who calls what, with what is most telling of its arguments. */
function callTitle({ name, input }: Call, path: readonly string[]): string {
  const fields = fieldsOf(input)
  const telling = ['path', 'command', 'query', 'pattern', 'url', 'message'].map((key) => fields[key]).find(isText)
  return `${above(path)}${visible(name)}${telling === undefined ? '' : ` ${short(telling, LONGEST)}`}`
}

/** The title of a request for permission: the request that is decided, and for a call the tool. */
export function permissionTitle({ path, request, tool, input }: Omit<AskedFacts, 'reason'>): string {
  if (tool === null) return `${visible(path.join(' > '))}: ${short(request, LONGEST_REQUEST)}`
  if (request === `tool:${tool}`) return callTitle({ name: tool, input }, path)
  return `${above(path)}${short(request, LONGEST_REQUEST)} for ${visible(tool)}`
}

function above(path: readonly string[]): string {
  return path.length > 1 ? `${visible(path.slice(1).join(' > '))}: ` : ''
}

/** The files that a call is about, in the folder of the session. Others are no place to follow the agent to: it may not go there. */
function locationsOf({ input }: Call, folder: Folder): { path: string; line?: number }[] {
  const { path, line, offset } = fieldsOf(input)
  const real = isText(path) ? resolve(realPath(path, folder)) : ''
  if (!real.startsWith(`${folder}/`)) return []
  const at = [line, offset].find((value) => typeof value === 'number')
  return [{ path: real, ...(at === undefined ? {} : { line: Number(at) }) }]
}

export type CallContent =
  | { readonly type: 'content'; readonly content: { readonly type: 'text'; readonly text: string } }
  | { readonly type: 'diff'; readonly path: string; readonly oldText: string | null; readonly newText: string }

/** The changes of files that a call makes, as far as its arguments say them. Every character of them is visible. */
export function diffsOf({ input }: Call, folder: Folder): CallContent[] {
  const { path, content, edits } = fieldsOf(input)
  if (!isText(path)) return []
  const at = realPath(path, folder)
  if (isText(content)) return [{ type: 'diff', path: at, oldText: null, newText: visibleLines(content) }]
  if (!Array.isArray(edits)) return []
  return edits.flatMap((edit) => {
    const { oldText, newText } = fieldsOf(edit)
    if (!isText(oldText) || typeof newText !== 'string') return []
    return [{ type: 'diff' as const, path: at, oldText: visibleLines(oldText), newText: visibleLines(newText) }]
  })
}

export interface PlanEntry {
  readonly content: string
  readonly priority: 'medium'
  readonly status: 'pending' | 'completed'
}

/** The plan that a call of `todo_write` writes; undefined for other calls. */
function planOf({ name, input }: Call): PlanEntry[] | undefined {
  const { content } = fieldsOf(input)
  if (name !== 'todo_write' || typeof content !== 'string') return undefined
  return content.split('\n').flatMap((line) => {
    const [, done = '', text = ''] = /^\s*(?:[-*]\s*)?(?:\[([ xX])\]\s*)?(.*\S)\s*$/.exec(line) ?? []
    if (text === '') return []
    return [{ content: text, priority: 'medium' as const, status: done.trim() === '' ? 'pending' : 'completed' }]
  })
}

/** The text of a result. */
export function callContent(content: Content): CallContent[] {
  const texts =
    typeof content === 'string' ? [content] : content.map((one) => ('text' in one ? one.text : `[${one.type}]`))
  const text = texts.join('\n')
  return text === '' ? [] : [{ type: 'content', content: { type: 'text', text } }]
}

/** Agents see the folder of the session as /workspace/. */
function realPath(path: string, folder: Folder): string {
  if (path.startsWith('/workspace/')) return `${folder}/${path.slice('/workspace/'.length)}`
  return path.startsWith('/') ? path : `${folder}/${path}`
}

/** The value with each text and each key in it made visible: its lines stay. */
export function visibleJson(value: Json): Json {
  if (typeof value === 'string') return visibleLines(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((one) => visibleJson(one as Json))
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [visible(key), visibleJson(one as Json)]))
}

function fieldsOf(value: Json | undefined): Readonly<Record<string, Json | undefined>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

function isText(value: Json | undefined): value is string {
  return typeof value === 'string' && value !== ''
}

/** How much of a text a title shows. */
const LONGEST = 80
const LONGEST_REQUEST = 200

/** The beginning of a text on one line, and a sign where there is more. */
function short(text: string, most: number): string {
  const line = visible(text)
  return line.length > most ? `${line.slice(0, most).toWellFormed()}… (${line.length - most} more characters)` : line
}
