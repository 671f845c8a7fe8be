import { readTree } from '../../graph/reader.ts'
import type { Id } from '../../graph/rows.ts'
import type { Archive, Removal, Tombstone, VerifyReport, WholeTree } from '../archive.ts'
import { packEvents } from '../codec/event-text.ts'
import { packTree, unpackTree, verifyTree } from '../codec/tree-text.ts'
import type { ChainRecord } from '../commit-chain.ts'
import { liftedBy, tombstoneFor, tombstoneOf } from '../not-found.ts'
import { openTree } from '../store.ts'
import { memoryReader, type TableSource } from './scan.ts'
import { putPiece } from './snapshot.ts'
import { forgetTree, type StoredTree, type Tables } from './tables.ts'

/** An archive that answers at once: its rows are in memory. */
interface MemoryArchive extends Pick<Archive, 'tombstones' | 'tombstone'> {
  head(rootId: Id): string | undefined
  read(rootId: Id): WholeTree | undefined
  verify(rootId?: Id): VerifyReport
}

/** Lacks `restore` and `remove`: each store does more there than put rows. */
export function memoryArchive(from: TableSource): MemoryArchive {
  const scanner = memoryReader(from)
  const read = (rootId: Id): WholeTree | undefined => {
    const tree = from.tables.trees.get(rootId)
    if (tree === undefined) return undefined
    return packTree(readTree(scanner, rootId), { body: scanner.body, records: recordsOf(tree) })
  }
  return {
    read,
    head: (rootId) => from.tables.trees.get(rootId)?.chain?.at(-1)?.hash,
    verify: (rootId) => {
      const trees = from.tables.trees.values().filter(({ id, chain }) => chain !== null && (rootId ?? id) === id)
      return verifyTrees(
        trees.map(({ id }) => id),
        read,
      )
    },
    tombstones: () => [...from.tables.tombstones],
    tombstone: (id) => tombstoneFor(from.tables.tombstones, (one) => one === id),
  }
}

/** Puts the rows of a whole tree, and gives the tree. */
export function putTree(tables: Tables, whole: WholeTree): StoredTree | undefined {
  putPiece(tables, { rows: unpackTree(whole) })
  return tables.trees.get(whole.rootId)
}

/** Imports a tree where no records are kept: a tree that was deleted here comes back unchanged, or not at all. */
export function restoreUnrecorded(tables: Tables, whole: WholeTree): StoredTree | undefined {
  const tree = putTree(tables, whole)
  if (tree === undefined || tables.tombstones.length === 0) return tree
  try {
    removeTombstone(tables, liftedBy(tables.tombstones, whole, headOf(tables, tree)))
  } catch (error) {
    forgetTree(tables, tree)
    tables.writes++
    throw error
  }
  return tree
}

/** Removes the tombstone of a tree that is there again. */
export function removeTombstone({ tombstones }: Tables, stone: Tombstone | undefined): void {
  if (stone !== undefined) tombstones.splice(tombstones.indexOf(stone), 1)
}

/** The tombstone that the tree would leave. Undefined where there is no tree to delete; throws while it is open. */
export function tombstoneIn(tables: Tables, rootId: Id, removal: Removal): Tombstone | undefined {
  const tree = tables.trees.get(rootId)
  if (tree === undefined || (removal.seq ?? tree.seq) !== tree.seq) return undefined
  const turns = tree.conversations.flatMap((conversation) => conversation.turns.map(({ row }) => row))
  const open = turns.find(({ state }) => state !== 'ended')
  const mayGo = open === undefined || (removal.evenTampered === true && isAltered(tables, rootId))
  if (!mayGo) throw openTree(rootId, open.id)
  const conversations = tree.conversations.map(({ row }) => row)
  return tombstoneOf({ rootId, hash: headOf(tables, tree), seq: tree.seq, conversations, turns }, removal)
}

function isAltered(tables: Tables, rootId: Id): boolean {
  return memoryArchive({ tables }).verify(rootId).findings.length > 0
}

/** Replaces a tree by its tombstone. */
export function bury(tables: Tables, stone: Tombstone): void {
  const tree = tables.trees.get(stone.rootId)
  if (tree !== undefined) forgetTree(tables, tree)
  tables.tombstones.push(stone)
  // Plans that were made on its rows must be checked again.
  tables.writes++
}

/** The last hash of its record; where none is kept, the one that its export would have. */
function headOf(tables: Tables, tree: StoredTree): string {
  const last = tree.chain?.at(-1)
  if (last !== undefined) return last.hash
  const scanner = memoryReader({ tables })
  return packTree(readTree(scanner, tree.id), { body: scanner.body, records: null }).records.at(-1)?.hash ?? ''
}

function verifyTrees(rootIds: readonly Id[], read: (rootId: Id) => WholeTree | undefined): VerifyReport {
  const verified = { findings: [] as VerifyReport['findings'][number][], rows: 0, commits: 0 }
  for (const rootId of rootIds) {
    const whole = read(rootId)
    if (whole === undefined) continue
    verified.rows += whole.rows.length
    verified.commits += whole.records.length
    verified.findings.push(...verifyTree(whole))
  }
  return verified
}

/** Null where no record is kept to compare the rows with. */
function recordsOf({ chain, events }: StoredTree): readonly ChainRecord[] | null {
  if (chain === null) return null
  let before = 0
  return chain.map((link) => {
    const told = events.slice(before, link.seq)
    before = link.seq
    return { ...link, events: packEvents(told) }
  })
}
