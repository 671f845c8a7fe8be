import { readTree } from '../../graph/audit/tree-rows.ts'
import type { Id } from '../../graph/rows.ts'
import type { Archive, Verified, WholeTree } from '../archive.ts'
import { packTree } from '../pack-tree.ts'
import { packEvents } from '../sqlite/events.ts'
import type { ChainRecord } from '../tree-chain.ts'
import { unpackTree } from '../unpack-tree.ts'
import { verifyTree } from '../verify-tree.ts'
import { memoryScanner } from './scan.ts'
import { putPiece } from './snapshot.ts'
import type { Tables, Tree } from './tables.ts'

/** At once: its rows are in memory. */
interface MemoryArchive extends Pick<Archive, 'tombstones'> {
  read(rootId: Id): WholeTree | undefined
  verify(rootId?: Id): Verified
}

/** Without `restore`: what has to be done beside putting the rows is the store's own. */
export function memoryArchive(tables: () => Tables): MemoryArchive {
  const scanner = memoryScanner(tables)
  const read = (rootId: Id): WholeTree | undefined => {
    const tree = tables().trees.get(rootId)
    if (tree === undefined) return undefined
    return packTree(readTree(scanner, rootId), { body: scanner.body, records: recordsOf(tree) })
  }
  return {
    read,
    verify: (rootId) => {
      const trees = tables()
        .trees.values()
        .filter(({ id, chain }) => chain !== null && (rootId ?? id) === id)
      return verifyTrees(
        trees.map(({ id }) => id),
        read,
      )
    },
    tombstones: () => tables().tombstones,
  }
}

/** Puts the rows of a whole tree. Gives the tree. */
export function putWhole(tables: Tables, whole: WholeTree): Tree | undefined {
  putPiece(tables, { rows: unpackTree(whole) })
  return tables.trees.get(whole.rootId)
}

function verifyTrees(rootIds: readonly Id[], read: (rootId: Id) => WholeTree | undefined): Verified {
  const verified = { findings: [] as Verified['findings'][number][], rows: 0, commits: 0 }
  for (const rootId of rootIds) {
    const whole = read(rootId)
    if (whole === undefined) continue
    verified.rows += whole.rows.length
    verified.commits += whole.records.length
    verified.findings.push(...verifyTree(whole))
  }
  return verified
}

/** Null where no record is kept: then there is nothing to hold the rows against. */
function recordsOf({ chain, events }: Tree): readonly ChainRecord[] | null {
  if (chain === null) return null
  let before = 0
  return chain.map((link) => {
    const told = events.slice(before, link.seq)
    before = link.seq
    return { ...link, events: packEvents(told) }
  })
}
