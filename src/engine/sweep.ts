import { CANCEL_GRACE_MS, planCancel } from '../graph/cancel.ts'
import { planClaim } from '../graph/claim.ts'
import { planForce, planRecover } from '../graph/recover.ts'
import type { EngineRow, Id } from '../graph/rows.ts'
import type { Ledger } from '../store/ledger.ts'
import { dropEngine, isDead } from './lease.ts'

export interface SweepOptions {
  readonly engineId: Id
  readonly freeWorkers: () => number
  readonly canRun: () => { readonly agents: readonly string[]; readonly kinds: readonly string[] }
}

const BATCH = 256

/**
 * Looks at rows alone and does what is due: claims of dead processes, deadlines, cancelled nodes that did not stop,
 * runnable nodes. Run at start, every second and when another process has written; all progress could rest on it.
 */
export async function sweep(ledger: Ledger, options: SweepOptions): Promise<void> {
  await recoverLost(ledger, options.engineId)
  await expireTurns(ledger)
  await forceStops(ledger)
  await claimRunnable(ledger, options)
}

async function claimRunnable(ledger: Ledger, { freeWorkers, canRun }: SweepOptions): Promise<void> {
  const { agents, kinds } = canRun()
  for (let free = freeWorkers(); free > 0; free = freeWorkers()) {
    const limit = Math.min(free, BATCH)
    const nodes = ledger.store.runnable({ now: ledger.clock.now(), limit, agents, kinds })
    if (nodes.length === 0) return
    for (const [rootId, ids] of byTree(nodes)) {
      await ledger.commit({ kind: 'claim', rootId, plan: (draft) => planClaim(draft, ids) })
    }
    if (freeWorkers() >= free) return
  }
}

async function recoverLost(ledger: Ledger, engineId: Id): Promise<void> {
  const { store, clock } = ledger
  for (const engine of store.engines()) {
    if (engine.id === engineId || !isDead(engine, clock.now())) continue
    if (await recoverClaims(ledger, engine)) await dropEngine(store, engine.id, clock.now())
  }
}

/** True when nothing is left that the engine had claimed. */
async function recoverClaims(ledger: Ledger, engine: EngineRow): Promise<boolean> {
  const lost = { engineId: engine.id, reason: `The process that ran it (pid ${engine.pid}) is gone.` }
  for (const node of ledger.store.claimedBy(engine.id, BATCH)) {
    await ledger.commit({
      kind: 'recover',
      rootId: node.rootId,
      plan: (draft) => planRecover(draft, node.id, lost),
    })
  }
  return ledger.store.claimedBy(engine.id, 1).length === 0
}

async function expireTurns(ledger: Ledger): Promise<void> {
  for (const turn of ledger.store.overdue(ledger.clock.now(), BATCH)) {
    await ledger.commit({
      kind: 'expire',
      rootId: turn.rootId,
      plan: (draft) => planCancel(draft, turn.id, { cause: 'timed_out', reason: null }),
    })
  }
}

async function forceStops(ledger: Ledger): Promise<void> {
  for (const node of ledger.store.unstopped(ledger.clock.now() - CANCEL_GRACE_MS, BATCH)) {
    await ledger.commit({ kind: 'force', rootId: node.rootId, plan: (draft) => planForce(draft, node.id) })
  }
}

function byTree(nodes: readonly { readonly id: Id; readonly rootId: Id }[]): Map<Id, Id[]> {
  const trees = new Map<Id, Id[]>()
  for (const { id, rootId } of nodes) {
    const ids = trees.get(rootId)
    if (ids === undefined) trees.set(rootId, [id])
    else ids.push(id)
  }
  return trees
}
