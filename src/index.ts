export {
  type Agent,
  type AgentDefinition,
  type AgentInput,
  type AgentOutput,
  type AgentWritten,
  type AnyAgent,
  type AutoDefinition,
  type AutoFunction,
  type DirectInput,
  type DirectMessage,
  type Eager,
  type EagerConfig,
  type EagerValue,
  type Extension,
  type GroupedTools,
  isAgent,
  type McpServers,
  type RunOptions,
  type Sources,
  type SubagentConfig,
  type Subagents,
  type SubagentValue,
  type ToolChoice,
  type ToolFunctionOptions,
  type ToolGroup,
  type Tools,
} from './agent/agent.ts'
export { type AiSdkTool, asAiSdkTool } from './agent/ai-sdk-tool.ts'
export type {
  Briefing,
  BriefingFunction,
  BriefingMode,
  DelegationContext,
  HostContext,
  RecentEvent,
} from './agent/briefing.ts'
export type { CompactionOptions } from './agent/compaction-settings.ts'
export { extension } from './agent/hooks/define-extension.ts'
export type { ExtensionCore, RunOfState } from './agent/hooks/extension.ts'
export type { Given } from './agent/hooks/given.ts'
export type {
  AfterTool,
  BeforeTool,
  ChildCall,
  Emission,
  EventHooks,
  HookContext,
  HookedCall,
  Hooks,
  ModelAnswer,
  NextModel,
  RequestChange,
  StreamedAnswer,
  ToolResult,
} from './agent/hooks/hooks.ts'
export { type MissingSecret, missingSecrets } from './agent/missing-secrets.ts'
export type { NameClash } from './agent/name-clash.ts'
export type { PlanContext, PlanFunction, ToolCommand } from './agent/planner/settings.ts'
export type { EventType, StreamOptions } from './agent/read-forward.ts'
export type { Repair } from './agent/repair.ts'
export type { ReplyAnswer, ReplyContext, ReplyDefinition, ReplyDelegate, ReplyInput } from './agent/reply.ts'
export type { AgentRequest, RequestRuntime, RequestStartOptions } from './agent/request/agent-request.ts'
export { type ToolkitOptions, toolkit } from './agent/toolkit.ts'
export {
  ConflictError,
  DefinitionError,
  DeniedError,
  ERROR_CODES,
  type ErrorCode,
  FieldError,
  type FieldFailure,
  InputError,
  isLegateError,
  LegateError,
  ModelError,
  NotFoundError,
  RecipeError,
  RunError,
  StoreError,
  SubAgentUnavailable,
  ToolError,
} from './base/error.ts'
export type { Json } from './base/json.ts'
export type { InferInput, InferOutput, JsonSchema, Schema, StandardSchema } from './base/schema.ts'
export type { ApprovalsQuery, PendingApproval } from './conversation/approvals.ts'
export type { AuditOptions, AuditReport } from './conversation/audit.ts'
export type { ConversationHandle } from './conversation/conversation.ts'
export type { NodeDiff, RunDiff, RunFigures } from './conversation/diff.ts'
export type { FieldResult } from './conversation/fields/field-handlers.ts'
export type { FieldsOptions } from './conversation/fields/matching-fields.ts'
export type { RunField } from './conversation/fields/run-field.ts'
export type { KeyOptions } from './conversation/fields/run-fields.ts'
export type { FieldOptions } from './conversation/fields/wait-for-field.ts'
export type { PruneOptions } from './conversation/forget.ts'
export type { CompressOptions, Fork, ForkOptions, RemakeOptions } from './conversation/history-handle.ts'
export type { LaneInfo } from './conversation/lanes.ts'
export type { PictureOptions } from './conversation/picture.ts'
export type { PendingQuestion, QuestionsQuery } from './conversation/questions.ts'
export type { CompletedOutcome, EventsOptions, FieldHandler, Run, RunOutcome } from './conversation/run.ts'
export type { ConversationTree, RunTree, WaitingOn } from './conversation/tree.ts'
export type {
  UiApproval,
  UiDataParts,
  UiMessage,
  UiMessageChunk,
  UiMetadata,
  UiQuestion,
  UiSubagent,
} from './conversation/ui-chunk.ts'
export { toUIMessageStream, toUIMessages } from './conversation/ui-message-stream.ts'
export type { UsageShare } from './conversation/usage.ts'
export type { UsageQuery, UsageStats, UsageSum } from './conversation/usage-stats.ts'
export type { Why, WhyCode, WhyReason } from './conversation/why.ts'
export { askTools } from './delegation/background/ask.ts'
export type { ChildPoll, Spawned } from './delegation/background/handle.ts'
export { type Joined, type JoinOptions, joinSpawned } from './delegation/background/join-spawned.ts'
export type { BackgroundOptions } from './delegation/background/options.ts'
export type { SpawnAgentOptions } from './delegation/background/spawn-agent.ts'
export { backgroundSubagents } from './delegation/background/tools.ts'
export type { KindDefinition } from './delegation/kind.ts'
export {
  type MadeSubagentTool,
  type MakeSubagentOptions,
  makeSubagentTool,
  type SubagentHost,
  type SubagentSpec,
} from './delegation/make-subagent-tool.ts'
export {
  type Schedule,
  type ScheduleEvent,
  type ScheduleOptions,
  type ScheduleProgress,
  type ScheduleResult,
  scheduleTasks,
  type TaskRunner,
} from './delegation/schedule/schedule.ts'
export type { ScheduledTask, TaskResult, TaskStatus } from './delegation/schedule/task.ts'
export { type ChatMethods, chatSession } from './extension/chat/chat-session.ts'
export type { ChatOptions, ChatPlace } from './extension/chat/read-record.ts'
export type { ChatMessage, ChatSession, ChatStart } from './extension/chat/session.ts'
export { type PlannerOptions, planner } from './extension/planner/planner.ts'
export type { FilePolicy } from './files/access.ts'
export type { FileInfo } from './files/backend.ts'
export { type DiskFilesOptions, diskFiles } from './files/disk.ts'
export type { FileDomain } from './files/domain.ts'
export type { Edit } from './files/edit.ts'
export type { FileChange, Files, Listing } from './files/files.ts'
export { type MemoryFilesOptions, memoryFiles } from './files/memory.ts'
export { type GeneralTask, type GeneralWorkerOptions, generalWorker } from './general-worker.ts'
export type { Budget } from './grant/budget.ts'
export type { Explanation } from './grant/explain.ts'
export type { Grant } from './grant/grant.ts'
export type { Profiles } from './grant/profile.ts'
export type { Finding, FindingType } from './graph/audit/finding.ts'
export type { OpenSession } from './graph/child/session.ts'
export type { SessionDocument } from './graph/child/session-document.ts'
export type { Block, Content, ToolCall, Usage } from './graph/content.ts'
export { DURABLE_EVENTS, type DurableEvent, LIVE_EVENTS, type LiveEvent, type RunEvent } from './graph/event.ts'
export { type EagerOutcome, type Outcome, STATUSES, type Status } from './graph/outcome.ts'
export type { Conversation, Effect, Id, Link, Node, NodeState, Turn } from './graph/rows.ts'
export type { AiSdkModel } from './model/ai-sdk/ai-sdk-model.ts'
export { fromAiSdk } from './model/ai-sdk/from-ai-sdk.ts'
export type { FinishReason, Message, Model, ModelRequest, ModelSettings, Part, ToolSchema } from './model/model.ts'
export { findModel } from './model/named/find-model.ts'
export { costOf, type ModelInfo, modelInfo } from './model/named/prices.ts'
export type { ModelLike } from './model/to-model.ts'
export type { AnswerWord, ApprovalWord, RuntimeOptions, StartOptions } from './options.ts'
export { MODES } from './recipe/open/modes.ts'
export { type OpenOptions, openSubagents, type SubRecipeOption } from './recipe/open/open-subagents.ts'
export type { ChildSettings, Mode, Surface } from './recipe/open/spec.ts'
export { type RecipeAgentOptions, recipeAgent } from './recipe-agent.ts'
export { createRuntime, type Runtime } from './runtime.ts'
export { agent, auto } from './standalone.ts'
export { conversationIdFor } from './start-checks.ts'
export type { Tombstone } from './store/archive.ts'
export { memoryStore } from './store/memory.ts'
export type { SessionSettings, SessionStore } from './store/session-store.ts'
export type { Store } from './store/store.ts'
export type { Attempts } from './tool/attempts.ts'
export { type Attribute, attribute } from './tool/attribute.ts'
export { type DeveloperToolName, developerTools } from './tool/developer/developer-tools.ts'
export { fileTools } from './tool/file-tools.ts'
export { mcpServer } from './tool/mcp/mcp-server.ts'
export type { HttpServerOptions, McpServerOptions, StdioServerOptions } from './tool/mcp/options.ts'
export { type MemoryToolsOptions, memoryTools } from './tool/memory/memory-tools.ts'
export { type ProcessOptions, type ProcessResult, runProcess } from './tool/run-process.ts'
export type { OpenSource, SourcePlace, SourceScope, SourceTool, ToolSource } from './tool/source/source.ts'
export { todoTools } from './tool/todo-tools.ts'
export {
  type Delegate,
  type KindContext,
  type Logger,
  type ShapedTool,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  tool,
} from './tool/tool.ts'
