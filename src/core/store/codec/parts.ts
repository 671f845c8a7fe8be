import type { Json } from '../../base/json.ts'
import { NO_USAGE, type Usage } from '../../graph/content.ts'
import type { Account, TurnLimits } from '../../graph/limits.ts'
import { endSummary, type OutcomeRecord, originOf, subagentOf } from '../../graph/outcome.ts'
import type { Conversation, Id, Link, Node, NodeOutput, Turn } from '../../graph/rows.ts'

/** Undefined, which JSON leaves out, for the usual value. */
export function unless<T>(value: T, usual: T): T | undefined {
  return value === usual ? undefined : value
}

/** Undefined for a list or an object without entries. */
export function unlessEmpty<T extends object>(value: T): T | undefined {
  return isEmpty(value) ? undefined : value
}

export type UsageParts = readonly [input: number, output: number, cacheRead: number, cacheWrite: number]

/** Undefined for no usage. */
export function packUsage(usage: Usage): UsageParts | undefined {
  if (usage === NO_USAGE) return undefined
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage
  const isNone = inputTokens === 0 && outputTokens === 0 && cacheReadTokens === 0 && cacheWriteTokens === 0
  return isNone ? undefined : [inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens]
}

export function packNodeUsage({ usage }: Node): UsageParts | undefined {
  return packUsage(usage)
}

export function toUsage(parts: UsageParts | undefined): Usage {
  if (parts === undefined) return NO_USAGE
  const [inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens] = parts
  return { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }
}

/** When it was made, and how many milliseconds after that it began and ended, if it has. */
export type TimeParts = readonly [createdAt: number, started?: Later | null, ended?: Later | null]
/** The moment itself, as text, where the difference is not exact. */
type Later = number | string

export interface Times {
  createdAt: number
  startedAt: number | null
  endedAt: number | null
}

export function packTimes({ createdAt, startedAt, endedAt }: Readonly<Times>): TimeParts {
  if (endedAt !== null) return [createdAt, packLater(startedAt, createdAt), packLater(endedAt, createdAt)]
  return startedAt === null ? [createdAt] : [createdAt, packLater(startedAt, createdAt)]
}

/** Sets the times. Rows of older versions have the fields themselves, and no parts. */
export function setTimes(row: Times, parts: TimeParts | undefined): void {
  if (parts === undefined) return
  const [createdAt, started = null, ended = null] = parts
  row.createdAt = createdAt
  row.startedAt = toLater(started, createdAt)
  row.endedAt = toLater(ended, createdAt)
}

function packLater(moment: number | null, createdAt: number): Later | null {
  if (moment === null) return null
  const after = moment - createdAt
  return createdAt + after === moment ? after : String(moment)
}

function toLater(later: Later | null, createdAt: number): number | null {
  if (later === null) return null
  return typeof later === 'string' ? Number(later) : createdAt + later
}

export type LimitParts = readonly [
  modelCalls: number,
  toolCalls: number,
  children: number,
  concurrency: number,
  depth: number,
  wallMs: number,
]

export function packLimits({ limits }: Turn): LimitParts {
  const { modelCalls, toolCalls, children, concurrency, depth, wallMs } = limits
  return [modelCalls, toolCalls, children, concurrency, depth, wallMs]
}

export function toLimits([modelCalls, toolCalls, children, concurrency, depth, wallMs]: LimitParts): TurnLimits {
  return { modelCalls, toolCalls, children, concurrency, depth, wallMs }
}

export type AccountParts = readonly [
  modelCalls: number,
  toolCalls: number,
  children: number,
  live: number,
  nextRelease: number,
  usage: UsageParts | 0,
  ...uncertain: readonly string[],
]

export function packAccount({ account }: Turn): AccountParts {
  const { modelCalls, toolCalls, children, live, nextRelease, usage, uncertain } = account
  return [modelCalls, toolCalls, children, live, nextRelease, packUsage(usage) ?? 0, ...uncertain]
}

export function toAccount(parts: AccountParts): Account {
  const [modelCalls, toolCalls, children, live, nextRelease, usage, ...uncertain] = parts
  return { modelCalls, toolCalls, children, live, nextRelease, usage: toUsage(usage || undefined), uncertain }
}

/** The run that an outcome belongs to, as far as its place tells. */
export interface OutcomePlace {
  readonly runId: string
  readonly conversationId: string
}

export type PackedOutcome = Partial<Omit<OutcomeRecord, 'usage'>> & {
  readonly usage?: UsageParts
  readonly counts: readonly [modelCalls: number, toolCalls: number, children: number, durationMs: number]
}

export function packTurnOutcome({ id, conversationId, outcome }: Turn): PackedOutcome | undefined {
  return outcome === null ? undefined : packOutcome(outcome, { runId: id, conversationId })
}

export function packLinkOutcome({ id, childConversationId, outcome }: Link): PackedOutcome | undefined {
  return outcome === null ? undefined : packOutcome(outcome, { runId: id, conversationId: childConversationId })
}

/** A child's end is most often given to the task that asked for it: an empty text stands for that task. */
export const THE_TASK = ''

export function packDelivery({ deliveredTo, taskId }: Link): Link['deliveredTo'] | undefined {
  return deliveredTo === taskId ? THE_TASK : unless(deliveredTo, null)
}

export function packOutcome(outcome: OutcomeRecord, place: OutcomePlace): PackedOutcome {
  const { modelCalls, toolCalls, children, durationMs, uncertain } = outcome
  return {
    status: unless(outcome.status, 'completed'),
    runId: unless(outcome.runId, place.runId),
    conversationId: unless(outcome.conversationId, place.conversationId),
    answerNodeId: unless(outcome.answerNodeId, null),
    error: unless(outcome.error, null),
    usage: packUsage(outcome.usage),
    counts: [modelCalls, toolCalls, children, durationMs],
    retryable: unless(outcome.retryable, false),
    advice: unless(outcome.advice, null),
    uncertain: uncertain.length === 0 ? undefined : uncertain,
    open: outcome.open.length === 0 ? undefined : outcome.open,
    absent: outcome.absent.length === 0 ? undefined : outcome.absent,
    delegations: outcome.delegations.length === 0 ? undefined : outcome.delegations,
  } as PackedOutcome
}

export function toOutcome(packed: PackedOutcome, place: OutcomePlace): OutcomeRecord {
  const [modelCalls, toolCalls, children, durationMs] = packed.counts
  return {
    status: packed.status ?? 'completed',
    runId: packed.runId ?? place.runId,
    conversationId: packed.conversationId ?? place.conversationId,
    answerNodeId: packed.answerNodeId ?? null,
    error: packed.error ?? null,
    usage: toUsage(packed.usage),
    modelCalls,
    toolCalls,
    children,
    durationMs,
    retryable: packed.retryable ?? false,
    advice: packed.advice ?? null,
    uncertain: packed.uncertain ?? [],
    open: packed.open ?? [],
    absent: packed.absent ?? [],
    delegations: packed.delegations ?? [],
  }
}

/** The child of a delegating task. Its metadata and its output both name it, so the codec writes one `child`. */
export function childOf({ output, metadata }: Node): Id | undefined {
  const id = output.subagent?.child_conversation_id
  if (id === undefined || Array.isArray(output.metadata?.['outcome'])) return undefined
  const usual = subagentOf(id)
  return saysJust(output.subagent, usual) && saysJust(metadata['subagent'], usual) ? id : undefined
}

/** The metadata of a node, without what `child` says already. */
export function packNodeMetadata(row: Node): Node['metadata'] | undefined {
  if (childOf(row) === undefined) return unlessEmpty(row.metadata)
  const { subagent, ...others } = row.metadata
  return unlessEmpty(others)
}

/** The output of a node, without what `child` says already. */
export function packOutput(row: Node): NodeOutput | undefined {
  const child = childOf(row)
  if (child === undefined) return unlessEmpty(row.output)
  const { subagent, ...others } = row.output
  const { metadata } = others
  return metadata === undefined ? unlessEmpty(others) : { ...others, metadata: packEnd(metadata, child) }
}

/** A short text is its own preview. */
export function packPreview(row: Node): string | undefined {
  return unless(row.preview, usualPreview(row))
}

export function usualPreview({ input, output }: Node): string {
  const content = output.content ?? input.content
  return typeof content === 'string' ? content : ''
}

export function metadataWith(metadata: Node['metadata'], child: Id): Node['metadata'] {
  return { ...metadata, subagent: subagentOf(child) }
}

export function outputWith(output: NodeOutput, child: Id): NodeOutput {
  const { metadata } = output
  const subagent = subagentOf(child)
  return metadata === undefined ? { ...output, subagent } : { ...output, metadata: toWhole(metadata, child), subagent }
}

export function packPath({ path, agent }: Conversation): Conversation['path'] | undefined {
  return path.length === 1 && path[0] === agent.name ? undefined : path
}

export function packParent({ parentConversationId, parentTurnId, rootId }: Conversation): Id | null | undefined {
  return unless(parentConversationId, parentTurnId === null ? null : rootId)
}

export function packMetadata(row: Conversation): Conversation['metadata'] | undefined {
  return isUsualMetadata(row) ? undefined : row.metadata
}

/** Whether a conversation says of itself only what its other fields say too. */
function isUsualMetadata(row: Conversation): boolean {
  const { subagent, ...others } = row.metadata
  if (!isEmpty(others)) return false
  const usual = usualMetadata(row)['subagent']
  return usual === undefined ? subagent === undefined : saysJust(subagent, usual)
}

export function usualMetadata({ agent, parentConversationId, parentTaskId }: Conversation): Conversation['metadata'] {
  if (parentTaskId === null) return {}
  return { subagent: originOf(agent.name, parentConversationId, parentTaskId) }
}

/** True where a value has these very fields, in whatever order, and no others. */
function saysJust(value: unknown, usual: unknown): boolean {
  const [fields, wanted] = [fieldsOf(value), fieldsOf(usual)]
  for (const key in wanted) if (fields[key] !== wanted[key]) return false
  return Object.keys(fields).length === Object.keys(wanted).length
}

function isEmpty(fields: object): boolean {
  for (const _ in fields) return false
  return true
}

const NONE = {}

function fieldsOf(value: unknown): { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null ? (value as { readonly [key: string]: Json }) : NONE
}

type Metadata = NonNullable<NodeOutput['metadata']>

/** A successful end: the run, its usage, milliseconds, model calls. */
type EndParts = readonly [runId: string, usage: UsageParts | 0, durationMs: number, turns: number]

/** Shortens the metadata of a delegation's result where it describes a usual successful end. */
function packEnd(metadata: Metadata, child: Id): Metadata {
  const end = metadata['outcome'] as Partial<End> | null | undefined
  if (end?.status !== 'completed' || end.usage === undefined) return metadata
  const { run_id: runId = '', duration_ms: durationMs = 0, turns = 0 } = end
  const parts: EndParts = [runId, packUsage(end.usage) ?? 0, durationMs, turns]
  return isSame(end, toEnd(parts, child)) ? { ...metadata, outcome: parts as unknown as Json } : metadata
}

function toWhole(metadata: Metadata, child: Id): Metadata {
  const { outcome } = metadata
  if (!Array.isArray(outcome)) return metadata
  return { ...metadata, outcome: toEnd(outcome as unknown as EndParts, child) }
}

/** The fields of an end that are shortened. */
interface End {
  readonly status: string
  readonly run_id: string
  readonly usage: Usage
  readonly duration_ms: number
  readonly turns: number
}

function toEnd([runId, usage, durationMs, modelCalls]: EndParts, child: Id): Json {
  const counts = { usage: toUsage(usage || undefined), durationMs, modelCalls }
  return endSummary({ ...SUCCESS, runId, conversationId: child, ...counts }) as Json
}

const SUCCESS = { status: 'completed', error: null, retryable: false, advice: null, absent: [] } as const

/** True where all fields and their order are equal: only then would reading give back the very text. */
function isSame(end: object, usual: Json): boolean {
  return JSON.stringify(end) === JSON.stringify(usual)
}
