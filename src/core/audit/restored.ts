import { ConflictError } from '../base/error.ts'
import { flag, type OptionRules, readOptions } from '../base/options.ts'
import { dropEngine, isDead, leaseTime } from '../engine/lease.ts'
import type { EngineRow } from '../graph/commit.ts'
import type { Id, Turn } from '../graph/rows.ts'
import { planRestored, type RestoredNodes } from '../rules/turn/restored.ts'
import type { Ledger } from '../store/ledger.ts'
import { look, openTopRuns } from '../store/look.ts'

export interface RestoredOptions {
  /** Also cancels all open runs, so that none of them does again what it did after the backup. Default false. */
  readonly cancel?: boolean
}

/** The report of `runtime.restored()`. */
export interface RestoredReport {
  /** When the last open run was written to: what came later is not in the store. Null where no run is open. */
  readonly lastWrittenAt: number | null
  /** How many trees had an open run. */
  readonly trees: number
  /** How many claims of processes were taken away. */
  readonly claims: number
  /** Calls that may have taken effect after the backup: `runtime.inbox()` lists them, and `runtime.settle()` settles them. */
  readonly uncertain: readonly Id[]
  /** Requests that wait for a person, who may have allowed them after the backup. */
  readonly asked: readonly Id[]
  /** How many open runs were asked to stop. */
  readonly cancelled: number
  /** How many processes of before were taken off the list. */
  readonly processes: number
}

const OPTIONS: OptionRules<RestoredOptions> = { cancel: flag }

/** Makes a store that came from a backup safe to work on. Refused while a process lives on it, because that one would go on. */
export async function restored(
  ledger: Ledger,
  given: RestoredOptions,
  cancel: (runId: Id, why: string) => Promise<void>,
): Promise<RestoredReport> {
  const { cancel: isCancelling = false } = readOptions('restored()', given, OPTIONS)
  const { store, clock } = ledger
  const engines = await store.engines()
  const now = await leaseTime(ledger)
  const alive = engines.filter((engine) => !isDead(engine, now))
  if (alive.length > 0) throw stillWorked(alive)
  const tops = isCancelling ? await openTopRuns(store) : []
  const found: RestoredNodes[] = []
  let lastWrittenAt: number | null = null
  for (const [rootId, turns] of byTree(await store.openTurns(Number.MAX_SAFE_INTEGER))) {
    const at = await lastWrite(ledger, rootId)
    const ids = turns.map(({ id }) => id)
    const reason = reasonOf(at)
    found.push(await ledger.commit({ kind: 'recover', rootId, plan: (draft) => planRestored(draft, ids, reason) }))
    lastWrittenAt = Math.max(at, lastWrittenAt ?? at)
  }
  for (const { id } of tops) await cancel(id, 'The store was restored from a backup.')
  for (const engine of engines) await dropEngine(store, engine, clock.now())
  return {
    lastWrittenAt,
    trees: found.length,
    claims: found.reduce((sum, { claims }) => sum + claims, 0),
    uncertain: found.flatMap(({ uncertain }) => uncertain),
    asked: found.flatMap(({ asked }) => asked),
    cancelled: tops.length,
    processes: engines.length,
  }
}

function stillWorked(alive: readonly EngineRow[]): ConflictError {
  const names = alive.map(({ pid, host }) => (host === undefined ? `${pid}` : `${pid} on ${host}`)).join(', ')
  const message = `Processes work on this store, or did so seconds before the backup: ${names}. End them, wait until their lease is over (15 seconds), and try again.`
  return new ConflictError('conflict', message, { details: { pids: alive.map(({ pid }) => pid), stale: false } })
}

function reasonOf(at: number): string {
  return `The store was restored from a backup, whose last word of this tree is of ${new Date(at).toISOString()}: what was done after that is not known here.`
}

/** When the last event of a tree was written. */
async function lastWrite({ store }: Ledger, rootId: Id): Promise<number> {
  const seq = await look(store, rootId, (tree) => tree.lastSeq(rootId))
  const [last] = await store.events(rootId, seq - 1, 1)
  return last?.at ?? 0
}

function byTree(turns: readonly Turn[]): Map<Id, Turn[]> {
  const trees = new Map<Id, Turn[]>()
  for (const turn of turns) {
    const known = trees.get(turn.rootId)
    if (known === undefined) trees.set(turn.rootId, [turn])
    else known.push(turn)
  }
  return trees
}
