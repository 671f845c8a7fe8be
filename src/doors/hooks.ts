export type { Extension } from '../agent/definition/agent.ts'
export type { CompactionOptions } from '../agent/definition/compaction-settings.ts'
export type { ExtensionCore, RunOfState } from '../agent/definition/extension.ts'
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
} from '../agent/definition/hooks.ts'
export type { PlanContext, PlanFunction, ToolCommand } from '../agent/definition/planner-settings.ts'
export type { Repair } from '../agent/definition/repair.ts'
export { extension } from '../agent/hooks/hook-set.ts'
export {
  type ChatMessage,
  type ChatMethods,
  type ChatOptions,
  type ChatPlace,
  type ChatSession,
  type ChatStart,
  chatSession,
} from '../extension/chat-session.ts'
export { type PlannerOptions, planner } from '../extension/planner.ts'
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
} from '../tool/telemetry.ts'
export type { Logger } from '../tool/tool.ts'
