import type { ChildStarter, EagerWork, NodeRun } from '../agent/hooks/node-run.ts'
import type { KindDefinition } from '../delegation/run/kind.ts'
import { readyChildren } from '../delegation/run/task.ts'
import { SessionCopies, type SessionCopiesOptions } from '../delegation/session-copies.ts'
import { CallGate, type CallPlace } from '../engine/call-gate.ts'
import type { CallLimits } from '../grant/call-limits.ts'
import { planEndHold } from '../rules/turn/result.ts'
import { planRestart, planSay } from '../rules/turn/say.ts'
import type { Ledger } from '../store/ledger.ts'
import { SourcePool, type SourcePoolParts } from '../tool/source-pool.ts'

export { inlineCore, makeCore } from '../../recipes/run/inline-core.ts'
// The code that runs nodes, and the rules of a run. A runtime loads it when it starts: a program that only defines agents or reads
// rows does without it.
export { keeperOf } from '../agent/hooks/node-run.ts'
export { runStep } from '../agent/step/step.ts'
export { requireDay } from '../agent/step/within-day.ts'
export { runTask } from '../delegation/run/task.ts'
export { ownerStoresOf, requireFiles, requireNoPrograms } from '../operations/look/needs.ts'
export { planOutsideResult, planReply } from '../rules/delegation/question.ts'
export { withCharges } from '../rules/settle/charges.ts'
export { endTurns } from '../rules/settle/end-turns.ts'
export { tellChanges } from '../rules/settle/told.ts'
export { planApproval } from '../rules/turn/approve.ts'
export { planCancel } from '../rules/turn/cancel.ts'
export { planResult } from '../rules/turn/result.ts'
export { KeyedStarts, overtaken, requestHashOf } from './keys/keyed-starts.ts'

/** How an input comes to a conversation: in its turn, or instead of what is going on. */
export const SAYING = { queue: planSay, restart: planRestart } as const

// Code that few agents need is loaded for those alone.

/** The gate before model calls. A node that waits at it is woken by a commit. */
export function callGate(ledger: Ledger, limits: CallLimits | undefined, report: (error: unknown) => void): CallGate {
  const { store, clock, scheduler } = ledger
  const wake = async ({ rootId, nodeId }: CallPlace): Promise<boolean> => {
    try {
      return await ledger.commit({ kind: 'claim', rootId, plan: (draft) => planEndHold(draft, nodeId) })
    } catch (error) {
      report(error)
      return false
    }
  }
  return new CallGate({ store, clock, scheduler, limits, wake })
}

/** Keeps copies of sessions, for agents that want copies. */
export function sessionCopies(options: SessionCopiesOptions): SessionCopies {
  return new SessionCopies(options)
}

export function sourcePool(parts: SourcePoolParts): SourcePool {
  return new SourcePool(parts)
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
