import { ConflictError, DeniedError, InputError, isLegateError, StoreError } from '../base/error.ts'
import { sizeOf } from '../base/json.ts'
import { checkHandle } from '../base/options.ts'
import { type Commit, emptyCommit } from '../graph/commit.ts'
import { readTree } from '../graph/reader.ts'
import type { Id } from '../graph/rows.ts'
import type { Archive, Removal, Tombstone, WholeTree } from '../store/archive.ts'
import { TreeParser, TreeWriter, toLines, unpackTree, verifyTree } from '../store/codec/tree-text.ts'
import type { Ledger } from '../store/ledger.ts'
import { look, lookWith } from '../store/look.ts'
import { memoryStore } from '../store/memory/index.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import { auditTree } from './audit.ts'
import { authorityIn } from './tree-authority.ts'
import { rootOf, wrongForm } from './tree-form.ts'

/** Writes a whole tree as lines of JSON, part by part where the store gives parts. */
export async function* exportTree(store: Store, rootId: Id): AsyncGenerator<string> {
  const conversation = await lookWith(store, rootId, (tree) => tree.conversation(rootId))
  if (conversation === undefined) throw await notFound(store, 'conversation', rootId)
  if (conversation.rootId !== rootId) {
    const message = `${rootId} is a child of the tree ${conversation.rootId}: trees are exported whole. Name its root.`
    throw new InputError('invalid_input', message, { details: { rootId: conversation.rootId } })
  }
  const archive = archiveOf(store)
  const whole = archive.parts === undefined ? await archive.read(rootId) : undefined
  if (whole !== undefined) return yield* toLines(whole)
  let writer: TreeWriter | undefined
  for await (const part of archive.parts?.(rootId) ?? []) {
    const isFirst = writer === undefined
    writer ??= new TreeWriter(rootId, part.hash)
    if (isFirst) yield writer.head()
    yield* writer.lines(part)
  }
  if (writer === undefined) throw await notFound(store, 'tree', rootId)
  yield writer.end()
}

/** The archive of a store that has one. */
export function archiveOf({ archive, name }: Store): Archive {
  if (archive !== undefined) return archive
  throw new StoreError(
    'store',
    `The store "${name}" has no archive: trees can be neither exported nor imported nor deleted.`,
  )
}

/** How a tree is imported. */
export interface Importing {
  /**
   * True: open runs go on here at once, as their rows say. Left out: they are stopped before the tree is in the store, so that
   * nothing of it runs until somebody says so.
   */
  readonly goOn?: boolean
  /** Throws where whoever imports may not have such a tree. */
  readonly check?: (rows: Commit) => void
  /**
   * Set: the tree is history to look at, and nothing in it may decide about later runs, but layers of these ids and of its owner.
   */
  readonly historyFor?: readonly string[]
  /** The ids that have a limit of the bytes of a day: what is imported counts for them. */
  readonly countedFor?: readonly string[]
}

/**
 * Reads the lines of `exportTree` and keeps their hashes. Imports nothing unless the tree has the form of stored trees, is complete,
 * fits its hashes and passes an audit; a tree that is already there stays as it is.
 */
export async function importTree(
  ledger: Ledger,
  lines: Iterable<string> | AsyncIterable<string>,
  { goOn = false, check, historyFor, countedFor = [] }: Importing = {},
): Promise<Id> {
  const { tree: given, bytes } = await readLines(lines)
  const { store } = ledger
  const archive = archiveOf(store)
  const { rootId } = given
  const rows = rowsOf(given)
  check?.(rows)
  if (historyFor !== undefined) requireHistory(rows, historyFor)
  const isKnown = (await look(store, rootId, (tree) => tree.conversation(rootId))) !== undefined
  const known = isKnown ? await archive.read(rootId) : undefined
  if (isThere(known, headOf(given))) return rootId
  const bare = await checkRows(ledger, given)
  const tree = goOn ? given : await stopped(ledger, given, rows)
  const hashes = tree === given ? [bare] : [headOf(tree), await checkRows(ledger, tree)]
  if (hashes.some((hash) => isThere(known, hash))) return rootId
  await archive.restore(tree)
  if (countedFor.length > 0) await count(ledger, rootId, bytes, countedFor)
  return rootId
}

function requireHistory(rows: Commit, ids: readonly string[]): void {
  const decides = authorityIn(rows, [...ids, rootOf(rows)?.owner ?? null])
  if (decides === undefined) return
  const message = `The export is not taken: ${decides}, and later runs would go by it. Who looks after the whole store may import it.`
  throw new DeniedError('denied', message)
}

/** Is the tree that ends in this hash there? Commits that only counted something came after it, if any. */
function isThere(known: WholeTree | undefined, hash: string | undefined): boolean {
  const last = known?.records.findLast(({ marks, events }) => marks !== '' || events !== '[]')
  return hash !== undefined && (last?.hash === hash || headOf(known) === hash)
}

/** A commit that changes no row: sums are counted with commits alone. */
async function count(
  { store, clock }: Ledger,
  rootId: Id,
  bytes: number,
  countedFor: readonly string[],
): Promise<void> {
  await look(store, rootId, (tree) => tree.conversation(rootId))
  const { storedBytesOf } = await import('../rules/settle/charges.ts')
  const now = clock.now()
  await store.commit({ ...emptyCommit('note', now, rootId), spent: storedBytesOf(countedFor, bytes, now) })
}

/** Other work gets its turn between lines. */
async function readLines(lines: Iterable<string> | AsyncIterable<string>): Promise<GivenTree> {
  const reader = new TreeParser()
  const given = typeof lines === 'string' ? lines.split('\n') : lines
  const isAtOnce = typeof Reflect.get(Object(given), Symbol.iterator) === 'function'
  if (!isAtOnce)
    checkHandle(given, Symbol.asyncIterator, 'import(lines) takes what export() gave, as lines or as one text')
  let [bytes, since] = [0, 0]
  for await (const line of given) {
    reader.take(line)
    bytes += sizeOf(line)
    since += line.length + LINE
    if (since < MUCH) continue
    since = 0
    await new Promise(setImmediate)
  }
  return { tree: reader.tree(), bytes }
}

interface GivenTree {
  readonly tree: WholeTree
  readonly bytes: number
}

/** So many characters are read until other work gets its turn; a short line takes as long as some more. */
const MUCH = 1_000_000
const LINE = 500

/** The tree with its open runs stopped; the very same tree where none is open. */
async function stopped({ kinds }: Ledger, tree: WholeTree, { turns }: Commit): Promise<WholeTree> {
  if (turns.every(({ state }) => state === 'ended')) return tree
  const { stopTree } = await import('./stop-tree.ts')
  return (await stopTree(kinds, tree)) ?? refuse('its open runs cannot be stopped.')
}

/** The rows of a tree from outside. */
function rowsOf(tree: WholeTree): Commit {
  const wrong = wrongForm(tree)
  if (wrong !== undefined) refuse(`${wrong}.`)
  const rows = unpackTree(tree)
  if (rootOf(rows) === undefined) refuse('its root conversation is not in it.')
  return rows
}

function headOf(tree: WholeTree | undefined): string | undefined {
  return tree?.records.at(-1)?.hash
}

/** Checks a whole tree that comes from another store: its form, its hashes and its rows. Throws an InputError where one is wrong. */
export async function checkTree(ledger: Ledger, tree: WholeTree): Promise<void> {
  rowsOf(tree)
  await checkRows(ledger, tree)
}

/**
 * Hashes prove that nothing changed on the way, not that the author was honest: the rows are audited too. Gives the hash that
 * the tree has in a store which keeps no record of commits.
 */
async function checkRows({ kinds }: Ledger, tree: WholeTree): Promise<string | undefined> {
  const [altered] = verifyTree(tree)
  if (altered !== undefined) refuse(altered.message)
  const scratch = memoryStore()
  try {
    await scratch.archive?.restore(tree)
    const around = { kinds, isAlive: () => true }
    const found = auditTree(readTree(scratch, tree.rootId), around).find(({ severity }) => severity === 'error')
    if (found !== undefined) refuse(found.message)
    return headOf(await scratch.archive?.read(tree.rootId))
  } finally {
    await scratch.close()
  }
}

function refuse(why: string): never {
  throw new InputError('invalid_input', `The export is not taken: ${why}`)
}

/**
 * Deletes the tree of a root conversation, or of one of its runs. For a deleted tree it gives the tombstone. A tree that was
 * changed from outside is deleted by the id of its root, whatever is open in it.
 */
export async function forget(store: Store, id: Id, removal: Removal): Promise<Tombstone> {
  checkText(id, 'the id of a run or conversation')
  checkText(removal.reason, 'a reason in words')
  const archive = archiveOf(store)
  const stone = await archive.remove(await rootToDelete(store, id), { ...removal, evenTampered: true })
  const known = stone ?? (await archive.tombstone(id))
  if (known === undefined) throw await notFound(store, 'run or conversation', id)
  return known
}

async function rootToDelete(store: Store, id: Id): Promise<Id> {
  try {
    const row = await lookWith(
      store,
      id,
      (tree) => tree.conversation(id) ?? tree.conversation(tree.turn(id)?.conversationId ?? ''),
    )
    if (row !== undefined && row.id !== row.rootId) throw partOf(row.rootId, id)
    return row?.id ?? id
  } catch (error) {
    if (!isLegateError(error, 'tampered')) throw error
    const { rootId } = error.details
    if (typeof rootId === 'string' && rootId !== id) throw partOf(rootId, id)
    return id
  }
}

function partOf(rootId: Id, id: Id): InputError {
  const message = `${id} is a part of the tree ${rootId}: trees are deleted whole. Name its root.`
  return new InputError('invalid_input', message, { details: { rootId } })
}

/** The result of `forgetOwner`. */
export interface ForgottenOwner {
  readonly owner: string
  /** How many trees were deleted. */
  readonly trees: number
  /** How many open runs were cancelled for it. */
  readonly cancelled: number
  /** How many files of its own were deleted on this machine: those that agents wrote, and memories. */
  readonly files: number
}

/** How open runs end, and what else there is of a tree. */
export interface OwnerParts {
  readonly removal: Removal
  /** True: the usage of today stays, for who could begin a new day with it. */
  readonly keepsDay: boolean
  cancel(runId: Id): Promise<void>
  /** Resolves when nothing of the tree is open. */
  idle(rootId: Id): Promise<void>
  dropCopies(rootId: Id): Promise<void>
  /** The data that owners keep beside the store. */
  stores(): readonly OwnerFiles[]
}

interface OwnerFiles {
  /** Deletes what is kept of an owner. Gives how many files there were. */
  forget(owner: string): Promise<number>
}

/**
 * Deletes all trees of an owner, open ones too, until there is none: a run that begins meanwhile goes as well. Deletes also what
 * the store keeps beside trees (tokens, webhooks, usage, changes), and then what is kept beside the store. A damaged tree does not hold up the others; an error reports it
 * at the end.
 */
export async function forgetOwner(store: Store, owner: string, parts: OwnerParts): Promise<ForgottenOwner> {
  checkText(owner, 'the name of an owner')
  checkText(parts.removal.reason, 'a reason in words')
  const archive = archiveOf(store)
  const tally: OwnerTally = { gone: [], failures: new Map(), cancelled: 0 }
  const keptDay = parts.keepsDay ? new Date(parts.removal.at).toISOString().slice(0, 10) : undefined
  // First his tokens: nobody starts more in his name.
  await archive.forgetOwner(owner, keptDay)
  for (let passes = 0; ; passes++) {
    const roots = (await store.roots({ owner, limit: MANY })).filter(({ id }) => !tally.failures.has(id))
    if (roots.length === 0) break
    if (passes === MOST_PASSES) throw stillStarting(owner, roots.length)
    await forgetTrees(
      store,
      parts,
      tally,
      roots.map(({ id }) => id),
    )
  }
  const { gone, failures, cancelled } = tally
  await archive.forgetOwner(owner, keptDay)
  if (gone.length > 0) await archive.compact?.()
  // Last, when no run of the owner writes any more.
  const kept = await Promise.allSettled(parts.stores().map((one) => one.forget(owner)))
  if (failures.size > 0) throw damaged([...failures.values()], gone)
  const failed = kept.find((one) => one.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  const files = kept.reduce((sum, one) => sum + (one.status === 'fulfilled' ? one.value : 0), 0)
  return { owner, trees: gone.length, cancelled, files }
}

interface OwnerTally {
  readonly gone: Tombstone[]
  readonly failures: Map<Id, StoreError>
  cancelled: number
}

/** First all are asked to stop, so that they stop at the same time. */
async function forgetTrees(store: Store, parts: OwnerParts, tally: OwnerTally, rootIds: readonly Id[]): Promise<void> {
  for (const rootId of rootIds) tally.cancelled += await stopTree(store, rootId, parts)
  for (const rootId of rootIds) {
    const stone = await removeStopped(store, rootId, parts)
    if (stone instanceof Error) tally.failures.set(rootId, stone)
    else if (stone !== undefined) tally.gone.push(stone)
  }
}

const MOST_PASSES = 100
const MANY = Number.MAX_SAFE_INTEGER

function stillStarting(owner: string, left: number): ConflictError {
  const message = `Runs of ${owner} begin again and again: ${left} trees are left. Stop who starts them, then call forgetOwner() again.`
  return new ConflictError('conflict', message, { details: { owner, left } })
}

/** How many runs it asked to stop. A tree that was changed from outside cannot be asked: it goes as it is. */
async function stopTree(store: Store, rootId: Id, { cancel }: OwnerParts): Promise<number> {
  const open = await store.openTurns(MANY, rootId)
  let asked = 0
  for (const { id, cancel: isAsked } of open) {
    if (isAsked !== null) continue
    try {
      await cancel(id)
      asked++
    } catch (error) {
      if (!isLegateError(error, 'tampered') && !isLegateError(error, 'not_found')) throw error
    }
  }
  return asked
}

/** Undefined where another process has deleted it, or where a new run of it has begun; the error when it cannot be deleted. */
async function removeStopped(store: Store, rootId: Id, parts: OwnerParts): Promise<Tombstone | StoreError | undefined> {
  try {
    await parts.idle(rootId)
    await parts.dropCopies(rootId)
  } catch (error) {
    if (!isLegateError(error, 'tampered')) throw error
  }
  const removal = { ...parts.removal, evenTampered: true }
  return attemptRemoval(async () => archiveOf(store).remove(rootId, removal))
}

/** Undefined while the tree is open; the error when it cannot be deleted. Throws when the store is away. */
export async function attemptRemoval<T>(remove: () => T | Promise<T>): Promise<T | StoreError | undefined> {
  try {
    return await remove()
  } catch (error) {
    if (ConflictError.isInstance(error)) return undefined
    if (StoreError.isInstance(error) && error.code === 'store') return error
    throw error
  }
}

export function damaged(failures: readonly StoreError[], stones: readonly Tombstone[]): StoreError {
  const [first] = failures
  const others = `Trees that stay because of such damage: ${failures.length}. All others that were to go did: ${stones.length}.`
  return new StoreError('store', `${first?.message} ${others}`, { cause: first, details: { deleted: stones } })
}

function checkText(given: unknown, what: string): void {
  if (typeof given === 'string' && given !== '') return
  throw new InputError('invalid_input', `forget() needs ${what}: a text that is not empty.`)
}
