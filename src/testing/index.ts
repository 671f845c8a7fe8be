export type { Clock } from '../base/clock.ts'
export { readTrees, type TreeRows } from '../graph/audit/tree-rows.ts'
export { type Aftermath, aftermath, checkStanding, type Evidence } from './aftermath.ts'
export { CrashCase, type CrashOptions, crash, type Kill, type KillMoment } from './crash.ts'
export {
  type CrashProgram,
  type CrashWorker,
  countEffect,
  crashWorker,
  passPoint,
  tellTest,
  workerRole,
} from './crash-worker.ts'
export {
  FAILPOINTS,
  type Failpoint,
  type FailpointPlan,
  type Failpoints,
  failpoints,
  type KillPoint,
  withFailpoints,
} from './failpoints.ts'
export { type FakeClock, fakeClock } from './fake-clock.ts'
export { type CountedEffect, countOutside, type OutsideCounter, startCounter } from './outside-counter.ts'
export { type RecordOptions, record } from './replay/record.ts'
export { type Replay, replay } from './replay/replay.ts'
export {
  type Script,
  type ScriptedAnswer,
  type ScriptedModel,
  type ScriptedTurn,
  scriptedModel,
} from './scripted-model.ts'
export { storeConformance } from './store-conformance.ts'
export { type ContractOptions, checkSubagentContract } from './subagent-contract.ts'
export type { WorkerLine } from './worker-log.ts'
export type { WorkerExit, WorkerProcess } from './worker-process.ts'
