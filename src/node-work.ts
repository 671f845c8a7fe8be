/** What runs nodes. Loaded when a runtime starts: who only defines agents, or reads rows, does without it. */
export { equip } from './agent/equip.ts'
export { runStep } from './agent/step.ts'
export { EagerChildren } from './delegation/eager.ts'
export { runKind } from './delegation/kind.ts'
export { runTask } from './delegation/task.ts'
