export type { Clock } from '../base/clock.ts'
export { readTrees, type TreeRows } from '../graph/reader.ts'
export { storeConformance } from './conformance/store-conformance.ts'
export { type ContractOptions, checkSubagentContract } from './conformance/subagent-contract.ts'
export { type Aftermath, aftermath, checkStanding, type Evidence } from './crash/aftermath.ts'
export { CrashCase, type CrashOptions, crash, type Kill, type KillMoment } from './crash/crash.ts'
export {
  type CrashProgram,
  type CrashWorker,
  countEffect,
  crashWorker,
  passPoint,
  tellTest,
  workerRole,
} from './crash/crash-worker.ts'
export type { WorkerLine } from './crash/failpoints.ts'
export {
  FAILPOINTS,
  type Failpoint,
  type FailpointPlan,
  type Failpoints,
  failpoints,
  type KillPoint,
  withFailpoints,
} from './crash/failpoints.ts'
export { type CountedEffect, countOutside, type OutsideCounter, startCounter } from './crash/outside-counter.ts'
export type { WorkerExit, WorkerProcess } from './crash/worker-process.ts'
export { type Replay, replay } from './replay/player.ts'
export { type RecordOptions, record } from './replay/recorder.ts'
export { type FakeClock, fakeClock } from './stand-ins/fake-clock.ts'
export {
  type Script,
  type ScriptedAnswer,
  type ScriptedModel,
  type ScriptedTurn,
  scriptedModel,
} from './stand-ins/scripted-model.ts'
