// The sweep: everything that is due, found from rows alone.
//
// Owns:      the order of one sweep: lost claims, deadlines, expired questions, waits, forced stops, runnable nodes.
// Called by: the local engine at start, every second, and when another process has written.
// Must stay true:
//   - The sweep alone suffices: no progress depends on a message between processes (I5).
//   - Each step is a commit of its own, so a crash between two of them loses nothing.
//   - A damaged tree does not hold up the others.

import { ConflictError, StoreError } from '../base/error.ts'
import type { Later } from '../base/maybe.ts'
import type { EngineRow } from '../graph/commit.ts'
import type { Draft } from '../graph/draft.ts'
import { isRunnable } from '../graph/kinds.ts'
import { type RunnableQuery, type TreeReader, unlessTampered } from '../graph/reader.ts'
import type { AgentRef, Id, Node, Turn } from '../graph/rows.ts'
import { planStalled } from '../rules/delegation/background.ts'
import { planTimeUp } from '../rules/delegation/question.ts'
import { planExpiry } from '../rules/turn/approve.ts'
import { planCancel } from '../rules/turn/cancel.ts'
import { type Claim, planClaim } from '../rules/turn/claim.ts'
import { type LostClaim, planForce, planRecover, planWaitAgain } from '../rules/turn/result.ts'
import type { Ledger, Step } from '../store/ledger.ts'
import { look, lookUnlessTampered } from '../store/look.ts'
import { isProvenDead } from '../store/process-proof.ts'
import type { Agenda } from '../store/store.ts'
import type { Crew } from './crew.ts'
import type { EngineOptions } from './engine.ts'
import { dropEngine, isDead, type Lease, leaseTime } from './lease.ts'
import type { RunningNode } from './running-node.ts'

export interface SweepOptions {
  readonly engineId: Id
  /** How long a cancelled node may take to stop by itself. */
  readonly graceMs: number
  readonly freeWorkers: () => number
  readonly line: OwnerLine
  readonly crew: Pick<Crew, 'learn'>
  /** Which nodes it may claim, where it leaves some to others; undefined for all. */
  readonly mayTake?: ((node: NodePlace) => boolean) | undefined
  /** The nodes that run in this process. */
  readonly running: () => Iterable<Claim>
  readonly canRun: () => { readonly agents: readonly string[]; readonly kinds: readonly string[] }
  /** See EngineOptions. */
  readonly mayRun?: ((agent: AgentRef) => boolean) | undefined
  readonly report: (error: unknown) => void
  /** Renews the lease where it is time: with a store far away, a sweep may take longer than a lease. */
  readonly keep: () => Later<void>
}

/** Where owners take turns while there are more runnable nodes than workers. An engine keeps it from sweep to sweep. */
export interface OwnerLine {
  /** The owner who was served last; undefined before the first one. */
  last: string | null | undefined
  /** True when the last sweep left nodes of one owner behind while nodes of another run. */
  isCrowded: boolean
}

const BATCH = 256

/**
 * Does everything that is due, from rows alone: claims of dead processes, deadlines, cancelled nodes that did not stop,
 * runnable nodes. Runs at start, every second and when another process has written; all progress could rest on it. Gives the trees
 * of the nodes that it has claimed.
 */
export async function sweep(ledger: Ledger, options: SweepOptions, agenda?: Agenda): Promise<ReadonlySet<Id>> {
  await options.keep()
  await recoverLost(ledger, options, agenda)
  for (const part of agenda?.isDue === false ? [] : DUE) {
    await options.keep()
    await part(ledger, options)
  }
  await options.keep()
  if (agenda?.isRunnable === false) {
    options.line.isCrowded = false
    return new Set()
  }
  const taken = await claimRunnable(ledger, options)
  await waitAgain(ledger, options)
  return taken
}

const DUE = [expireTurns, expireAsks, endWaits, forceStops]

/** The work that a store names with one answer. */
export async function agendaOf({ store, clock }: Ledger, graceMs: number): Promise<Agenda | undefined> {
  const now = clock.now()
  const agenda = await store.agenda?.({ now, stopBefore: now - graceMs })
  if (agenda !== undefined) clock.follow?.(agenda.now)
  return agenda
}

/** Does everything that is due in one tree. False where a runnable node is left: its code is not here, or no worker is free. */
export async function sweepTree(ledger: Ledger, options: SweepOptions, rootId: Id): Promise<boolean> {
  let isDone = true
  const lost = new Map((await lostEngines(ledger)).map((engine) => [engine.engineId, engine]))
  for (const turn of await ledger.store.openTurns(Number.MAX_SAFE_INTEGER, rootId)) {
    const now = ledger.clock.now()
    if (turn.state === 'running' && turn.deadline !== null && turn.deadline <= now) {
      await tryStep(ledger, options, expiry(turn))
    }
    for (const { id } of await look(ledger.store, rootId, (tree) => tree.openNodes(turn.id))) {
      const node = await look(ledger.store, rootId, (tree) => tree.node(id))
      if (node !== undefined && !(await doDue(ledger, node, { turn, now, lost, options }))) isDone = false
    }
  }
  return isDone
}

/** Does what is due at an open node. False where it could run, and not here. */
async function doDue(ledger: Ledger, node: Node, around: NodeSurroundings): Promise<boolean> {
  const { now, options } = around
  const step = dueStep(node, around)
  if (step !== undefined) await tryStep(ledger, options, step)
  return step !== undefined || !isRunnable(node, now) || (await claimed(ledger, options, node))
}

/** Claims a node if it runs here. */
async function claimed(ledger: Ledger, options: SweepOptions, { id, rootId }: NodePlace): Promise<boolean> {
  if (options.freeWorkers() <= 0) return false
  return (await tryStep(ledger, options, { kind: 'claim', rootId, plan: (draft) => planClaim(draft, [id]) })) === 1
}

interface NodeSurroundings {
  readonly turn: Turn
  readonly now: number
  readonly lost: ReadonlyMap<Id, LostEngine>
  readonly options: SweepOptions
}

/** The step that is due at an open node, if any. */
function dueStep(node: Node, { turn, now, lost, options }: NodeSurroundings): Step<unknown> | undefined {
  const { state, wakeAt } = node
  const holder = lost.get(node.engineId ?? '')
  if (holder !== undefined && holder.engineId !== options.engineId) return recovery(node, holder)
  if (state === 'running') {
    return turn.cancel !== null && turn.cancel.at <= now - options.graceMs ? forcedStop(node) : undefined
  }
  if (wakeAt === null || wakeAt > now) return undefined
  if (state === 'awaiting_approval') return unanswered(node)
  return state === 'waiting' ? endOfWait(node) : undefined
}

type NodePlace = Pick<Node, 'id' | 'rootId'>

function recovery({ id, rootId }: NodePlace, engine: LostEngine): Step<unknown> {
  const lost = lostClaim(engine)
  return { kind: 'recover', rootId, plan: (draft) => planRecover(draft, id, lost) }
}

function expiry({ id, rootId }: Turn): Step<unknown> {
  return { kind: 'expire', rootId, plan: (draft) => planCancel(draft, id, { cause: 'timed_out', reason: null }) }
}

/** Denies a request that nobody answered in time. */
function unanswered({ id, rootId }: NodePlace): Step<unknown> {
  return { kind: 'expire', rootId, plan: (draft) => planExpiry(draft, id) }
}

function endOfWait({ id, rootId }: NodePlace): Step<unknown> {
  return { kind: 'expire', rootId, plan: (draft) => planTimeUp(draft, id) }
}

function forcedStop({ id, rootId }: NodePlace): Step<unknown> {
  return { kind: 'force', rootId, plan: (draft) => planForce(draft, id) }
}

/** Returns a claim that this process will not finish, so that others continue. */
export async function giveBack(ledger: Ledger, node: Pick<Node, 'id' | 'rootId'>, lost: LostClaim): Promise<void> {
  await ledger.commit({ kind: 'recover', rootId: node.rootId, plan: (draft) => planRecover(draft, node.id, lost) })
}

/** Says that a process ends, and keeps its lease until it has ended: the nodes that it runs may take longer than a lease. */
export async function keepDraining(
  lease: Pick<Lease, 'drain' | 'renew' | 'isOver'>,
  { leaseMs, report }: Pick<EngineOptions, 'leaseMs' | 'report'>,
): Promise<void> {
  lease.drain()
  await lease.renew().catch(report)
  const timer = setInterval(() => {
    if (lease.isOver) clearInterval(timer)
    else lease.renew().catch(report)
  }, leaseMs / 3)
  timer.unref()
}

/** Waits, at most for the grace, until all code has ended but code that awaits work elsewhere. `end` ends the waiting. */
export function untilDrained(graceMs: number, isWaiting: () => boolean): { over: Promise<void>; end: () => void } {
  let end: () => void = () => undefined
  const over = new Promise<void>((resolve) => {
    let wasWaiting = false
    end = () => {
      clearTimeout(timer)
      clearInterval(looking)
      resolve()
    }
    const timer = setTimeout(end, graceMs)
    const looking = setInterval(() => {
      if (isWaiting() && wasWaiting) end()
      wasWaiting = isWaiting()
    }, 100)
  })
  return { over, end }
}

/** Gives back what a process has claimed and does not know of: a commit whose answer was lost for too long, nodes that did not begin. */
export async function giveBackIdle(ledger: Ledger, engineId: Id, isKnown: (nodeId: Id) => boolean): Promise<void> {
  const claimed = await ledger.store.claimedBy(engineId, Number.MAX_SAFE_INTEGER)
  const lost = { engineId, reason: 'The process that claimed it has not begun it.' }
  for (const node of claimed) if (!isKnown(node.id)) await giveBack(ledger, node, lost)
}

/** Takes nodes that were asked to stop from processes that are gone: that needs rows, no engine. */
export async function recoverStopped(ledger: Ledger, rootId: Id, own: Id): Promise<void> {
  const { store } = ledger
  for (const lost of await lostEngines(ledger)) {
    if (lost.engineId === own) continue
    const claimed = await store.claimedBy(lost.engineId, Number.MAX_SAFE_INTEGER)
    const here = claimed.filter((node) => node.rootId === rootId)
    const asked = await look(store, rootId, (tree) =>
      here.filter((node) => (node.marks?.stop ?? tree.turn(node.turnId)?.cancel) != null),
    )
    for (const { id } of asked) {
      await ledger.commit({ kind: 'recover', rootId, plan: (draft) => planRecover(draft, id, lostClaim(lost)) })
    }
  }
}

/** Stops the nodes of this process that were asked to stop one by one and did not within the grace. */
export async function forceStopped(
  ledger: Ledger,
  running: Iterable<Pick<RunningNode, 'claim' | 'stopCause'>>,
  { graceMs }: Pick<SweepOptions, 'graceMs'>,
): Promise<void> {
  const before = ledger.clock.now() - graceMs
  for (const { claim, stopCause } of running) {
    if (stopCause === null) continue
    const { nodeId, rootId } = claim
    const node = await look(ledger.store, rootId, (tree) => tree.node(nodeId))
    if (node?.marks?.stop == null || node.marks.stop.at > before) continue
    await ledger.commit({ kind: 'force', rootId, plan: (draft) => planForce(draft, nodeId) })
  }
}

/** Records once that a running node has been silent for too long, and once that it speaks again. */
export async function reportSilence(ledger: Ledger, work: RunningNode, now: number): Promise<void> {
  const { claim } = work
  const since = work.silentSince(now)
  if ((since !== null) === work.isSilenceReported) return
  work.isSilenceReported = since !== null
  await ledger.commit({ kind: 'note', rootId: claim.rootId, plan: (draft) => planStalled(draft, claim, since) })
}

/** Claims as many nodes as there are workers, of each owner in turn. Gives their trees. */
export async function claimRunnable(ledger: Ledger, options: SweepOptions): Promise<ReadonlySet<Id>> {
  const { line } = options
  const trees = new Set<Id>()
  // Whoever runs nodes already had a turn.
  if (line.last === undefined) for (const claim of options.running()) line.last = await ownerOf(ledger, claim)
  for (let free = options.freeWorkers(); free > 0; free = options.freeWorkers()) {
    const wanted = Math.min(free, BATCH)
    const nodes = await nextInLine(ledger, options, wanted)
    const taken = await claimAll(ledger, options, nodes)
    for (const rootId of taken) trees.add(rootId)
    const last = nodes.at(-1)
    if (last !== undefined) line.last = await ownerOf(ledger, last)
    // Where there were fewer than wanted, none is left.
    if (taken.size === 0 || nodes.length < wanted) break
  }
  line.isCrowded = options.freeWorkers() <= 0 && (await isCrowded(ledger, options))
  return trees
}

/** Claims nodes, and gives the trees of those that this process has got. A store far away takes the claims of many trees at once. */
async function claimAll(ledger: Ledger, options: SweepOptions, nodes: readonly Node[]): Promise<ReadonlySet<Id>> {
  const trees = [...byTree(nodes)]
  const taken = await Promise.all(
    trees.map(([rootId, ids]) => {
      const plan = (draft: Draft) => planClaim(draft, ids)
      return tryStep(ledger, options, { kind: 'claim', rootId, plan })
    }),
  )
  return new Set(trees.flatMap(([rootId], at) => ((taken[at] ?? 0) > 0 ? [rootId] : [])))
}

/** How many nodes are read to find some that run here among those that do not. */
const LOOKED_AT = 10_000

/** The next nodes that run here, of each owner in turn. */
async function nextInLine(ledger: Ledger, options: SweepOptions, limit: number): Promise<readonly Node[]> {
  const { canRun, mayRun, mayTake, line } = options
  const after = line.last === undefined ? {} : { after: line.last }
  const first = mayTake === undefined ? limit : Math.max(limit, BATCH)
  for (let most = first; ; most = Math.max(limit, LOOKED_AT)) {
    const query: RunnableQuery = { now: ledger.clock.now(), limit: most, ...canRun(), ...after }
    const found = await ledger.store.runnable(query)
    const free = mayTake === undefined ? found : found.filter(mayTake)
    const own = mayRun === undefined ? free.slice(0, limit) : await onlyOf(ledger, free, { ...options, limit })
    const isAll = found.length < most || most >= LOOKED_AT
    if (own.length >= limit || isAll || mayRun === undefined) return own
  }
}

/** The first that may run here. A store far away is asked for many trees at once; those that were changed from outside are passed over. */
async function onlyOf(ledger: Ledger, nodes: readonly Node[], options: SweepOptions & Limited): Promise<Node[]> {
  const own: Node[] = []
  // Few at first, since most may run here: a tree that is read for nothing costs as much as one that is run.
  let size = Math.min(options.limit, BATCH)
  for (let from = 0; from < nodes.length && own.length < options.limit; ) {
    const lot = nodes.slice(from, from + size)
    from += size
    size = Math.min(size * 2, BATCH)
    await options.keep()
    const areOwn = await Promise.all(lot.map((node) => isOwn(ledger, node, options)))
    own.push(...lot.filter((_, at) => areOwn[at]))
  }
  return own.slice(0, options.limit)
}

interface Limited {
  readonly limit: number
}

function isOwn({ store }: Ledger, node: Node, { mayRun, report }: SweepOptions): Promise<boolean> {
  return lookUnlessTampered(store, node.rootId, {
    read: (tree) => {
      const agent = tree.conversation(node.conversationId)?.agent
      return agent === undefined || mayRun?.(agent) !== false
    },
    altered: (error) => {
      report(error)
      return false
    },
  })
}

/** Whether somebody waits for a worker while others have one. Nodes of one owner alone need no turns. */
async function isCrowded(ledger: Ledger, options: SweepOptions): Promise<boolean> {
  const waiting = await nextInLine(ledger, options, 2)
  if (waiting.length === 0) return false
  const owners = new Set<string | null>()
  for (const node of [...waiting, ...options.running()]) {
    owners.add(await ownerOf(ledger, node))
    if (owners.size > 1) return true
  }
  return false
}

/** The owner of a tree, which stays the same. */
async function ownerOf({ store }: Ledger, { rootId }: Pick<Node, 'rootId'>): Promise<string | null> {
  const known = unlessTampered(() => store.known?.(rootId)?.conversation(rootId))
  if (known !== undefined) return known.owner
  const read = (tree: TreeReader) => tree.conversation(rootId)?.owner ?? null
  return lookUnlessTampered(store, rootId, { read, altered: () => null })
}

/** Reschedules nodes that wait for a clock that was set back since, by whatever process. */
async function waitAgain(ledger: Ledger, options: SweepOptions): Promise<void> {
  const { store, clock } = ledger
  const everything = { now: Number.MAX_SAFE_INTEGER, limit: BATCH, ...options.canRun() }
  for (const { id, rootId, wakeAt } of await store.runnable(everything)) {
    if (wakeAt === null || wakeAt <= clock.now()) continue
    await options.keep()
    const altered = () => 0
    const last = await lookUnlessTampered(store, rootId, { read: (tree) => tree.lastSeq(rootId), altered })
    const writtenAt = (await store.events(rootId, last - 1, 1))[0]?.at ?? 0
    if (writtenAt <= clock.now()) continue
    await tryStep(ledger, options, { kind: 'retry', rootId, plan: (draft) => planWaitAgain(draft, id, writtenAt) })
  }
}

async function recoverLost(ledger: Ledger, options: SweepOptions, agenda: Agenda | undefined): Promise<void> {
  const { store } = ledger
  const { now, lost, engines } = agenda === undefined ? await lookAtEngines(ledger) : enginesIn(agenda)
  options.crew.learn(engines, now)
  for (const one of lost) if (one.engineId !== options.engineId) await recoverClaims(ledger, options, one)
  const dead = engines.filter((engine) => engine.id !== options.engineId && isDead(engine, now))
  for (const engine of forgettable(dead, now)) {
    if ((await store.claimedBy(engine.id, 1)).length > 0) continue
    // The engine lives after all, or another process was faster.
    await dropEngine(store, engine, now).catch(ignoreConflict)
  }
}

/** How long the row of a process that is gone stays for people to see, and how many of them. */
const REMEMBERED_MS = 600_000
const MOST_REMEMBERED = 20

/** Those that were gone for long, and all but the last of the others. */
function forgettable(dead: readonly EngineRow[], now: number): EngineRow[] {
  const oldest = dead.toSorted((a, b) => a.leaseUntil - b.leaseUntil)
  const surplus = oldest.length - MOST_REMEMBERED
  return oldest.filter(({ leaseUntil }, at) => at < surplus || leaseUntil + REMEMBERED_MS <= now)
}

interface EnginesNow {
  readonly now: number
  readonly engines: readonly EngineRow[]
  /** Those that hold claims and are gone. */
  readonly lost: readonly LostEngine[]
}

/** Reads claimants before engines: whoever claims has a row by then. */
async function lookAtEngines(ledger: Ledger): Promise<EnginesNow> {
  const [now, claimants] = await Promise.all([leaseTime(ledger), ledger.store.claimants()])
  return enginesIn({ now, claimants, engines: await ledger.store.engines() })
}

function enginesIn({ now, claimants, engines }: Pick<Agenda, 'now' | 'claimants' | 'engines'>): EnginesNow {
  const lost = claimants
    .map((engineId) => ({ engineId, engine: engines.find(({ id }) => id === engineId) }))
    .filter(({ engine }) => engine === undefined || isDead(engine, now))
  return { now, engines, lost }
}

async function lostEngines(ledger: Ledger): Promise<readonly LostEngine[]> {
  return (await lookAtEngines(ledger)).lost
}

interface LostEngine {
  readonly engineId: Id
  /** Undefined when its row is gone: others took it for dead, it claimed again when it woke, and died. */
  readonly engine: EngineRow | undefined
}

async function recoverClaims(ledger: Ledger, options: SweepOptions, engine: LostEngine): Promise<void> {
  for (const node of await ledger.store.claimedBy(engine.engineId, BATCH)) {
    await tryStep(ledger, options, recovery(node, engine))
  }
}

function lostClaim({ engineId, engine }: LostEngine): LostClaim {
  if (engine === undefined) return { engineId, reason: 'The process that ran it is gone.' }
  const what = isProvenDead(engine) ? 'is gone' : 'did not renew its lease in time'
  return { engineId, reason: `The process that ran it (pid ${engine.pid}) ${what}.` }
}

async function expireTurns(ledger: Ledger, options: SweepOptions): Promise<void> {
  for (const turn of await ledger.store.overdue(ledger.clock.now(), BATCH)) {
    await tryStep(ledger, options, expiry(turn))
  }
}

async function expireAsks(ledger: Ledger, options: SweepOptions): Promise<void> {
  for (const node of await dueOf(ledger, (limit) => ledger.store.awaiting({ limit }))) {
    await tryStep(ledger, options, unanswered(node))
  }
}

/** Ends waits whose time has come. */
async function endWaits(ledger: Ledger, options: SweepOptions): Promise<void> {
  for (const node of await dueOf(ledger, (limit) => ledger.store.timed({ limit }))) {
    await tryStep(ledger, options, endOfWait(node))
  }
}

/** The nodes whose time has come, of a list by time. Mostly the first one says that there are none, however many wait. */
async function dueOf({ clock }: Ledger, read: (limit: number) => Later<readonly Node[]>): Promise<readonly Node[]> {
  const isDue = ({ wakeAt }: Node) => wakeAt !== null && wakeAt <= clock.now()
  const first = await read(1)
  return first.some(isDue) ? (await read(BATCH)).filter(isDue) : []
}

async function forceStops(ledger: Ledger, options: SweepOptions): Promise<void> {
  for (const node of await ledger.store.unstopped(ledger.clock.now() - options.graceMs, BATCH)) {
    await tryStep(ledger, options, forcedStop(node))
  }
}

/** A damaged tree does not hold up the others; a store that is away holds up all. */
async function tryStep<T>(ledger: Ledger, { report, keep }: SweepOptions, step: Step<T>): Promise<T | undefined> {
  try {
    await keep()
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
