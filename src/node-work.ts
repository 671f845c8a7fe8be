import type { EagerWork, NodeRun } from './agent/node-run.ts'
import type { KindDefinition } from './delegation/kind.ts'
import { planRestart } from './graph/turn/restart.ts'
import { planSay } from './graph/turn/say.ts'
import { SourcePool } from './tool/source/source-pool.ts'
import type { Logger } from './tool/tool.ts'

// What runs nodes, and the rules of a run. Loaded when a runtime starts: who only defines agents, or reads rows, does without.
export { keeperOf } from './agent/run-files.ts'
export { runStep } from './agent/step.ts'
export { readyChildren } from './delegation/ready-children.ts'
export { runTask } from './delegation/task.ts'
export { planCancel } from './graph/child/cancel.ts'
export { sessionDocument } from './graph/child/session-document.ts'
export { planApproval } from './graph/turn/approve.ts'
export { planReply } from './graph/turn/question.ts'
export { planResult } from './graph/turn/result.ts'
export { endTurns } from './graph/turn/settle.ts'

/** How an input comes to a conversation: in its turn, or instead of what is going on. */
export const SAYING = { queue: planSay, restart: planRestart } as const

// What few agents need is loaded for those.

export function sourcePool(logger: Logger, now: () => number): SourcePool {
  return new SourcePool(logger, now)
}

export async function equip(run: NodeRun, pool: SourcePool): Promise<NodeRun | undefined> {
  return (await import('./agent/equip.ts')).equip(run, pool)
}

export async function eagerChildren(run: NodeRun): Promise<EagerWork> {
  const { EagerChildren } = await import('./delegation/eager.ts')
  return new EagerChildren(run)
}

export async function runReply(run: NodeRun): Promise<void> {
  return (await import('./delegation/reply.ts')).runReply(run)
}

export async function runKind(run: NodeRun, kind: KindDefinition): Promise<void> {
  return (await import('./delegation/kind.ts')).runKind(run, kind)
}
