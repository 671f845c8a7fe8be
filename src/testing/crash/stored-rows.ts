import { statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { eachTree, loadTree } from '../../core/audit/load-tree.ts'
import { isLegateError } from '../../core/base/error.ts'
import type { Later } from '../../core/base/maybe.ts'
import { readTrees, type TreeRows } from '../../core/graph/reader.ts'
import type { Archive } from '../../core/store/archive.ts'
import { isProvenDead } from '../../core/store/process-proof.ts'
import type { Store } from '../../core/store/store.ts'
import { Database } from '../../stores/postgres/connection/database.ts'
import { isPostgresUrl, postgresStore } from '../../stores/postgres/index.ts'
import { type Connection, connectTo } from '../../stores/sqlite/driver.ts'
import { sqliteStore } from '../../stores/sqlite/index.ts'
import { anyOf, brokenChains, leftInFolder, leftLocks, unseenForgery, withJsonRows } from './laws.ts'

type Use<T> = (found: {
  readonly trees: readonly TreeRows[]
  /** Lists problems of the store itself. */
  readonly wrongStore: () => Later<string[]>
  /** Lists locks and claims of workers that are gone. */
  readonly leftOpen: () => Later<string[]>
}) => Promise<T>

/** Opens the rows at a place, and closes them after use. */
export function withRows<T>(database: string, use: Use<T>): Promise<T> {
  if (isPostgresUrl(database)) return withPostgresRows(database, use)
  if (!statSync(database).isDirectory()) return withSqliteRows(database, use)
  const left = leftInFolder(database)
  return withJsonRows(database, (trees, wrongFiles) => use({ trees, wrongStore: wrongFiles, leftOpen: () => left }))
}

async function withSqliteRows<T>(database: string, use: Use<T>): Promise<T> {
  const store = sqliteStore(database)
  const db = connectTo(database)
  try {
    const trees = readTrees(store)
    const wrongStore = () => [...damage(db), ...brokenChains(db), ...unreached(trees, db)]
    return await use({ trees, wrongStore, leftOpen: () => leftLocks(db) })
  } finally {
    db.close()
    store.close().catch(() => undefined)
  }
}

function damage(db: Connection): string[] {
  const [[said] = ['']] = db.all('PRAGMA integrity_check')
  const foreign = db.all('PRAGMA foreign_key_check')
  return [
    ...(said === 'ok' ? [] : [`the database is damaged: ${said}`]),
    ...foreign.map(([table]) => `a row of ${table} refers to nothing`),
  ]
}

const TABLES = ['conversations', 'turns', 'nodes', 'links'] as const

/** Lists rows that no walk from a root reaches. */
function unreached(trees: readonly TreeRows[], db: Connection): string[] {
  return TABLES.flatMap((table) => {
    const found = trees.reduce((sum, tree) => sum + tree[table].size, 0)
    const stored = Number(db.first(COUNTS[table])?.[0])
    return found === stored ? [] : [`${stored - found} of ${stored} ${table} belong to nothing`]
  })
}

const COUNTS = {
  conversations: 'SELECT count(*) FROM conversations',
  turns: 'SELECT count(*) FROM turns',
  nodes: 'SELECT count(*) FROM nodes',
  links: 'SELECT count(*) FROM links',
}

async function withPostgresRows<T>(database: string, use: Use<T>): Promise<T> {
  const store = postgresStore({ url: database, readOnly: true })
  try {
    const trees = await treesIn(store)
    const leftOpen = () => (trees.length === 0 ? [] : leftClaims(store))
    return await use({ trees, wrongStore: () => wrongArchive(store, trees), leftOpen })
  } finally {
    await store.close()
  }
}

/** All trees; none where every worker was killed before the schema was made. */
async function treesIn(store: Store): Promise<TreeRows[]> {
  const trees: TreeRows[] = []
  try {
    for await (const tree of eachTree(store)) trees.push(tree)
  } catch (error) {
    if (!isMissingSchema(error)) throw error
  }
  return trees
}

function isMissingSchema(error: unknown): boolean {
  return isLegateError(error, 'store') && error.details['schema'] !== undefined
}

/** Checks L7 with the archive of a store: the record of each tree, the rows that it names, and one changed byte. */
async function wrongArchive(store: Store, trees: readonly TreeRows[]): Promise<string[]> {
  const { archive } = store
  if (archive === undefined || trees.length === 0) return []
  const { findings } = await archive.verify()
  const wrong = findings.map(({ message }) => `L7 ${message}`)
  for (const tree of trees) wrong.push(...(await unreachedRows(store, archive, tree)))
  const { rootId } = anyOf(trees) ?? { rootId: '' }
  return [...wrong, ...unseenForgery(rootId, (await archive.read(rootId))?.records ?? [])]
}

const LOOKS = 5
const PAUSE_MS = 200

/** Compares rows. A worker that was killed may have sent a commit that the server stores meanwhile: then the next look agrees. */
async function unreachedRows(store: Store, archive: Archive, first: TreeRows): Promise<string[]> {
  const { rootId } = first
  for (let look = 1, tree = first; ; look++, tree = await loadTree(store, rootId)) {
    const stored = (await archive.read(rootId))?.rows.length ?? 0
    const found = TABLES.reduce((sum, table) => sum + tree[table].size, 0)
    if (stored === found) return []
    if (look < LOOKS) await sleep(PAUSE_MS)
    else if (stored < found) return [`${found - stored} of ${found} rows of ${rootId} are gone`]
    else return [`${stored - found} of ${stored} rows of ${rootId} belong to nothing`]
  }
}

async function leftClaims(store: Store): Promise<string[]> {
  // Rows of processes that died stay for a while, for people to see.
  const left = (await store.engines()).filter((engine) => !isProvenDead(engine))
  const claimants = await store.claimants()
  return [
    ...left.map(({ id }) => `L8 the lease of engine ${id} is left`),
    ...claimants.map((id) => `L3 a node is claimed by ${id}, which is gone`),
  ]
}

/** Removes the rows of a case that lie outside of its folder. */
export async function dropRows(place: string): Promise<void> {
  if (!isPostgresUrl(place)) return
  const schema = new URL(place).searchParams.get('schema') ?? ''
  const options = { url: place, pool: undefined, schema, readOnly: true, busyMs: 5_000, connections: 1 }
  const database = new Database(options)
  try {
    await database.query('DROP SCHEMA @ CASCADE')
  } catch (error) {
    if (!isMissingSchema(error)) throw error
  } finally {
    await database.close()
  }
}
