import { planRestart } from './graph/turn/restart.ts'
import { planSay } from './graph/turn/say.ts'

// What runs nodes, and the rules of a run. Loaded when a runtime starts: who only defines agents, or reads rows, does without.
export { equip } from './agent/equip.ts'
export { runStep } from './agent/step.ts'
export { EagerChildren } from './delegation/eager.ts'
export { runKind } from './delegation/kind.ts'
export { runTask } from './delegation/task.ts'
export { planCancel } from './graph/child/cancel.ts'
export { planApproval } from './graph/turn/approve.ts'
export { planReply } from './graph/turn/question.ts'
export { planResult } from './graph/turn/result.ts'

/** How an input comes to a conversation: in its turn, or instead of what is going on. */
export const SAYING = { queue: planSay, restart: planRestart } as const
