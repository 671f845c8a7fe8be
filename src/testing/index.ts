// The public door `legate/testing`: stand-ins (scripted model, fake clock), recordings (`record`, `replay`), crash tests,
// and conformance suites for stores and subagents.
//
// Called by: tests of users, and the tests of this repository.
//
// Must stay true:
// - Nothing here is imported by the product; it may import every room.
// - A test with these tools needs no network, no key and no real time.

export type { Clock } from '../core/base/clock.ts'
export { readTrees, type TreeRows } from '../core/graph/reader.ts'
export type { LocalStore } from '../core/store/store.ts'
export { type EngineConformance, engineConformance } from './conformance/engine-conformance.ts'
export { storeConformance } from './conformance/store-conformance.ts'
export { type ContractOptions, checkSubagentContract } from './conformance/subagent-contract.ts'
export { type Aftermath, aftermath, checkStanding, type Evidence } from './crash/aftermath.ts'
export { CrashCase, type CrashOptions, crash, type Kill, type KillMoment, type WorkerGiven } from './crash/crash.ts'
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
export { forgetBetweenNodes } from './stand-ins/forget-between-nodes.ts'
export {
  type Script,
  type ScriptedAnswer,
  type ScriptedAnswerFields,
  type ScriptedInput,
  type ScriptedModel,
  scriptedModel,
} from './stand-ins/scripted-model.ts'
