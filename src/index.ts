export {
  type Agent,
  type AgentDefinition,
  type AgentInput,
  type AgentOutput,
  type AnyAgent,
  type AutoDefinition,
  type AutoFunction,
  isAgent,
  type RunOptions,
  type SubagentConfig,
  type Subagents,
  type Tools,
} from './core/agent/definition/agent.ts'
export {
  ConflictError,
  DefinitionError,
  DeniedError,
  type ErrorCode,
  InputError,
  isLegateError,
  LegateError,
  ModelError,
  NotFoundError,
  RunError,
  StoreError,
  SubAgentUnavailable,
  ToolError,
} from './core/base/error.ts'
export type { Json } from './core/base/json.ts'
export type { JsonSchema, Schema, StandardSchema } from './core/base/schema/schema.ts'
export type { ConversationHandle } from './core/conversation/conversation.ts'
export type { InboxItem } from './core/conversation/inbox/inbox.ts'
export type { PendingApproval, PendingQuestion } from './core/conversation/inbox/pending.ts'
export type { SettleDecision } from './core/conversation/inbox/settle.ts'
export type { Run } from './core/conversation/run.ts'
export type { Budget } from './core/grant/budget.ts'
export type { Grant } from './core/grant/grant.ts'
export type { Principal } from './core/grant/principal.ts'
export type { Content, Usage } from './core/graph/content.ts'
export type { RunEvent } from './core/graph/event.ts'
export type { Outcome, RunOutcome, Status } from './core/graph/outcome.ts'
export type { Effect, Id } from './core/graph/rows.ts'
export type { ApprovalDecision, QuestionAnswer } from './core/operations/form/words.ts'
export type { RuntimeOptions, StartOptions } from './core/runtime/options.ts'
export { createRuntime, type Runtime } from './core/runtime/runtime.ts'
export type { ScopedRuntime } from './core/runtime/scoped-runtime.ts'
export { agent, auto } from './core/runtime/standalone.ts'
export type { Store } from './core/store/store.ts'
export { type Tool, type ToolContext, type ToolDefinition, tool } from './core/tool/tool.ts'
