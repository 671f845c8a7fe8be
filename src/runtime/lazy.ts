import type { ChildStarter, EagerWork, NodeRun } from '../agent/hooks/node-run.ts'
import type { KindDefinition } from '../delegation/run/kind.ts'
import { readyChildren } from '../delegation/run/task.ts'
import { planRestart, planSay } from '../rules/turn/say.ts'
import { SourcePool } from '../tool/source-pool.ts'
import type { Logger } from '../tool/tool.ts'

// The code that runs nodes, and the rules of a run. A runtime loads it when it starts: a program that only defines agents or reads
// rows does without it.
export { keeperOf } from '../agent/hooks/node-run.ts'
export { runStep } from '../agent/step/step.ts'
export { runTask } from '../delegation/run/task.ts'
export { planReply } from '../rules/delegation/question.ts'
export { sessionDocument } from '../rules/delegation/session-document.ts'
export { endTurns } from '../rules/settle/end-turns.ts'
export { planApproval } from '../rules/turn/approve.ts'
export { planCancel } from '../rules/turn/cancel.ts'
export { planResult } from '../rules/turn/result.ts'

/** How an input comes to a conversation: in its turn, or instead of what is going on. */
export const SAYING = { queue: planSay, restart: planRestart } as const

// Code that few agents need is loaded for those alone.

export function sourcePool(logger: Logger, now: () => number): SourcePool {
  return new SourcePool(logger, now)
}

export async function equip(run: NodeRun, pool: SourcePool): Promise<NodeRun | undefined> {
  return (await import('../agent/step/open-sources.ts')).openSources(run, pool)
}

async function eagerChildren(run: NodeRun): Promise<EagerWork> {
  const { EagerChildren } = await import('../delegation/run/eager.ts')
  return new EagerChildren(run)
}

/** Starts children for the answers of model steps. */
export const CHILDREN: ChildStarter = { ready: readyChildren, eager: eagerChildren }

export async function runReply(run: NodeRun): Promise<void> {
  return (await import('../delegation/run/reply.ts')).runReply(run)
}

export async function runKind(run: NodeRun, kind: KindDefinition): Promise<void> {
  return (await import('../delegation/run/kind.ts')).runKind(run, kind)
}
