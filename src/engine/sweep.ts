// The sweep: everything that is due, found from rows alone.
//
// Owns:      the order of one sweep: lost claims, deadlines, expired questions, waits, forced stops, runnable nodes.
// Called by: the local engine at start, every second, and when another process has written.
// Must stay true:
//   - The sweep alone suffices: no progress depends on a message between processes (I5).
//   - Each step is a commit of its own, so a crash between two of them loses nothing.
//   - A damaged tree does not hold up the others.

import { ConflictError, StoreError } from '../base/error.ts'
import type { EngineRow, Id, Node } from '../graph/rows.ts'
import { planStalled } from '../rules/delegation/background.ts'
import { planTimeUp } from '../rules/delegation/question.ts'
import { planExpiry } from '../rules/turn/approve.ts'
import { planCancel } from '../rules/turn/cancel.ts'
import { type Claim, planClaim } from '../rules/turn/claim.ts'
import { type LostClaim, planForce, planRecover, planWaitAgain } from '../rules/turn/result.ts'
import type { Ledger, Step } from '../store/ledger.ts'
import { isProvenDead } from '../store/process-proof.ts'
import { dropEngine, isDead } from './lease.ts'

export interface SweepOptions {
  readonly engineId: Id
  /** How long a cancelled node may take to stop by itself. */
  readonly graceMs: number
  readonly freeWorkers: () => number
  readonly canRun: () => { readonly agents: readonly string[]; readonly kinds: readonly string[] }
  readonly report: (error: unknown) => void
}

const BATCH = 256

/**
 * Does everything that is due, from rows alone: claims of dead processes, deadlines, cancelled nodes that did not stop,
 * runnable nodes. Runs at start, every second and when another process has written; all progress could rest on it.
 */
export async function sweep(ledger: Ledger, options: SweepOptions): Promise<void> {
  await recoverLost(ledger, options)
  await expireTurns(ledger, options)
  await expireAsks(ledger, options)
  await endWaits(ledger, options)
  await forceStops(ledger, options)
  await claimRunnable(ledger, options)
  await waitAgain(ledger, options)
}

/** Returns a claim that this process will not finish, so that others continue. */
export async function giveBack(ledger: Ledger, node: Pick<Node, 'id' | 'rootId'>, lost: LostClaim): Promise<void> {
  await ledger.commit({ kind: 'recover', rootId: node.rootId, plan: (draft) => planRecover(draft, node.id, lost) })
}

/** Takes nodes that were asked to stop from processes that are gone: that needs rows, no engine. */
export async function recoverStopped(ledger: Ledger, rootId: Id, own: Id): Promise<void> {
  const { store } = ledger
  const isAsked = (node: Node) =>
    node.rootId === rootId && (node.marks?.stop ?? store.turn(node.turnId)?.cancel) != null
  for (const lost of lostEngines(ledger)) {
    if (lost.engineId === own) continue
    for (const { id } of store.claimedBy(lost.engineId, Number.MAX_SAFE_INTEGER).filter(isAsked)) {
      await ledger.commit({ kind: 'recover', rootId, plan: (draft) => planRecover(draft, id, lostClaim(lost)) })
    }
  }
}

/** Stops the nodes of this process that were asked to stop one by one and did not within the grace. */
export async function forceStopped(
  ledger: Ledger,
  running: Iterable<Id>,
  { graceMs }: Pick<SweepOptions, 'graceMs'>,
): Promise<void> {
  const before = ledger.clock.now() - graceMs
  for (const nodeId of running) {
    const node = ledger.store.node(nodeId)
    if (node?.marks?.stop == null || node.marks.stop.at > before) continue
    await ledger.commit({ kind: 'force', rootId: node.rootId, plan: (draft) => planForce(draft, nodeId) })
  }
}

/** Records that a running node has been silent since then, or speaks again. */
export async function reportStalled(ledger: Ledger, claim: Claim, since: number | null): Promise<void> {
  const rootId = ledger.store.node(claim.nodeId)?.rootId
  if (rootId === undefined) return
  await ledger.commit({ kind: 'note', rootId, plan: (draft) => planStalled(draft, claim, since) })
}

async function claimRunnable(ledger: Ledger, options: SweepOptions): Promise<void> {
  const { agents, kinds } = options.canRun()
  for (let free = options.freeWorkers(); free > 0; free = options.freeWorkers()) {
    const limit = Math.min(free, BATCH)
    const nodes = ledger.store.runnable({ now: ledger.clock.now(), limit, agents, kinds })
    let taken = 0
    for (const [rootId, ids] of byTree(nodes)) {
      taken += (await tryStep(ledger, options, { kind: 'claim', rootId, plan: (draft) => planClaim(draft, ids) })) ?? 0
    }
    if (taken === 0) return
  }
}

/** Reschedules nodes that wait for a clock that was set back since, by whatever process. */
async function waitAgain(ledger: Ledger, options: SweepOptions): Promise<void> {
  const { store, clock } = ledger
  const everything = { now: Number.MAX_SAFE_INTEGER, limit: BATCH, ...options.canRun() }
  for (const { id, rootId, wakeAt } of store.runnable(everything)) {
    if (wakeAt === null || wakeAt <= clock.now()) continue
    const writtenAt = store.events(rootId, store.lastSeq(rootId) - 1, 1)[0]?.at ?? 0
    if (writtenAt <= clock.now()) continue
    await tryStep(ledger, options, { kind: 'retry', rootId, plan: (draft) => planWaitAgain(draft, id, writtenAt) })
  }
}

async function recoverLost(ledger: Ledger, options: SweepOptions): Promise<void> {
  const { store, clock } = ledger
  for (const lost of lostEngines(ledger)) {
    if (lost.engineId !== options.engineId) await recoverClaims(ledger, options, lost)
  }
  for (const engine of store.engines()) {
    const isOurs = engine.id === options.engineId
    if (isOurs || !isDead(engine, clock.now()) || store.claimedBy(engine.id, 1).length > 0) continue
    // The engine lives after all, or another process was faster.
    await dropEngine(store, engine, clock.now()).catch(ignoreConflict)
  }
}

/** Engines that hold claims and are gone. */
function lostEngines({ store, clock }: Ledger): LostEngine[] {
  const holders = store.claimants().map((engineId) => ({ engineId, engine: store.engine(engineId) }))
  return holders.filter(({ engine }) => engine === undefined || isDead(engine, clock.now()))
}

interface LostEngine {
  readonly engineId: Id
  /** Undefined when its row is gone: others took it for dead, it claimed again when it woke, and died. */
  readonly engine: EngineRow | undefined
}

async function recoverClaims(ledger: Ledger, options: SweepOptions, engine: LostEngine): Promise<void> {
  const lost = lostClaim(engine)
  for (const { id, rootId } of ledger.store.claimedBy(engine.engineId, BATCH)) {
    await tryStep(ledger, options, { kind: 'recover', rootId, plan: (draft) => planRecover(draft, id, lost) })
  }
}

function lostClaim({ engineId, engine }: LostEngine): LostClaim {
  if (engine === undefined) return { engineId, reason: 'The process that ran it is gone.' }
  const what = isProvenDead(engine) ? 'is gone' : 'did not renew its lease in time'
  return { engineId, reason: `The process that ran it (pid ${engine.pid}) ${what}.` }
}

async function expireTurns(ledger: Ledger, options: SweepOptions): Promise<void> {
  const request = { cause: 'timed_out', reason: null } as const
  for (const { id, rootId } of ledger.store.overdue(ledger.clock.now(), BATCH)) {
    await tryStep(ledger, options, { kind: 'expire', rootId, plan: (draft) => planCancel(draft, id, request) })
  }
}

/** Denies requests that nobody answered in time. */
async function expireAsks(ledger: Ledger, options: SweepOptions): Promise<void> {
  for (const { id, rootId, wakeAt } of ledger.store.awaiting({ limit: BATCH })) {
    if (wakeAt === null || wakeAt > ledger.clock.now()) return
    await tryStep(ledger, options, { kind: 'expire', rootId, plan: (draft) => planExpiry(draft, id) })
  }
}

/** Ends waits whose time has come. */
async function endWaits(ledger: Ledger, options: SweepOptions): Promise<void> {
  for (const { id, rootId, wakeAt } of ledger.store.timed({ limit: BATCH })) {
    if (wakeAt === null || wakeAt > ledger.clock.now()) return
    await tryStep(ledger, options, { kind: 'expire', rootId, plan: (draft) => planTimeUp(draft, id) })
  }
}

async function forceStops(ledger: Ledger, options: SweepOptions): Promise<void> {
  for (const { id, rootId } of ledger.store.unstopped(ledger.clock.now() - options.graceMs, BATCH)) {
    await tryStep(ledger, options, { kind: 'force', rootId, plan: (draft) => planForce(draft, id) })
  }
}

/** A damaged tree does not hold up the others; a store that is away holds up all. */
async function tryStep<T>(ledger: Ledger, { report }: SweepOptions, step: Step<T>): Promise<T | undefined> {
  try {
    return await ledger.commit(step)
  } catch (error) {
    if (StoreError.isInstance(error) && error.code !== 'tampered') throw error
    report(error)
    return undefined
  }
}

function ignoreConflict(error: unknown): void {
  if (!ConflictError.isInstance(error)) throw error
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
