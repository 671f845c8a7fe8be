export type { DirectInput, DirectMessage } from '../agent/definition/agent.ts'
export type { ForgottenOwner, PruneOptions } from '../audit/archive.ts'
export type { AuditOptions, AuditReport } from '../audit/audit.ts'
export type { CopyOptions, CopyReport } from '../audit/copy.ts'
export type { NodeDiff, RunDiff, RunFigures } from '../audit/diff.ts'
export type { PictureOptions } from '../audit/picture.ts'
export type { RestoredOptions, RestoredReport } from '../audit/restored.ts'
export type { Why, WhyCode, WhyReason } from '../audit/why.ts'
export { ERROR_CODES } from '../base/error.ts'
export type { MutateOptions } from '../conversation/conversation.ts'
export type { GraphData, GraphEdge, GraphNode, GraphQuery, GraphTurn } from '../conversation/data/graph-data.ts'
export type { ConversationInfo, ListQuery, RunInfo, RunsQuery } from '../conversation/data/lists.ts'
export type { NodeInfo, WholeResult } from '../conversation/data/node-info.ts'
export type { TimelineAttempt, TimelineRun, TimelineSpan, TimelineWait } from '../conversation/data/timeline.ts'
export type { DaysQuery, PricedDay } from '../conversation/data/usage-by-day.ts'
export type {
  CompressOptions,
  ConversationHistory,
  Fork,
  ForkOptions,
  RemakeOptions,
} from '../conversation/history-handle.ts'
export type { InboxQuery } from '../conversation/inbox/inbox.ts'
export type { ApprovalsQuery, QuestionsQuery } from '../conversation/inbox/pending.ts'
export type { CompletedOutcome, EventsOptions, TreeEventsOptions } from '../conversation/run.ts'
export type { OtlpSpan, OtlpTraces } from '../conversation/trace/otlp.ts'
export type { OtlpOptions } from '../conversation/trace/read-otlp.ts'
export type { ConversationTree, LaneInfo, RunTree } from '../conversation/tree.ts'
export type { UsageShare } from '../conversation/usage.ts'
export type { UsageQuery, UsageStats, UsageSum } from '../conversation/usage-stats.ts'
export type { KindDefinition } from '../delegation/run/kind.ts'
export type { Engine, EngineFactory, EngineOptions } from '../engine/engine.ts'
export type { Commit } from '../graph/commit.ts'
export type { Block, LiveCall, LiveState, ToolCall } from '../graph/content.ts'
export {
  DURABLE_EVENTS,
  type DurableEvent,
  LIVE_EVENTS,
  type LiveEvent,
} from '../graph/event.ts'
export type { RootState, Told, ToldLane, ToldNode, ToldPast, WaitingOn } from '../graph/kinds.ts'
export { STATUSES } from '../graph/outcome.ts'
export type { StoreReader, TreeReader } from '../graph/reader.ts'
export type { Conversation, Link, Node, NodeState, Turn } from '../graph/rows.ts'
export type { Mutation, NodeSpec } from '../rules/history/mutate.ts'
export type { SettledCall } from '../rules/history/settle-call.ts'
export { seenOf } from '../rules/turn/seen-of.ts'
export type { AgentInfo, RunCeiling } from '../runtime/look/agent-info.ts'
export type { FoundIds, TreeEvents, TreesQuery } from '../runtime/look/find.ts'
export type { ShownRequest } from '../runtime/look/request-of.ts'
export type { TreeData } from '../runtime/look/tree-data.ts'
export type { ImportOptions, ResultWord } from '../runtime/options.ts'
export type { Finding, FindingType, Tombstone } from '../store/archive.ts'
export type { ChangePage, TreeChange } from '../store/feed.ts'
export type { Ledger } from '../store/ledger.ts'
export { look, lookWith, openTopRuns } from '../store/look.ts'
export type { Registry, RegistryQuery, RegistryRow } from '../store/registry.ts'
export type { DayUsage } from '../store/spent.ts'
export type { KindContext } from '../tool/tool.ts'
