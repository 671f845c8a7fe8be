export type { Extension } from '../core/agent/definition/agent.ts'
export type { CompactionOptions } from '../core/agent/definition/compaction-settings.ts'
export type { ExtensionCore, RunOfState } from '../core/agent/definition/extension.ts'
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
} from '../core/agent/definition/hooks.ts'
export type { PlanContext, PlanFunction, ToolCommand } from '../core/agent/definition/planner-settings.ts'
export type { Repair } from '../core/agent/definition/repair.ts'
export { extension } from '../core/agent/hooks/hook-set.ts'
export {
  type ChatMessage,
  type ChatMethods,
  type ChatOptions,
  type ChatPlace,
  type ChatSession,
  type ChatStart,
  chatSession,
} from '../core/extension/chat-session.ts'
export { type PlannerOptions, planner } from '../core/extension/planner.ts'
export type {
  Inside,
  Span,
  SpanAttributes,
  SpanContent,
  SpanEvent,
  SpanPlace,
  SpanStart,
  SpanValue,
  Telemetry,
  Vocabulary,
} from '../core/tool/telemetry.ts'
export type { Logger } from '../core/tool/tool.ts'
