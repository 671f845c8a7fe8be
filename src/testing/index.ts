export type { Clock } from '../base/clock.ts'
export { type FakeClock, fakeClock } from './fake-clock.ts'
export {
  type Script,
  type ScriptedAnswer,
  type ScriptedModel,
  type ScriptedTurn,
  scriptedModel,
} from './scripted-model.ts'
export { storeConformance } from './store-conformance.ts'
