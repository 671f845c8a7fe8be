import { NO_USAGE, type Usage } from '../../graph/content.ts'
import type { OutcomeRecord } from '../../graph/outcome.ts'
import type { Account, TurnLimits } from '../../graph/rows.ts'

/** Undefined, which JSON leaves out, for the usual value. */
export function unless<T>(value: T, usual: T): T | undefined {
  return value === usual ? undefined : value
}

export type UsageParts = readonly [input: number, output: number, cacheRead: number, cacheWrite: number]

/** Undefined for none. */
export function packUsage(usage: Usage): UsageParts | undefined {
  if (usage === NO_USAGE) return undefined
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage
  const isNone = inputTokens === 0 && outputTokens === 0 && cacheReadTokens === 0 && cacheWriteTokens === 0
  return isNone ? undefined : [inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens]
}

export function toUsage(parts: UsageParts | undefined): Usage {
  if (parts === undefined) return NO_USAGE
  const [inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens] = parts
  return { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }
}

/** When it was made, and how many milliseconds after that it began and ended, as far as it has. */
export type TimeParts = readonly [createdAt: number, started?: Later | null, ended?: Later | null]
/** A moment, as text, where the difference is not exact. */
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

/** Rows that were written before there were such parts have the fields themselves. */
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
  turns: number,
  toolCalls: number,
  children: number,
  concurrency: number,
  depth: number,
  wallMs: number,
]

export function packLimits({ turns, toolCalls, children, concurrency, depth, wallMs }: TurnLimits): LimitParts {
  return [turns, toolCalls, children, concurrency, depth, wallMs]
}

export function toLimits([turns, toolCalls, children, concurrency, depth, wallMs]: LimitParts): TurnLimits {
  return { turns, toolCalls, children, concurrency, depth, wallMs }
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

export function packAccount(account: Account): AccountParts {
  const { modelCalls, toolCalls, children, live, nextRelease, usage, uncertain } = account
  return [modelCalls, toolCalls, children, live, nextRelease, packUsage(usage) ?? 0, ...uncertain]
}

export function toAccount(parts: AccountParts): Account {
  const [modelCalls, toolCalls, children, live, nextRelease, usage, ...uncertain] = parts
  return { modelCalls, toolCalls, children, live, nextRelease, usage: toUsage(usage || undefined), uncertain }
}

/** Of which run it is the outcome, as far as the place it is kept at says that. */
export interface OutcomePlace {
  readonly runId: string
  readonly conversationId: string
}

export type PackedOutcome = Partial<Omit<OutcomeRecord, 'usage'>> & {
  readonly usage?: UsageParts
  readonly counts: readonly [modelCalls: number, toolCalls: number, children: number, durationMs: number]
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
