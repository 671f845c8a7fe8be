import type { EagerWork, NodeRun } from '../agent/hooks/node-run.ts'
import type { LegateError } from '../base/error.ts'
import type { BlockWriter } from '../conversation/blocks.ts'
import type { TurnEnds } from '../conversation/ends.ts'
import type { Feeds } from '../conversation/feeds.ts'
import type { KindDefinition } from '../delegation/run/kind.ts'
import type { Engine } from '../engine/engine.ts'
import { planRestart, planSay } from '../rules/turn/say.ts'
import { SourcePool } from '../tool/source-pool.ts'
import type { Logger } from '../tool/tool.ts'

// What runs nodes, and the rules of a run. Loaded when a runtime starts: who only defines agents, or reads rows, does without.
export { keeperOf } from '../agent/hooks/node-run.ts'
export { runStep } from '../agent/step/step.ts'
export { readyChildren, runTask } from '../delegation/run/task.ts'
export { planReply } from '../rules/delegation/question.ts'
export { sessionDocument } from '../rules/delegation/session-document.ts'
export { endTurns } from '../rules/settle/end-turns.ts'
export { planApproval } from '../rules/turn/approve.ts'
export { planCancel } from '../rules/turn/cancel.ts'
export { planResult } from '../rules/turn/result.ts'

/** How an input comes to a conversation: in its turn, or instead of what is going on. */
export const SAYING = { queue: planSay, restart: planRestart } as const

// What few agents need is loaded for those.

export function sourcePool(logger: Logger, now: () => number): SourcePool {
  return new SourcePool(logger, now)
}

export async function equip(run: NodeRun, pool: SourcePool): Promise<NodeRun | undefined> {
  return (await import('../agent/step/open-sources.ts')).openSources(run, pool)
}

export async function eagerChildren(run: NodeRun): Promise<EagerWork> {
  const { EagerChildren } = await import('../delegation/run/eager.ts')
  return new EagerChildren(run)
}

export async function runReply(run: NodeRun): Promise<void> {
  return (await import('../delegation/run/reply.ts')).runReply(run)
}

export async function runKind(run: NodeRun, kind: KindDefinition): Promise<void> {
  return (await import('../delegation/run/kind.ts')).runKind(run, kind)
}

export interface WaitingParts {
  readonly engine: Engine
  readonly ends: TurnEnds
  readonly feeds: Feeds
  readonly blocks: BlockWriter
}

/** Tells who waits for a run that it cannot end any more: every run where the store is gone, else those of one tree. */
export function endRuns(error: LegateError, { engine, ends, feeds, blocks }: WaitingParts): void {
  const { rootId } = error.details
  if (error.code === 'store_gone') {
    blocks.stop()
    engine.halt()
    ends.failAll(() => error)
    feeds.close()
  } else if (typeof rootId === 'string') {
    ends.failTree(rootId, error)
    feeds.closeTree(rootId)
  }
}
