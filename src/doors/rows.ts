export type { DirectInput, DirectMessage } from '../agent/definition/agent.ts'
export type { PruneOptions } from '../audit/archive.ts'
export type { AuditOptions, AuditReport } from '../audit/audit.ts'
export type { NodeDiff, RunDiff, RunFigures } from '../audit/diff.ts'
export type { PictureOptions } from '../audit/picture.ts'
export type { Why, WhyCode, WhyReason } from '../audit/why.ts'
export { ERROR_CODES } from '../base/error.ts'
export type { MutateOptions } from '../conversation/conversation.ts'
export type {
  CompressOptions,
  ConversationHistory,
  Fork,
  ForkOptions,
  RemakeOptions,
} from '../conversation/history-handle.ts'
export type { ApprovalsQuery, QuestionsQuery } from '../conversation/pending.ts'
export type { CompletedOutcome, EventsOptions } from '../conversation/run.ts'
export type { ConversationTree, LaneInfo, RunTree, WaitingOn } from '../conversation/tree.ts'
export type { UsageShare } from '../conversation/usage.ts'
export type { UsageQuery, UsageStats, UsageSum } from '../conversation/usage-stats.ts'
export type { KindDefinition } from '../delegation/run/kind.ts'
export type { Engine, EngineFactory, EngineOptions } from '../engine/engine.ts'
export type { Commit } from '../graph/commit.ts'
export type { Block, ToolCall } from '../graph/content.ts'
export { DURABLE_EVENTS, type DurableEvent, LIVE_EVENTS, type LiveEvent } from '../graph/event.ts'
export { STATUSES } from '../graph/outcome.ts'
export { openTopRuns, type StoreReader, type TreeReader, treeWith } from '../graph/reader.ts'
export type { Conversation, Link, Node, NodeState, Turn } from '../graph/rows.ts'
export type { Mutation, NodeSpec } from '../rules/history/mutate.ts'
export type { Finding, FindingType, Tombstone } from '../store/archive.ts'
export type { Ledger } from '../store/ledger.ts'
export type { KindContext } from '../tool/tool.ts'
