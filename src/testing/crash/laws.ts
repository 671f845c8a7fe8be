import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseJson, parseOwnJson } from '../../core/base/json.ts'
import type { EngineRow } from '../../core/graph/commit.ts'
import { addUsage, NO_USAGE, type Usage } from '../../core/graph/content.ts'
import type { DurableEventType, EventBody, EventRow } from '../../core/graph/event.ts'
import { askerOf } from '../../core/graph/kinds.ts'
import { readTrees, type TreeRows } from '../../core/graph/reader.ts'
import type { Id, Link, Node, Turn } from '../../core/graph/rows.ts'
import { endedTurns, type SessionDocument } from '../../core/rules/delegation/session-document.ts'
import { brokenLinks } from '../../core/store/codec/tree-text.ts'
import type { ChainRecord } from '../../core/store/commit-chain.ts'
import { isProvenDead } from '../../core/store/process-proof.ts'
import type { LocalStore } from '../../core/store/store.ts'
import { jsonStore } from '../../stores/json/index.ts'
import { isSessionFile, sessionFile } from '../../stores/json/session.ts'
import type { Connection } from '../../stores/sqlite/driver.ts'
import { findTrees, readRecords } from '../../stores/sqlite/tree.ts'
import { verifySqlite } from '../../stores/sqlite/verify.ts'
import { LOG, type WorkerLine } from './failpoints.ts'
import type { CountedEffect } from './outside-counter.ts'
import type { WorkerExit } from './worker-process.ts'

/** The name under which model calls are counted; their key is the path of the calling agent. */
const MODEL = 'model'

/**
 * Checks L5 against the outside counter: recorded effects happened; effects that happened are recorded as done or
 * uncertain; an effectful call happened at most once, the others at most once per claim, with one key. Model calls are
 * checked too if they were counted.
 */
export function wrongEffects(counted: readonly CountedEffect[], trees: readonly TreeRows[]): string[] {
  const nodes = trees.flatMap((tree) => [...tree.nodes.values()].map((node) => ({ node, tree })))
  const calls = counted.filter(({ name }) => name === MODEL)
  const effects = counted.filter(({ name }) => name !== MODEL)
  return [
    ...unlike('effects', effects, boundsOf(nodes.map(({ node }) => [keyOf(node), toolBounds(node)]))),
    ...(calls.length === 0
      ? []
      : unlike('calls', calls, boundsOf(nodes.map(({ node, tree }) => [pathOf(node, tree), modelBounds(node, tree)])))),
  ]
}

/** How often an effect may have been seen outside. */
interface Bounds {
  readonly least: number
  readonly most: number
  readonly what: string
}

/** Tools that write rows and have no outside effect. */
const ROWS_ONLY = /^(?:subagent_|ask_host$|ask_person$)/

/** Bounds the effects of a tool itself; a child is judged by its own calls. */
function toolBounds(task: Node): Bounds | undefined {
  if (task.kind !== 'task' || task.input.call === undefined || task.input.delegates === true) return undefined
  if (task.metadata['copyOf'] !== undefined) return undefined
  if (ROWS_ONLY.test(task.input.call.name)) return undefined
  const what = `the ${task.effect} ${task.input.call.name} ${task.id}, which is ${task.state},`
  const least = task.state === 'finished' && task.output.isError !== true ? 1 : 0
  if (task.effect !== 'effectful') return { what, least, most: 1 + task.recoveries }
  return { what, least, most: task.state === 'finished' || task.state === 'uncertain' ? 1 : 0 }
}

/** Bounds the calls of a model: one per claim of a node, because a recorded answer is not asked for again (A66). */
function modelBounds(node: Node, { nodes }: TreeRows): Bounds | undefined {
  const { kind, state, recoveries, startedAt, retryOf, metadata } = node
  // Attempts before a retry are counted where they happened.
  const attempt = node.attempt - (retryOf === null ? 0 : (nodes.get(retryOf)?.attempt ?? 0))
  const wasClaimed = metadata['copyOf'] === undefined && (startedAt !== null || recoveries > 0 || attempt > 1)
  if (kind !== 'agent_message' || !wasClaimed) return undefined
  return { what: 'an agent', least: state === 'finished' ? attempt : 0, most: attempt + recoveries }
}

function keyOf({ id, idempotencyKey }: Node): string {
  return idempotencyKey ?? id
}

function pathOf({ conversationId }: Node, { conversations }: TreeRows): string {
  return conversations.get(conversationId)?.path.join('/') ?? ''
}

/** Adds up the bounds of all entries with the same key. */
function boundsOf(entries: readonly (readonly [key: string, bounds: Bounds | undefined])[]): Map<string, Bounds> {
  const sums = new Map<string, Bounds>()
  for (const [key, bounds] of entries) {
    if (bounds === undefined) continue
    const { least, most } = sums.get(key) ?? { least: 0, most: 0 }
    sums.set(key, { what: bounds.what, least: least + bounds.least, most: most + bounds.most })
  }
  return sums
}

function unlike(of: string, counted: readonly CountedEffect[], expected: ReadonlyMap<string, Bounds>): string[] {
  const seen = new Map<string, number>()
  for (const { key } of counted) seen.set(key, (seen.get(key) ?? 0) + 1)
  return [...new Set([...seen.keys(), ...expected.keys()])].flatMap((key) => {
    const count = seen.get(key) ?? 0
    const { least, most, what } = expected.get(key) ?? { least: 0, most: 0, what: 'nothing that is stored' }
    if (count >= least && count <= most) return []
    return [`L5 ${key}: ${what} had ${count} ${of} outside and may have had ${least} to ${most}`]
  })
}

/** Checks a tree whose last run has ended: L3, L4 and L6. */
export function unsettled(tree: TreeRows): string[] {
  return [
    ...openRows(tree),
    ...unreportedEnds(tree),
    ...unpaired(tree),
    ...[...tree.nodes.values()].flatMap((node) => unreportedResult(tree, node)),
    ...[...tree.turns.values()].flatMap((turn) => [...wrongAccount(tree, turn), ...unreportedDoubts(tree, turn)]),
  ]
}

/** Checks L3: every run has one outcome, reported once; nothing runs, waits or is left for later. */
function openRows({ turns, nodes, links, blocks, events }: TreeRows): string[] {
  const wrong: string[] = []
  for (const { id, state, outcome } of turns.values()) {
    if (state !== 'ended') wrong.push(`L3 turn ${id} is ${state}`)
    const told = eventsOf(events, 'run-end').filter(({ runId }) => runId === id)
    if (told.length !== 1) wrong.push(`L3 turn ${id} was told to end ${told.length} times`)
    else if (JSON.stringify(told[0]?.body.outcome) !== JSON.stringify(outcome)) {
      wrong.push(`L3 turn ${id} has another outcome than was told`)
    }
  }
  for (const { id, kind, state, endedAt } of nodes.values()) {
    if (endedAt === null) wrong.push(`L3 ${kind} ${id} is ${state}`)
  }
  for (const { id, outcome } of links.values()) if (outcome === null) wrong.push(`L3 link ${id} has no outcome`)
  for (const { nodeId } of blocks) wrong.push(`L3 a block of live events of ${nodeId} was left`)
  return wrong
}

/** Checks A75: the end of every background child was reported, or the rows say that no host was left to notify. */
function unreportedEnds({ links, nodes }: TreeRows): string[] {
  const isUntold = ({ wake, deliveredTo }: Link) => {
    const isTold = deliveredTo === 'undeliverable' || (deliveredTo !== null && nodes.has(deliveredTo))
    return !isTold && (wake === 'auto' || deliveredTo !== null)
  }
  return [...links.values()]
    .filter((link) => link.mode === 'background' && isUntold(link))
    .map(({ id }) => `A75 nobody was told of the end of ${id}`)
}

/** Checks L4: every start has one end. A run that never left the queue has an end without a start. */
function unpaired({ events }: TreeRows): string[] {
  const runs = tally(eventsOf(events, 'run-start').map(({ runId }) => runId))
  const queued = new Set(eventsOf(events, 'run-queued').map(({ runId }) => runId))
  const runEnds = tally(eventsOf(events, 'run-end').map(({ runId }) => runId))
  const starts = tally(eventsOf(events, 'delegation-start').map(({ body }) => body.childRunId))
  const ends = tally(eventsOf(events, 'delegation-end').map(({ body }) => body.childRunId))
  return [
    ...differences('run', runs, runEnds).filter(
      ({ id }) => !(queued.has(id) && !runs.has(id) && runEnds.get(id) === 1),
    ),
    ...differences('delegation', starts, ends),
  ].map(({ text }) => `L4 ${text}`)
}

function differences(what: string, starts: ReadonlyMap<Id, number>, ends: ReadonlyMap<Id, number>) {
  const ids = [...new Set([...starts.keys(), ...ends.keys()])]
  return ids
    .filter((id) => starts.get(id) !== 1 || ends.get(id) !== 1)
    .map((id) => ({
      id,
      text: `${what} ${id} started ${starts.get(id) ?? 0} times and ended ${ends.get(id) ?? 0} times`,
    }))
}

/** Checks L4: each call and each result is reported once. */
function unreportedResult({ events, nodes }: TreeRows, task: Node): string[] {
  if (task.kind !== 'task' || task.input.call === undefined || task.metadata['copyOf'] !== undefined) return []
  const results = eventsOf(events, 'tool-result').filter(({ nodeId }) => nodeId === task.id).length
  const calls = eventsOf(events, 'tool-call').filter(({ nodeId }) => nodeId === task.id).length
  // The call of a retried task was reported with its first try.
  const isFirst = task.retryOf === null
  const isAsked = [...nodes.values()].some(({ output }) => output.calls?.some(({ id }) => id === task.input.call?.id))
  const wrong: string[] = []
  if (results !== 1) wrong.push(`L4 task ${task.id} has ${results} results`)
  if (isAsked && isFirst && calls !== 1) wrong.push(`L4 task ${task.id} was called ${calls} times`)
  return wrong
}

/** Checks L6: the account of a run is the sum of its own calls and its children's accounts. */
function wrongAccount({ nodes, links }: TreeRows, turn: Turn): string[] {
  const own = [...nodes.values()].filter(({ turnId }) => turnId === turn.id)
  const children = [...links.values()].filter(({ hostTurnId }) => hostTurnId === turn.id)
  const usage = [...own.map((node) => node.usage), ...children.map(({ outcome }) => outcome?.usage ?? NO_USAGE)]
  const { account } = turn
  const wrong: string[] = []
  const expect = (what: string, counted: number, found: number) => {
    if (counted !== found) wrong.push(`L6 turn ${turn.id} accounts for ${counted} ${what}; there were ${found}`)
  }
  for (const kind of Object.keys(NO_USAGE) as (keyof Usage)[]) {
    expect(kind, account.usage[kind], usage.reduce(addUsage, NO_USAGE)[kind])
  }
  expect(
    'tool calls',
    account.toolCalls,
    own.reduce((sum, node) => sum + (node.output.calls?.length ?? 0) + (askerOf(node) === undefined ? 0 : 1), 0),
  )
  return wrong
}

/** Checks that each uncertain effect is reported once, and named in the outcome of its run and of every run above. */
function unreportedDoubts({ nodes, links, events }: TreeRows, turn: Turn): string[] {
  const own = [...nodes.values()].filter(({ turnId, state }) => turnId === turn.id && state === 'uncertain')
  const all = [...links.values()].filter(({ hostTurnId }) => hostTurnId === turn.id)
  // A child that ended after its host is not in its host's outcome.
  const late = new Set(turn.outcome?.open ?? [])
  const children = all.filter(({ id }) => !late.has(id))
  const open = own.filter(({ marks }) => !isSettledBy(marks, turn.endedAt))
  const expected = [...open.map(({ id }) => id), ...children.flatMap(({ outcome }) => outcome?.uncertain ?? [])].sort()
  const reported = [...(turn.outcome?.uncertain ?? [])].sort()
  const told = eventsOf(events, 'uncertain').filter(({ runId }) => runId === turn.id)
  const wrong: string[] = []
  if (expected.join() !== reported.join()) {
    wrong.push(`L3 the outcome of turn ${turn.id} names ${reported.length} of ${expected.length} uncertain nodes`)
  }
  const telling = own.filter(({ marks, createdAt }) => !isSettledBy(marks, createdAt))
  if (told.length !== telling.length)
    wrong.push(`L3 turn ${turn.id} told of ${told.length} of ${telling.length} uncertain nodes`)
  return wrong
}

/** Tells whether a person had settled it by then: a turn that is made anew tells nothing of such a node. */
function isSettledBy(marks: Node['marks'], at: number | null): boolean {
  return marks?.settled !== undefined && at !== null && marks.settled.at <= at
}

type EventOfType<T extends DurableEventType> = EventRow & { readonly body: Extract<EventBody, { type: T }> }

function eventsOf<T extends DurableEventType>(events: readonly EventRow[], type: T): EventOfType<T>[] {
  return events.filter((event): event is EventOfType<T> => event.body.type === type)
}

function tally(ids: readonly Id[]): Map<Id, number> {
  const counts = new Map<Id, number>()
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

/** Opens a JSON store, which checks its journal, and passes on its rows and the problems of its folder. */
export async function withJsonRows<T>(
  folder: string,
  use: (trees: readonly TreeRows[], wrong: () => string[]) => Promise<T>,
): Promise<T> {
  const unfinished = brokenDocuments(folder)
  const store = jsonStore(folder)
  try {
    const trees = readTrees(store)
    return await use(trees, () => [...unfinished, ...missingDocuments(folder, store, trees)])
  } finally {
    store.close().catch(() => undefined)
  }
}

/** Checks L8: nobody claims to work on it, and no temporary file is left. */
export function leftInFolder(folder: string): string[] {
  const strays = readdirSync(folder).filter((name) => name !== 'store.journal' && !isSessionFile(name))
  return strays.map((name) => `L8 the file ${name} is left`)
}

/** Checks that each document is complete at every moment, before the store can repair anything. */
function brokenDocuments(folder: string): string[] {
  return readdirSync(folder)
    .filter(isSessionFile)
    .filter((name) => !parseJson(readFileSync(join(folder, name), 'utf8')).ok)
    .map((name) => `the document ${name} is not JSON`)
}

/** Checks, with the store open, that every conversation with an ended turn has a document of all such turns. */
function missingDocuments(folder: string, store: LocalStore, trees: readonly TreeRows[]): string[] {
  return trees.flatMap(({ conversations }) =>
    [...conversations.keys()].flatMap((id) => {
      const ended = endedTurns(store, id).length
      return ended === 0 || turnsIn(sessionFile(folder, id)) === ended ? [] : [`the document of ${id} is behind`]
    }),
  )
}

function turnsIn(file: string): number {
  const read = parseJson(readFileSync(file, 'utf8'))
  return read.ok ? (read.value as unknown as SessionDocument).turns.length : -1
}

/** Checks L1: every acknowledged event is read back in its place, byte for byte. */
export function lostEvents(lines: readonly WorkerLine[], trees: readonly TreeRows[]): string[] {
  const stored = new Map(trees.map(({ rootId, events }) => [rootId, events]))
  const wrong: string[] = []
  for (const line of lines) {
    if (line.type !== 'commit' || line.rootId === null) continue
    for (const event of line.events) {
      const found = stored.get(line.rootId)?.[event.seq - 1]
      if (found === undefined) wrong.push(`L1 ${line.rootId}: the acknowledged event ${event.seq} is lost`)
      else if (JSON.stringify(found) !== JSON.stringify(event)) {
        wrong.push(`L1 ${line.rootId}: event ${event.seq} is not what was acknowledged: ${JSON.stringify(found)}`)
      }
    }
  }
  return wrong
}

/** Checks L2: sequence numbers are 1, 2, 3, ... without a gap, and none was acknowledged for two events. */
export function unevenSequences(lines: readonly WorkerLine[], trees: readonly TreeRows[]): string[] {
  const wrong: string[] = []
  for (const { rootId, events } of trees) {
    const at = events.findIndex(({ seq }, index) => seq !== index + 1)
    if (at >= 0) wrong.push(`L2 ${rootId}: event ${at + 1} of the tree has the number ${events[at]?.seq}`)
  }
  const seen = new Set<string>()
  for (const line of lines) {
    if (line.type !== 'commit') continue
    for (const { seq } of line.events) {
      const place = `${line.rootId} ${seq}`
      if (seen.has(place)) wrong.push(`L2 ${place} was acknowledged twice`)
      seen.add(place)
    }
  }
  return wrong
}

/** Checks L7: the rows are exactly the committed ones, and one changed byte in a commit would be detected. */
export function brokenChains(db: Connection): string[] {
  const wrong = verifySqlite(db).findings.map(({ message }) => `L7 ${message}`)
  const [rootId, place] = anyOf([...findTrees(db).byRoot]) ?? []
  if (wrong.length > 0 || rootId === undefined || place?.tree === undefined) return wrong
  return unseenForgery(rootId, readRecords(db, place.tree))
}

export function anyOf<T>(items: readonly T[]): T | undefined {
  return items[Math.floor(Math.random() * items.length)]
}

/** Changes one byte of a commit of a tree, and lists the parts where nothing would notice it. */
export function unseenForgery(rootId: Id, records: readonly ChainRecord[]): string[] {
  const at = Math.floor(Math.random() * records.length)
  const victim = records[at]
  if (victim === undefined) return []
  const fields = ['events', 'marks', 'hash', 'kind'] as const
  const unseen = fields.filter((field) => {
    const forged = { ...victim, [field]: withFlippedByte(victim[field]) }
    return brokenLinks(rootId, records.with(at, forged)).length === 0
  })
  return unseen.map((field) => `L7 ${rootId}: a changed byte in the ${field} of commit ${at + 1} is not found`)
}

/** Flips a byte; an empty text gets one. */
function withFlippedByte(text: string): string {
  const bytes = Buffer.from(text === '' ? ' ' : text, 'utf8')
  const at = Math.floor(Math.random() * bytes.length)
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
  return bytes.toString('latin1')
}

/**
 * Checks L8: no process of the case is left, and no file beside the database, its write-ahead log and the workers' log.
 */
export function leftBehind({ folder, database }: { readonly folder: string; readonly database: string }): string[] {
  const known = ['', '-wal', '-shm'].map((ending) => basename(database) + ending)
  const strays = readdirSync(folder).filter((file) => !known.includes(file) && file !== LOG)
  return [
    ...processesNaming(folder).map((pid) => `L8 the process ${pid} is left`),
    ...strays.map((file) => `L8 the file ${file} is left`),
  ]
}

/** Checks L8: the database can be written at once, and no process claims to work on it but those that died, whose rows stay a while. */
export function leftLocks(db: Connection): string[] {
  db.exec('PRAGMA busy_timeout = 0')
  db.exec('BEGIN IMMEDIATE')
  db.exec('ROLLBACK')
  const rows = db.all('SELECT data FROM engines').map(([data]) => parseOwnJson(String(data)) as EngineRow)
  const left = rows.filter((engine) => !isProvenDead(engine))
  const claimed = db.all('SELECT id FROM nodes WHERE engine_id IS NOT NULL')
  return [
    ...left.map(({ id }) => `L8 the lease of engine ${id} is left`),
    ...claimed.map(([id]) => `L3 node ${id} is claimed by nobody`),
  ]
}

/** Checks L9: a worker was killed or ended with code 0, and printed no error. */
export function brokenExits(exits: readonly WorkerExit[]): string[] {
  return exits.flatMap(({ pid, code, signal, errors }) => [
    ...(signal === 'SIGKILL' || (signal === null && code === 0)
      ? []
      : [`L9 worker ${pid} ended with ${signal ?? code}`]),
    ...(errors === '' ? [] : [`L9 worker ${pid} printed: ${errors.trim()}`]),
  ])
}

/** Finds processes by the folder in their command line, which every worker gets as an argument. */
function processesNaming(folder: string): string[] {
  if (!existsSync('/proc/self/cmdline')) return []
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandOf(pid).includes(folder))
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
