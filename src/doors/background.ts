export type {
  ReplyAnswer,
  ReplyContext,
  ReplyDefinition,
  ReplyDelegate,
  ReplyInput,
} from '../core/agent/build/reply.ts'
export type {
  BackgroundSettings,
  Eager,
  EagerConfig,
  EagerValue,
  SubagentValue,
} from '../core/agent/definition/agent.ts'
export type {
  Briefing,
  BriefingFunction,
  BriefingMode,
  DelegationContext,
  HostContext,
  RecentEvent,
} from '../core/agent/definition/briefing.ts'
export type { EventType, NameClash, StreamOptions } from '../core/agent/definition/subagent-options.ts'
export { askTools } from '../core/delegation/background/ask.ts'
export type { ChildPoll, SpawnedAgent } from '../core/delegation/background/handle.ts'
export { type JoinOptions, type JoinResult, joinSpawned } from '../core/delegation/background/join-spawned.ts'
export type { BackgroundOptions } from '../core/delegation/background/options.ts'
export type { SpawnAgentOptions } from '../core/delegation/background/spawn-agent.ts'
export { backgroundSubagents } from '../core/delegation/background/tools.ts'
export {
  type Schedule,
  type ScheduledTask,
  type ScheduleEvent,
  type ScheduleOptions,
  type ScheduleProgress,
  type ScheduleResult,
  scheduleTasks,
  type TaskResult,
  type TaskRunner,
  type TaskStatus,
} from '../core/delegation/schedule.ts'
export type { EagerOutcome } from '../core/graph/outcome.ts'
export type { OpenSession } from '../core/rules/delegation/session.ts'
export type { SessionDocument } from '../core/rules/delegation/session-document.ts'
export { type GeneralTask, type GeneralWorkerOptions, generalWorker } from '../core/runtime/general-worker.ts'
export type { SessionSettings, SessionStore } from '../core/store/session-store.ts'
export type { Attempts } from '../core/tool/attempts.ts'
