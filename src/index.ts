export { type AiSdkTool, asAiSdkTool } from './agent/build/ai-sdk-tool.ts'
export { type MissingSecret, missingSecrets } from './agent/build/read-kit.ts'
export type { ReplyAnswer, ReplyContext, ReplyDefinition, ReplyDelegate, ReplyInput } from './agent/build/reply.ts'
export { type ToolkitOptions, toolkit } from './agent/build/toolkit.ts'
export {
  type Agent,
  type AgentDefinition,
  type AgentInput,
  type AgentOutput,
  type AgentRawOutput,
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
} from './agent/definition/agent.ts'
export type { AgentRequest, RequestRuntime, RequestStartOptions } from './agent/definition/agent-request.ts'
export type {
  Briefing,
  BriefingFunction,
  BriefingMode,
  DelegationContext,
  HostContext,
  RecentEvent,
} from './agent/definition/briefing.ts'
export type { CompactionOptions } from './agent/definition/compaction-settings.ts'
export type { ExtensionCore, RunOfState } from './agent/definition/extension.ts'
export type {
  AfterTool,
  BeforeTool,
  ChildCall,
  Emission,
  EventHooks,
  HookContext,
  HookedCall,
  HookResult,
  Hooks,
  ModelAnswer,
  NextModel,
  RequestChange,
  StreamedAnswer,
  ToolResult,
} from './agent/definition/hooks.ts'
export type { PlanContext, PlanFunction, ToolCommand } from './agent/definition/planner-settings.ts'
export type { Repair } from './agent/definition/repair.ts'
export type { EventType, NameClash, StreamOptions } from './agent/definition/subagent-options.ts'
export { extension } from './agent/hooks/hook-set.ts'
export type { PruneOptions } from './audit/archive.ts'
export type { AuditOptions, AuditReport } from './audit/audit.ts'
export type { NodeDiff, RunDiff, RunFigures } from './audit/diff.ts'
export type { PictureOptions } from './audit/picture.ts'
export type { Why, WhyCode, WhyReason } from './audit/why.ts'
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
export type { InferInput, InferOutput, JsonSchema, Schema, StandardSchema } from './base/schema/schema.ts'
export type { ConversationHandle } from './conversation/conversation.ts'
export type { FieldResult } from './conversation/fields/field-handlers.ts'
export type { RunField } from './conversation/fields/run-field.ts'
export type { FieldsOptions, KeyOptions } from './conversation/fields/run-fields.ts'
export type { FieldOptions } from './conversation/fields/wait-for-field.ts'
export type { CompressOptions, Fork, ForkOptions, RemakeOptions } from './conversation/history-handle.ts'
export type { ApprovalsQuery, PendingApproval, PendingQuestion, QuestionsQuery } from './conversation/pending.ts'
export type { CompletedOutcome, EventsOptions, FieldHandler, Run, RunOutcome } from './conversation/run.ts'
export type { ConversationTree, LaneInfo, RunTree, WaitingOn } from './conversation/tree.ts'
export type {
  UiApproval,
  UiDataParts,
  UiMessage,
  UiMessageChunk,
  UiMetadata,
  UiQuestion,
  UiSubagent,
} from './conversation/ui/ui-chunk.ts'
export { toUIMessageStream, toUIMessages } from './conversation/ui/ui-message-stream.ts'
export type { UsageShare } from './conversation/usage.ts'
export type { UsageQuery, UsageStats, UsageSum } from './conversation/usage-stats.ts'
export { askTools } from './delegation/background/ask.ts'
export type { ChildPoll, SpawnedAgent } from './delegation/background/handle.ts'
export type { BackgroundOptions } from './delegation/background/options.ts'
export type { SpawnAgentOptions } from './delegation/background/spawn-agent.ts'
export { type JoinOptions, type JoinResult, joinSpawned } from './delegation/background/spawn-agent.ts'
export { backgroundSubagents } from './delegation/background/tools.ts'
export {
  type MakeSubagentOptions,
  makeSubagentTool,
  type SubagentHost,
  type SubagentSpec,
  type SubagentTool,
} from './delegation/make-subagent-tool.ts'
export type { KindDefinition } from './delegation/run/kind.ts'
export type { ScheduledTask, TaskResult, TaskStatus } from './delegation/schedule.ts'
export {
  type Schedule,
  type ScheduleEvent,
  type ScheduleOptions,
  type ScheduleProgress,
  type ScheduleResult,
  scheduleTasks,
  type TaskRunner,
} from './delegation/schedule.ts'
export type { ChatMessage, ChatOptions, ChatPlace, ChatSession, ChatStart } from './extension/chat-session.ts'
export { type ChatMethods, chatSession } from './extension/chat-session.ts'
export { type PlannerOptions, planner } from './extension/planner.ts'
export type { FilePolicy } from './files/access.ts'
export type { FileInfo } from './files/backend.ts'
export { type DiskFilesOptions, diskFiles } from './files/disk.ts'
export type { FileDomain } from './files/domain.ts'
export type { Edit } from './files/edit.ts'
export type { FileChange, Files, Listing } from './files/files.ts'
export { type MemoryFilesOptions, memoryFiles } from './files/memory.ts'
export type { Budget } from './grant/budget.ts'
export type { Explanation } from './grant/decide.ts'
export type { Grant } from './grant/grant.ts'
export type { Profiles } from './grant/profile.ts'
export type { Block, Content, ToolCall, Usage } from './graph/content.ts'
export { DURABLE_EVENTS, type DurableEvent, LIVE_EVENTS, type LiveEvent, type RunEvent } from './graph/event.ts'
export { type EagerOutcome, type Outcome, STATUSES, type Status } from './graph/outcome.ts'
export type { Conversation, Effect, Id, Link, Node, NodeState, Turn } from './graph/rows.ts'
export type { AiSdkModel } from './model/ai-sdk/ai-sdk-model.ts'
export { fromAiSdk } from './model/ai-sdk/from-ai-sdk.ts'
export type { FinishReason, Message, Model, ModelRequest, ModelSettings, Part, ToolSchema } from './model/model.ts'
export { findModel } from './model/named/find-model.ts'
export { costOf, type ModelInfo, modelInfo } from './model/named/prices.ts'
export type { ModelLike } from './model/named/to-model.ts'
export type { ChildSettings, Mode, Surface } from './recipe/inline/spec.ts'
export { MODES } from './recipe/inline/spec.ts'
export { type OpenOptions, openSubagents, type SubRecipeOption } from './recipe/open/open-subagents.ts'
export type { OpenSession } from './rules/delegation/session.ts'
export type { SessionDocument } from './rules/delegation/session-document.ts'
export { type GeneralTask, type GeneralWorkerOptions, generalWorker } from './runtime/general-worker.ts'
export type { AnswerWord, ApprovalWord, RuntimeOptions, StartOptions } from './runtime/options.ts'
export { type RecipeAgentOptions, recipeAgent } from './runtime/recipe-agent.ts'
export { createRuntime, type Runtime } from './runtime/runtime.ts'
export { agent, auto } from './runtime/standalone.ts'
export { conversationIdFor } from './runtime/start-run.ts'
export type { Finding, FindingType, Tombstone } from './store/archive.ts'
export { memoryStore } from './store/memory/index.ts'
export type { SessionSettings, SessionStore } from './store/session-store.ts'
export type { Store } from './store/store.ts'
export type { Attempts } from './tool/attempts.ts'
export { type ProcessOptions, type ProcessResult, runProcess } from './tool/run-process.ts'
export type { OpenSource, SourcePlace, SourceScope, SourceTool, ToolSource } from './tool/source.ts'
export {
  type Attribute,
  attribute,
  type Delegate,
  type KindContext,
  type Logger,
  type ShapedTool,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  tool,
} from './tool/tool.ts'
export { type DeveloperToolName, developerTools } from './tools/developer-tools.ts'
export { fileTools } from './tools/file-tools.ts'
export { mcpServer } from './tools/mcp/mcp-server.ts'
export type { HttpServerOptions, McpServerOptions, StdioServerOptions } from './tools/mcp/options.ts'
export { type MemoryToolsOptions, memoryTools } from './tools/memory-tools.ts'
export { todoTools } from './tools/todo-tools.ts'
