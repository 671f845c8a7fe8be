// Makes spans of rows: of a run, of a try of a model call, of a call of a tool. Live traces and traces from rows use these same
// functions, so they agree.
//
// Stays true:
// - Everything in a span comes from rows, times included. A row that has not ended has no span.
// - Text of people and models is in a span only where `shows` says so.
// - A node that was copied from an earlier run has no span: what it did belongs to that run.

import { textOf, type Usage } from '../../graph/content.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id, Node, Turn } from '../../graph/rows.ts'
import type { Part } from '../../model/model.ts'
import type { Span, SpanEvent, SpanStart, SpanValue, Telemetry } from '../../tool/telemetry.ts'
import type { TimelineSpan } from '../data/timeline.ts'
import { type AskedModel, addAsked, outputMessages, userMessage } from './messages.ts'
import {
  addResponse,
  addSettings,
  addTransfer,
  addUsageAttributes,
  FINISHED,
  modelNames,
  runAttributes,
  spanWord,
} from './names.ts'
import { nodePlace, runPlace } from './place.ts'

/** How spans are to be written. */
export type SpanStyle = Pick<Telemetry, 'vocabulary' | 'shows'>

/** A time in which something waited for a person, or for its turn. */
export interface SpanWait {
  readonly reason: string
  readonly start: number
  readonly end: number
}

/** One try of a model call. */
export interface ModelTry {
  readonly attempt: number
  /** `provider/model`; null where it is not known. */
  readonly model: string | null
  readonly usage: Usage
  readonly start: number
  readonly end: number
  /** The kind of failure of a try that is made again; null for the last one. */
  readonly error: string | null
}

/** Was the node made for this run, and not copied into it? */
export function isOwnWork(node: Node, turn: Turn): boolean {
  return node.endedAt === null || node.endedAt >= turn.createdAt
}

/** True for nodes in which a model speaks. */
export function isSpeaking({ kind }: Pick<Node, 'kind'>): boolean {
  return kind === 'agent_message' || kind === 'character_message'
}

/** True for nodes that run code, or a subagent. */
export function isCall(node: Node): boolean {
  return node.kind === 'task' && node.input.call !== undefined
}

export function runStart(tree: TreeReader, turn: Turn, { vocabulary }: SpanStyle): SpanStart {
  const agent = tree.conversation(turn.conversationId)?.agent
  const name = spanWord(agent?.name ?? '')
  const facts = { agent: name, hash: agent?.hash ?? '', conversationId: turn.conversationId, runId: turn.id }
  const { traceId, spanId, parentId, isParentForeign } = runPlace(tree, turn)
  return {
    traceId,
    spanId,
    parentId,
    isParentForeign,
    kind: 'run',
    name: `invoke_agent ${name}`,
    start: turn.createdAt,
    attributes: runAttributes(facts, vocabulary),
  }
}

/** The span of a run that has ended. */
export function runSpan(
  tree: TreeReader,
  turn: Turn,
  { style, start = runStart(tree, turn, style) }: SpanParts,
): Span | undefined {
  const { outcome, endedAt, createdAt, startedAt, spend } = turn
  if (outcome === null || endedAt === null) return undefined
  const { status, usage, modelCalls, toolCalls, error } = outcome
  const failed = status === 'completed' ? null : spanWord(error?.code ?? status)
  const result: Attributes = {
    'legate.status': status,
    'legate.model_calls': modelCalls,
    'legate.tool_calls': toolCalls,
  }
  result['legate.tokens.input'] = usage.inputTokens
  result['legate.tokens.output'] = usage.outputTokens
  if (spend !== null) result['legate.cost.usd'] = spend.spent.usd
  if (failed !== null) result['error.type'] = failed
  addRunContent(result, tree, turn, style)
  const wasQueued = startedAt !== null && startedAt > createdAt
  const events = wasQueued ? [waitEvent({ reason: 'queue', start: createdAt, end: startedAt })] : NO_EVENTS
  return endedSpan(start, { end: endedAt, result, events, error: failed })
}

/** Attributes that are being collected. */
type Attributes = Record<string, SpanValue>
const NO_EVENTS: readonly SpanEvent[] = []

/** How a span is written, and its beginning where that was told before. */
export interface SpanParts {
  readonly style: SpanStyle
  readonly start?: SpanStart | undefined
}

/** One literal: spread into one another, objects are slower to make and to read. */
function endedSpan(start: SpanStart, { end, result, events, error }: Omit<Span, keyof SpanStart>): Span {
  const { traceId, spanId, parentId, isParentForeign, kind, name, attributes } = start
  return {
    traceId,
    spanId,
    parentId,
    isParentForeign,
    kind,
    name,
    start: start.start,
    attributes,
    end,
    result,
    events,
    error,
  }
}

export function modelStart(
  tree: TreeReader,
  node: Node,
  tried: Pick<ModelTry, 'attempt' | 'model' | 'start'>,
): SpanStart {
  const { attempt, start } = tried
  const { provider, model } = modelNames(tried.model ?? '')
  const attributes: Attributes = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': provider,
    'gen_ai.request.model': model,
    'gen_ai.conversation.id': node.conversationId,
    'legate.run.id': node.turnId,
    'legate.node.id': node.id,
  }
  if (node.purpose !== null && node.purpose !== 'answer') attributes['legate.purpose'] = node.purpose
  if (attempt > 1) attributes['legate.attempt'] = attempt
  const { traceId, spanId, parentId, isParentForeign } = nodePlace(tree, node, attempt)
  return { traceId, spanId, parentId, isParentForeign, kind: 'model', name: `chat ${model}`, start, attributes }
}

/** The span of one try of a model call. */
export function modelSpan(
  tree: TreeReader,
  node: Node,
  {
    tried,
    style,
    start,
    asked,
    heard,
  }: SpanParts & {
    readonly tried: ModelTry
    /** The request, where it is known: rows do not hold it. */
    readonly asked?: AskedModel | undefined
    /** The end of the answer, as its model told it. */
    readonly heard?: HeardEnd | undefined
  },
): Span {
  const isLast = tried.error === null
  const failure = tried.error ?? node.failure?.code ?? null
  const error = failure === null ? null : spanWord(failure)
  const result: Attributes = { 'legate.status': isLast ? node.state : 'errored' }
  addUsageAttributes(result, tried.usage, style.vocabulary)
  if (error !== null) result['error.type'] = error
  if (asked !== undefined) addRequest(result, asked, style)
  if (heard?.response !== undefined) addResponse(result, heard.response)
  const finish = isLast ? finishOf(node, heard) : undefined
  if (finish !== undefined) result['gen_ai.response.finish_reasons'] = [finish]
  if (isLast) addSpoken(result, node, { style, finish })
  return endedSpan(start ?? modelStart(tree, node, tried), { end: tried.end, result, events: NO_EVENTS, error })
}

/** The end of an answer, as its model told it. */
export type HeardEnd = Pick<Extract<Part, { type: 'finish' }>, 'reason' | 'response'>

/** Adds what is known of a request: its settings, and its text where spans carry it. */
export function addRequest(to: Attributes, asked: AskedModel, { shows }: SpanStyle): void {
  if (asked.settings !== null) addSettings(to, asked.settings)
  addAsked(to, asked, shows)
}

/** The reason for which the answer ended: told by its model, or seen in its row. Undefined where it gave no answer. */
function finishOf({ output, state, failure }: Node, heard: HeardEnd | undefined): string | undefined {
  if (heard !== undefined) return FINISHED[heard.reason]
  if ((output.calls?.length ?? 0) > 0) return FINISHED['tool-calls']
  if (failure === null) return state === 'finished' ? FINISHED.stop : undefined
  return FINISHES[failure.code]
}

/** Failures of whole answers. */
const FINISHES: Readonly<Record<string, string>> = {
  truncated: FINISHED.length,
  content_filter: FINISHED['content-filter'],
  invalid_output: FINISHED.stop,
  empty_answer: FINISHED.stop,
}

export function toolStart(tree: TreeReader, node: Node, { vocabulary, shows }: SpanStyle): SpanStart {
  const tool = spanWord(node.input.call?.name ?? node.kind)
  const agent = vocabulary === '1.41' ? null : childOf(tree, node)
  const attributes: Attributes = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': tool,
    'gen_ai.tool.type': 'function',
    'gen_ai.conversation.id': node.conversationId,
    'legate.run.id': node.turnId,
    'legate.node.id': node.id,
  }
  // A model may write the id of a call itself.
  if (shows('arguments')) attributes['gen_ai.tool.call.id'] = spanWord(node.input.call?.id ?? '')
  if (agent !== null) addTransfer(attributes, agent)
  const name = agent === null ? `execute_tool ${tool}` : `execute_tool ${tool} ${agent}`
  const { traceId, spanId, parentId, isParentForeign } = nodePlace(tree, node)
  return { traceId, spanId, parentId, isParentForeign, kind: 'tool', name, start: node.createdAt, attributes }
}

/** The name of the subagent that a call started. */
function childOf(tree: TreeReader, { metadata }: Node): string | null {
  const child = (metadata['subagent'] as { readonly child_conversation_id?: Id } | undefined)?.child_conversation_id
  const agent = child === undefined ? undefined : tree.conversation(child)?.agent
  return agent === undefined ? null : spanWord(agent.name)
}

/** The span of a call of a tool that has ended. */
export function toolSpan(
  tree: TreeReader,
  node: Node,
  { waits, style, start }: SpanParts & { readonly waits: readonly SpanWait[] },
): Span | undefined {
  if (node.endedAt === null) return undefined
  const error = failureOf(node)
  const result: Attributes = { 'legate.status': node.state }
  // The word of a person, where one was asked.
  if (node.metadata['approval'] !== undefined) {
    result['legate.grant.decision'] = node.state === 'rejected' ? 'denied' : 'approved'
  }
  if (error !== null) result['error.type'] = error
  addCallContent(result, node, style)
  const events = waits.map(waitEvent)
  return endedSpan(start ?? toolStart(tree, node, style), { end: node.endedAt, result, events, error })
}

function failureOf({ state, output, failure }: Node): string | null {
  if (failure !== null) return spanWord(failure.code)
  if (state !== 'finished') return state
  return output.isError === true ? 'tool_error' : null
}

const FOR_PEOPLE = ['approval', 'question']

/** The times in which a call waited for a person. Those for other nodes are seen from their spans. */
export function waitsForPeople({ waits }: Pick<TimelineSpan, 'waits'>): SpanWait[] {
  return waits.flatMap(({ reason, start, end }) =>
    FOR_PEOPLE.includes(reason) && end !== null ? [{ reason, start, end }] : [],
  )
}

function waitEvent({ reason, start, end }: SpanWait): SpanEvent {
  return { name: 'legate.wait', at: start, attributes: { 'legate.wait.reason': reason, 'legate.wait.ms': end - start } }
}

function addRunContent(to: Attributes, tree: TreeReader, turn: Turn, style: SpanStyle): void {
  if (style.shows('input')) to['gen_ai.input.messages'] = userMessage(asText(turn.input))
  const answer = turn.outcome?.answerNodeId == null ? undefined : tree.node(turn.outcome.answerNodeId)
  if (answer !== undefined) addSpoken(to, answer, { style, finish: undefined })
}

function addSpoken(
  to: Attributes,
  { output }: Node,
  { style: { shows }, finish }: { readonly style: SpanStyle; readonly finish: string | undefined },
): void {
  if ((output.content === undefined && output.calls === undefined) || !shows('output')) return
  to['gen_ai.output.messages'] = outputMessages(output, finish ?? FINISHED.stop, shows)
}

function addCallContent(to: Attributes, { input, output }: Node, { shows }: SpanStyle): void {
  if (input.call !== undefined && shows('arguments')) to['gen_ai.tool.call.arguments'] = asText(input.call.input)
  if (output.content !== undefined && shows('result')) to['gen_ai.tool.call.result'] = textOf(output.content)
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
