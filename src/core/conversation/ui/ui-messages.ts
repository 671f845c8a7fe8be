import { type OptionRules, oneOf, readOptions } from '../../base/options.ts'
import { PageRoom } from '../../base/page/room.ts'
import { type Content, textOf } from '../../graph/content.ts'
import { type EventRow, type RunEvent, toEvent } from '../../graph/event.ts'
import { BUILT_IN_KINDS } from '../../graph/kinds.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Conversation, Id, Node, Turn } from '../../graph/rows.ts'
import { approvalOf } from '../../rules/turn/approval-of.ts'
import { resultEvent } from '../../rules/turn/end-node.ts'
import { questionHash, questionOf } from '../../rules/turn/question-of.ts'
import { look, onceLoaded } from '../../store/look.ts'
import type { ConversationHandle } from '../conversation.ts'
import { ConversationPages, TURN_PAGE } from '../conversation-pages.ts'
import { EventView } from '../fields/view.ts'
import { pages } from '../pages.ts'
import {
  UI_MESSAGE_ID,
  type UiApproval,
  type UiDataPart,
  type UiMessage,
  type UiMessageChunk7,
  type UiPart,
  type UiQuestion,
  type UiSubagent,
  type UiSubagentCall,
  type UiToolPart,
} from './ui-chunk.ts'
import type { UiPageQuery } from './ui-options.ts'
import { callEnd } from './ui-subagents.ts'
import { eventPlace, isShown, untoldEvents } from './ui-untold.ts'
import { fileOf, UiWriter } from './ui-writer.ts'

const UI_PAGE: OptionRules<UiPageQuery> = { ...TURN_PAGE, approvals: oneOf('ask', 'show') }

/** The messages of a page of turns, equal to those of a client that read each of their streams. */
export async function uiMessagesOf(
  { store, id, rootId }: ConversationHandle,
  query: UiPageQuery,
): Promise<UiMessage[]> {
  const { approvals = 'ask' } = readOptions('toUIMessages(conversation, query)', query, UI_PAGE)
  const answers = await look(store, rootId, (tree) => {
    const row = tree.conversation(id)
    const talk = new ConversationPages(tree, id, BUILT_IN_KINDS)
    const turns =
      query.maxBytes === undefined ? talk.turns(query) : talk.turnsWithin(query, new PageRoom(query.maxBytes))
    if (row === undefined) return []
    return turns.map((turn) => new Answer(tree, row, { turn, asks: approvals === 'ask' }))
  })
  if (answers.length === 0) return []
  const open = new Set(answers)
  const after = Math.min(...answers.map(({ turn }) => turn.afterSeq))
  for await (const rows of pages(store, rootId, { after })) {
    await onceLoaded(() => {
      for (const answer of open) answer.prepare(rows)
    })
    for (const event of rows) for (const answer of open) if (answer.take(event)) open.delete(answer)
    if (open.size === 0) break
  }
  const since = await look(store, rootId, (tree) => answers.map((answer) => answer.since(tree)))
  return answers.flatMap((answer, at) => answer.messages(since[at]))
}

/** Parts and open requests that came below a run after it had ended. */
interface Since {
  readonly parts: readonly UiPart[]
  /** The open requests of children that outlived it, as events. */
  readonly asks: readonly RunEvent[]
}

/** One turn: the messages to the agent, and its answer as its stream shows it. */
class Answer {
  readonly turn: Turn
  private readonly nodes: readonly Node[]
  private readonly hidden: ReadonlySet<Id>
  private readonly view: EventView
  private readonly writer: UiWriter
  private readonly maker: UiMessageMaker

  constructor(tree: TreeReader, conversation: Conversation, { turn, asks }: { turn: Turn; asks: boolean }) {
    const nodes = tree.nodesOf(turn.id)
    this.turn = turn
    this.nodes = nodes.filter(isShown)
    this.hidden = new Set(nodes.filter((node) => !isShown(node)).map(({ id }) => id))
    this.view = new EventView(tree, turn.id)
    this.writer = new UiWriter(turn.id, { ui: 6, asks })
    this.maker = new UiMessageMaker(this.writer.start())
    for (const event of untoldEvents(this.nodes, conversation)) this.write(event)
  }

  /** Reads all rows that `take` needs for these events. */
  prepare(rows: readonly EventRow[]): void {
    this.view.prepare(rows)
  }

  /** Returns true when the run has ended, and its stream with it. */
  take(row: EventRow): boolean {
    if (row.seq <= this.turn.afterSeq) return false
    const event = this.view.show(toEvent(row))
    if (event === undefined || this.hidden.has(event.nodeId ?? '')) return false
    this.write(event)
    return event.runId === this.turn.id && event.type === 'run-end'
  }

  /** Reads from the rows what has happened below the run since it ended; undefined while it is open. */
  since(tree: TreeReader): Since | undefined {
    const { turn, maker } = this
    if (turn.state !== 'ended') return undefined
    return { parts: maker.message.parts.map((part) => partNow(tree, part)), asks: openAsks(tree, turn.id) }
  }

  messages(since: Since | undefined): UiMessage[] {
    const { turn, nodes, maker } = this
    const said = nodes.filter(({ kind }) => kind === 'user_message').map(userMessage)
    const [first] = said
    const pageId = turn.attributes?.[UI_MESSAGE_ID]
    if (first !== undefined && typeof pageId === 'string') first.id = pageId
    if (since !== undefined) {
      maker.message.parts.splice(0, Number.POSITIVE_INFINITY, ...since.parts)
      for (const event of since.asks) this.write(event)
    }
    // A message that was only observed is no run, and has no answer.
    const isRun = turn.state === 'queued' || turn.startedAt !== null
    return isRun || maker.message.parts.length > 0 ? [...said, maker.message] : said
  }

  private write(event: RunEvent): void {
    for (const chunk of this.writer.write(event)) this.maker.take(chunk)
  }
}

/** The open requests of children that outlived the run, as events. */
function openAsks(tree: TreeReader, runId: Id): RunEvent[] {
  return tree.openLinks(runId).flatMap(({ id, childConversationId }) => {
    const path = tree.conversation(childConversationId)?.path ?? []
    return [...tree.openNodes(id).flatMap((node) => askOf(node, path)), ...openAsks(tree, id)]
  })
}

function askOf(node: Node, path: readonly string[]): RunEvent[] {
  const place = eventPlace(node, path)
  const expiresAt = node.wakeAt ?? 0
  if (node.state === 'awaiting_approval') {
    const { request, input, digest, reason } = approvalOf(node)
    const call = node.input.call ?? null
    return [{ ...place, type: 'approval-request', call, request, input, seen: digest, reason, expiresAt }]
  }
  const question = isAsking(node) ? questionOf(node) : undefined
  if (question === undefined) return []
  const { to, text } = question
  return [{ ...place, type: 'question', to, text, seen: questionHash(question), expiresAt }]
}

function isAsking({ state, wait }: Node): boolean {
  return state === 'waiting' && wait?.on === 'question'
}

function partNow(tree: TreeReader, part: UiPart): UiPart {
  if (part.type === 'data-subagent') return { ...part, data: subagentNow(tree, part.id, part.data) }
  if (part.type === 'data-subagent-call') return { ...part, data: callNow(tree, part.id, part.data) }
  if (part.type === 'data-approval' && part.data.status === 'open')
    return { ...part, data: approvalNow(tree, part.data) }
  if (part.type === 'data-question' && part.data.status === 'open')
    return { ...part, data: questionNow(tree, part.data) }
  return part
}

function subagentNow(tree: TreeReader, runId: Id, data: UiSubagent): UiSubagent {
  const outcome = tree.link(runId)?.outcome ?? null
  return outcome === null ? data : { ...data, status: outcome.status, tool: null }
}

function callNow(tree: TreeReader, nodeId: Id, data: UiSubagentCall): UiSubagentCall {
  const node = tree.node(nodeId)
  return node === undefined || node.endedAt === null ? data : { ...data, ...callEnd(resultEvent(node)) }
}

function approvalNow(tree: TreeReader, data: UiApproval): UiApproval {
  const node = tree.node(data.nodeId)
  if (node?.state === 'awaiting_approval' && approvalOf(node).digest === data.seen) return data
  const answered = node?.metadata['answered'] as { allowed: boolean; by: string; reason: string | null } | undefined
  if (answered === undefined) return { ...data, status: 'over' }
  const { allowed, by, reason } = answered
  return { ...data, status: allowed ? 'allowed' : 'denied', by, answer: reason }
}

function questionNow(tree: TreeReader, data: UiQuestion): UiQuestion {
  const node = tree.node(data.nodeId)
  if (node !== undefined && isAsking(node)) return data
  if (node?.state !== 'finished') return { ...data, status: 'over' }
  return { ...data, status: 'answered', answer: textOf(node.output.content ?? '') }
}

function userMessage({ id, input }: Node): UiMessage {
  return { id, role: 'user', parts: partsOf(input.content ?? '') }
}

/** The parts of an input, as a page makes them: a text has no state. */
function partsOf(content: Content): UiPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.flatMap((block): UiPart[] => {
    if (block.type === 'text') return [{ type: 'text', text: block.text }]
    if (block.type === 'json') return [{ type: 'text', text: JSON.stringify(block.value) }]
    return fileOf(block)
  })
}

type TextPart = Extract<UiPart, { type: 'text' | 'reasoning' }>

/** Builds the message from its chunks, as the AI SDK does on a page. */
class UiMessageMaker {
  readonly message: UiMessage
  private readonly open: Map<string, TextPart> = new Map()
  private readonly calls: Map<string, UiToolPart> = new Map()

  constructor({ messageId, messageMetadata }: Extract<UiMessageChunk7, { type: 'start' }>) {
    this.message = { id: messageId, role: 'assistant', metadata: messageMetadata, parts: [] }
  }

  take(chunk: UiMessageChunk7): void {
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

  private takeCall(chunk: UiMessageChunk7): void {
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
      case 'data-subagent-call':
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

  private call({ toolCallId, toolName, input }: Extract<UiMessageChunk7, { type: 'tool-input-available' }>): void {
    // Shows the arguments that a person has changed.
    if (this.calls.has(toolCallId)) return this.change(toolCallId, { input })
    const part: UiToolPart = { type: `tool-${toolName}`, toolCallId, state: 'input-available', input }
    this.calls.set(toolCallId, part)
    this.add(part)
  }

  private change(toolCallId: string, change: Partial<UiToolPart>): void {
    const part = this.calls.get(toolCallId)
    if (part !== undefined) Object.assign(part, change)
  }

  /** A call that ended without an approval shows none. */
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

  /** The stream has no chunk for an approval's answer; a page adds it when a person clicks. */
  private decide({ toolCallId, nodeId: id, status, answer }: UiApproval): void {
    const part = toolCallId === null ? undefined : this.calls.get(toolCallId)
    // A page that may not answer was not asked.
    if (part?.approval === undefined || (status !== 'allowed' && status !== 'denied')) return
    part.approval = { id, approved: status === 'allowed', ...(answer === null ? {} : { reason: answer }) }
    if (part.state === 'approval-requested') part.state = 'approval-responded'
  }
}
