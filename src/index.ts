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
} from './agent/definition/agent.ts'
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
} from './base/error.ts'
export type { Json } from './base/json.ts'
export type { JsonSchema, Schema, StandardSchema } from './base/schema/schema.ts'
export type { ConversationHandle } from './conversation/conversation.ts'
export type { InboxItem } from './conversation/inbox/inbox.ts'
export type { PendingApproval, PendingQuestion } from './conversation/inbox/pending.ts'
export type { SettleWord } from './conversation/inbox/settle.ts'
export type { Run } from './conversation/run.ts'
export type { Budget } from './grant/budget.ts'
export type { Grant } from './grant/grant.ts'
export type { Principal } from './grant/principal.ts'
export type { Content, Usage } from './graph/content.ts'
export type { RunEvent } from './graph/event.ts'
export type { Outcome, RunOutcome, Status } from './graph/outcome.ts'
export type { Effect, Id } from './graph/rows.ts'
export type { AnswerWord, ApprovalWord, RuntimeOptions, StartOptions } from './runtime/options.ts'
export { createRuntime, type Runtime } from './runtime/runtime.ts'
export type { ScopedRuntime } from './runtime/scoped-runtime.ts'
export { agent, auto } from './runtime/standalone.ts'
export type { Store } from './store/store.ts'
export { type Tool, type ToolContext, type ToolDefinition, tool } from './tool/tool.ts'
