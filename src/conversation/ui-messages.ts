import { readOptions } from '../base/options.ts'
import { type Content, textOf } from '../graph/content.ts'
import { type EventRow, type RunEvent, toEvent } from '../graph/event.ts'
import { isDeleted, isReplaced } from '../graph/history/shown.ts'
import { BUILT_IN_KINDS } from '../graph/kinds.ts'
import type { Conversation, Id, Node, Turn } from '../graph/rows.ts'
import { approvalOf } from '../graph/turn/approve.ts'
import { answerEvent, resultEvent } from '../graph/turn/end-node.ts'
import { questionOf } from '../graph/turn/question-of.ts'
import type { Store } from '../store/store.ts'
import type { ConversationHandle } from './conversation.ts'
import { ConversationPages, TURN_PAGE, type TurnPageQuery } from './conversation-pages.ts'
import { pages } from './pages.ts'
import type { UiApproval, UiMessage, UiPart, UiQuestion, UiSubagent } from './ui-chunk.ts'
import { UiMessageMaker } from './ui-message-maker.ts'
import { fileOf, UiWriter } from './ui-writer.ts'
import { View } from './view.ts'

/** The messages of a page of turns, as one that had read each of their streams holds them. */
export function uiMessagesOf({ store, id, row }: ConversationHandle, query: TurnPageQuery): UiMessage[] {
  readOptions('toUIMessages(conversation, query)', query, TURN_PAGE)
  const turns = new ConversationPages(store, id, BUILT_IN_KINDS).turns(query)
  if (row === undefined || turns.length === 0) return []
  const answers = turns.map((turn) => new Answer(store, row, turn))
  const open = new Set(answers)
  const after = Math.min(...turns.map(({ afterSeq }) => afterSeq))
  for (const rows of pages(store, row.rootId, { after })) {
    for (const event of rows) for (const answer of open) if (answer.take(event)) open.delete(answer)
    if (open.size === 0) break
  }
  return answers.flatMap((answer) => answer.messages())
}

/** One turn: what was said to the agent, and its answer as its stream tells it. */
class Answer {
  private readonly store: Store
  private readonly turn: Turn
  private readonly nodes: readonly Node[]
  private readonly hidden: ReadonlySet<Id>
  private readonly view: View
  private readonly writer: UiWriter
  private readonly maker: UiMessageMaker

  constructor(store: Store, conversation: Conversation, turn: Turn) {
    const nodes = store.nodesOf(turn.id)
    this.store = store
    this.turn = turn
    this.nodes = nodes.filter(isShown)
    this.hidden = new Set(nodes.filter((node) => !isShown(node)).map(({ id }) => id))
    this.view = new View(store, turn.id)
    this.writer = new UiWriter(turn.id)
    this.maker = new UiMessageMaker(this.writer.start())
    for (const node of this.nodes) for (const event of untold(node, conversation)) this.write(event)
  }

  /** True when the run has ended: its stream tells no more. */
  take(row: EventRow): boolean {
    if (row.seq <= this.turn.afterSeq) return false
    const event = this.view.show(toEvent(row))
    if (event === undefined || this.hidden.has(event.nodeId ?? '')) return false
    this.write(event)
    return event.turnId === this.turn.id && event.type === 'run-end'
  }

  messages(): UiMessage[] {
    const { store, turn, nodes, maker } = this
    const said = nodes.filter(({ kind }) => kind === 'user_message').map(userMessage)
    if (turn.state === 'ended') {
      for (const part of maker.message.parts) bringUpToDate(store, part)
      for (const event of openAsks(store, turn.id)) this.write(event)
    }
    // What was only observed is no run, and has no answer.
    const isRun = turn.state === 'queued' || turn.startedAt !== null
    return isRun || maker.message.parts.length > 0 ? [...said, maker.message] : said
  }

  private write(event: RunEvent): void {
    for (const chunk of this.writer.write(event)) this.maker.take(chunk)
  }
}

function isShown(node: Node): boolean {
  return !isReplaced(node) && !isDeleted(node)
}

/** The events of a node that has none: it was copied from another turn, or read back with its session. */
function untold(node: Node, { path }: Conversation): RunEvent[] {
  if (node.metadata['copyOf'] === undefined && node.metadata['restored'] !== true) return []
  const place = placeOf(node, path)
  if (node.kind === 'agent_message') return [{ ...place, ...answerEvent(node, null) }]
  const { call } = node.input
  if (node.kind !== 'task' || call === undefined) return []
  return [
    { ...place, type: 'tool-call', call, effect: node.effect, delegates: false },
    { ...place, ...resultEvent(node) },
  ]
}

function placeOf({ id, conversationId, turnId, endedAt, createdAt }: Node, path: readonly string[]) {
  return { seq: 0, at: endedAt ?? createdAt, conversationId, turnId, nodeId: id, path, parentId: null }
}

/** What children ask that have outlived the run, as they would tell it. */
function openAsks(store: Store, runId: Id): RunEvent[] {
  return store.openLinks(runId).flatMap(({ id, childConversationId }) => {
    const path = store.conversation(childConversationId)?.path ?? []
    return [...store.openNodes(id).flatMap((node) => askOf(node, path)), ...openAsks(store, id)]
  })
}

function askOf(node: Node, path: readonly string[]): RunEvent[] {
  const place = placeOf(node, path)
  const expiresAt = node.wakeAt ?? 0
  if (node.state === 'awaiting_approval') {
    const { request, input, digest, reason } = approvalOf(node)
    const call = node.input.call ?? null
    return [{ ...place, type: 'approval-request', call, request, input, digest, reason, expiresAt }]
  }
  const question = isAsking(node) ? questionOf(node) : undefined
  return question === undefined ? [] : [{ ...place, type: 'question', to: question.to, text: question.text, expiresAt }]
}

function isAsking({ state, wait }: Node): boolean {
  return state === 'waiting' && wait?.on === 'question'
}

/** What has happened below a run since it ended is read from the rows. */
function bringUpToDate(store: Store, part: UiPart): void {
  if (part.type === 'data-subagent') part.data = subagentNow(store, part.id, part.data)
  if (part.type === 'data-approval' && part.data.status === 'open') part.data = approvalNow(store, part.data)
  if (part.type === 'data-question' && part.data.status === 'open') part.data = questionNow(store, part.data)
}

function subagentNow(store: Store, runId: Id, data: UiSubagent): UiSubagent {
  const outcome = store.link(runId)?.outcome ?? null
  return outcome === null ? data : { ...data, status: outcome.status, tool: null }
}

function approvalNow(store: Store, data: UiApproval): UiApproval {
  const node = store.node(data.nodeId)
  if (node?.state === 'awaiting_approval' && approvalOf(node).digest === data.digest) return data
  const answered = node?.metadata['answered'] as { allowed: boolean; by: string; reason: string | null } | undefined
  if (answered === undefined) return { ...data, status: 'over' }
  const { allowed, by, reason } = answered
  return { ...data, status: allowed ? 'allowed' : 'denied', by, answer: reason }
}

function questionNow(store: Store, data: UiQuestion): UiQuestion {
  const node = store.node(data.nodeId)
  if (node !== undefined && isAsking(node)) return data
  if (node?.state !== 'finished') return { ...data, status: 'over' }
  return { ...data, status: 'answered', answer: textOf(node.output.content ?? '') }
}

function userMessage({ id, input }: Node): UiMessage {
  return { id, role: 'user', parts: partsOf(input.content ?? '') }
}

function partsOf(content: Content): UiPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content, state: 'done' }]
  return content.flatMap((block): UiPart[] => {
    if (block.type === 'text') return [{ type: 'text', text: block.text, state: 'done' }]
    if (block.type === 'json') return [{ type: 'text', text: JSON.stringify(block.value), state: 'done' }]
    return fileOf(block)
  })
}
