export type { ReplyAnswer, ReplyContext, ReplyDefinition, ReplyDelegate, ReplyInput } from '../agent/build/reply.ts'
export type { BackgroundSettings, Eager, EagerConfig, EagerValue, SubagentValue } from '../agent/definition/agent.ts'
export type {
  Briefing,
  BriefingFunction,
  BriefingMode,
  DelegationContext,
  HostContext,
  RecentEvent,
} from '../agent/definition/briefing.ts'
export type { EventType, NameClash, StreamOptions } from '../agent/definition/subagent-options.ts'
export { askTools } from '../delegation/background/ask.ts'
export type { ChildPoll, SpawnedAgent } from '../delegation/background/handle.ts'
export { type JoinOptions, type JoinResult, joinSpawned } from '../delegation/background/join-spawned.ts'
export type { BackgroundOptions } from '../delegation/background/options.ts'
export type { SpawnAgentOptions } from '../delegation/background/spawn-agent.ts'
export { backgroundSubagents } from '../delegation/background/tools.ts'
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
} from '../delegation/schedule.ts'
export type { EagerOutcome } from '../graph/outcome.ts'
export type { OpenSession } from '../rules/delegation/session.ts'
export type { SessionDocument } from '../rules/delegation/session-document.ts'
export { type GeneralTask, type GeneralWorkerOptions, generalWorker } from '../runtime/general-worker.ts'
export type { SessionSettings, SessionStore } from '../store/session-store.ts'
export type { Attempts } from '../tool/attempts.ts'
