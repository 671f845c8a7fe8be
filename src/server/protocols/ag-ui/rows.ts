// Rows as a client of AG-UI reads them: the messages of a thread, and what it waits for.

import {
  askedText,
  type Link,
  type Node,
  seenOf,
  type ToolCall,
  type TreeData,
  type Turn,
} from '../../../doors/rows.ts'
import type { Content, Json } from '../../../index.ts'

/** Something that a client must answer before a run goes on. */
export interface AgUiPending {
  /** Names the node and what it asks, by its hash: a node may ask for something else later, and an answer to that names this. */
  readonly id: string
  readonly nodeId: string
  /** The run that asks. */
  readonly runId: string
  /** `tool_call`: may it run? `input_required`: a question. `tool_result`: the client executes the call. */
  readonly reason: 'tool_call' | 'input_required' | 'tool_result'
  readonly message: string
  /** The call that waits; null for a question, and for a model to ask. */
  readonly call: ToolCall | null
  /** The run that waits, where it is a subagent's. */
  readonly subagentRunId: string | null
  readonly expiresAt: number | null
}

/** Who looks at a thread. It decides which interrupts are theirs to answer. */
export interface Sight {
  readonly principalId: string
  /** May it answer for a person? */
  readonly approves: boolean
}

/** Everything of a thread that waits for the client, in all of its turns: a later one may be queued behind the one that asks. */
export function pendingIn(data: TreeData, conversationId: string, sight: Sight): AgUiPending[] {
  const turns = new Set(data.turns.flatMap(({ id, laneId }) => (laneId === conversationId ? [id] : [])))
  const runs = runsBelow(data, turns)
  return data.nodes.flatMap((node) => {
    if (!runs.has(node.turnId) || !isAnswerable(node, sight)) return []
    const { path = [] } = data.conversations.find(({ id }) => id === node.conversationId) ?? {}
    return pendingOf(node, path, turns.has(node.turnId) ? null : node.turnId)
  })
}

/** A call that somebody else executes is not for this client. */
function isAnswerable(node: Node, { principalId, approves }: Sight): boolean {
  const { to, outside } = (node.metadata['question'] ?? {}) as Question
  if (node.state === 'awaiting_approval' || to !== 'outside') return approves
  return (outside?.by ?? principalId) === principalId
}

/** The turn of the thread that a run is, or is below of. */
export function turnAbove({ links }: Pick<TreeData, 'links'>, runId: string): string {
  const host = links.find(({ id }) => id === runId)?.hostTurnId
  return host === undefined ? runId : turnAbove({ links }, host)
}

/** The runs and all below them. */
function runsBelow({ links }: TreeData, tops: ReadonlySet<string>): ReadonlySet<string> {
  const runs = new Set(tops)
  for (const { id, hostTurnId } of links) if (runs.has(hostTurnId)) runs.add(id)
  return runs
}

interface RequestFields {
  readonly request?: string
  readonly reason?: string
  readonly input?: Json
}

interface Question {
  readonly text?: string
  readonly to?: string
  readonly outside?: { readonly by: string | null }
}

function pendingOf(node: Node, path: readonly string[], subagentRunId: string | null): AgUiPending | readonly [] {
  const { id: nodeId, turnId: runId, wakeAt: expiresAt } = node
  const about = {
    id: `${nodeId}/${seenOf(node)}`,
    nodeId,
    runId,
    subagentRunId,
    expiresAt,
    call: node.input.call ?? null,
  }
  if (node.state === 'awaiting_approval') {
    const { request = node.kind, reason = '', input = null } = (node.metadata['approval'] ?? {}) as RequestFields
    const message = askedText({ path, request, tool: node.input.call?.name ?? null, input, reason })
    return { ...about, reason: 'tool_call', message }
  }
  if (node.state !== 'waiting' || node.wait?.on !== 'question') return []
  const { text = '', to = 'person' } = (node.metadata['question'] ?? {}) as Question
  if (to === 'host') return []
  const reason = to === 'outside' ? 'tool_result' : 'input_required'
  return { ...about, reason, message: text }
}

/** Does nothing go on but waiting for somebody outside? */
export function isParked({ nodes }: TreeData): boolean {
  return nodes.every(({ state, blockers }) => {
    return (
      state === 'awaiting_approval' || state === 'waiting' || (state === 'pending' && blockers > 0) || !isOpen(state)
    )
  })
}

function isOpen(state: Node['state']): boolean {
  return state === 'pending' || state === 'running' || state === 'waiting' || state === 'awaiting_approval'
}

/** The messages of a thread from rows, those of subagents where their call stands. `without` is a run that is told by events. */
export function threadMessages(data: TreeData, conversationId: string, without: string | null): Json[] {
  const turns = data.turns.filter((turn) => turn.laneId === conversationId && turn.id !== without)
  const nodes = groupBy(data.nodes, ({ turnId }) => turnId)
  const links = groupBy(data.links, ({ taskId }) => taskId)
  const rows = { data, nodes, links }
  return turns.toSorted((a, b) => a.ordinal - b.ordinal).flatMap((turn) => turnMessages(rows, turn, null))
}

interface Rows {
  readonly data: TreeData
  readonly nodes: ReadonlyMap<string, readonly Node[]>
  readonly links: ReadonlyMap<string, readonly Link[]>
}

function turnMessages(rows: Rows, turn: Turn, subagentRunId: string | null): Json[] {
  const nodes = (rows.nodes.get(turn.id) ?? []).toSorted((a, b) => a.ordinal - b.ordinal)
  const from = subagentRunId === null ? {} : { subagentRunId }
  return nodes.flatMap((node) => {
    if (node.kind === 'user_message') return subagentRunId === null ? [userMessage(node)] : []
    if (node.kind === 'agent_message' || node.kind === 'character_message') return spokenMessage(node, nodes, from)
    return node.kind === 'task' ? [...belowMessages(rows, node), ...resultMessage(node, from)] : []
  })
}

function belowMessages(rows: Rows, task: Node): Json[] {
  return (rows.links.get(task.id) ?? []).flatMap(({ id }) => {
    const turn = rows.data.turns.find((one) => one.id === id)
    return turn === undefined ? [] : turnMessages(rows, turn, id)
  })
}

function userMessage({ id, input }: Node): Json {
  return { id, role: 'user', content: contentText(input.content ?? '') }
}

type From = { readonly subagentRunId?: string }

function spokenMessage(node: Node, nodes: readonly Node[], from: From): Json[] {
  const { id, output, endedAt } = node
  if (endedAt === null) return []
  const called = new Set((output.calls ?? []).map((call) => call.id))
  const tasks = nodes.filter(({ kind, input, ordinal }) => {
    return (
      kind === 'task' &&
      ordinal > node.ordinal &&
      called.has(input.call?.id ?? '') &&
      ordinal <= node.ordinal + called.size
    )
  })
  const content = contentText(output.content ?? '')
  if (content === '' && tasks.length === 0) return []
  const toolCalls = tasks.map((task) => toolCall(task))
  return [{ ...from, id, role: 'assistant', content, ...(toolCalls.length === 0 ? {} : { toolCalls }) }]
}

function toolCall({ id, input: { call } }: Node): Json {
  return { id, type: 'function', function: { name: call?.name ?? '', arguments: JSON.stringify(call?.input ?? null) } }
}

function resultMessage({ id, output, endedAt, state }: Node, from: From): Json[] {
  if (endedAt === null) return []
  const content = contentText(output.content ?? '')
  const failed = output.isError === true || state !== 'finished' ? { error: content === '' ? state : content } : {}
  return [{ ...from, id: `${id}/result`, role: 'tool', toolCallId: id, content, ...failed }]
}

/** The words of a content. */
export function contentText(content: Content): string {
  if (typeof content === 'string') return content
  return content.flatMap((block) => ('text' in block && block.type === 'text' ? [block.text] : [])).join('\n')
}

/** A list by the key of its items. */
export function groupBy<T>(list: Iterable<T>, keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of list) {
    const group = groups.get(keyOf(one)) ?? []
    groups.set(keyOf(one), group)
    group.push(one)
  }
  return groups
}
