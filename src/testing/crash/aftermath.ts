import { statSync } from 'node:fs'
import { auditTree } from '../../audit/audit.ts'
import { BUILT_IN_KINDS } from '../../graph/kinds.ts'
import { readTrees, type TreeRows } from '../../graph/reader.ts'
import { type Connection, connect } from '../../store/sqlite/driver.ts'
import { sqliteStore } from '../../store/sqlite/index.ts'
import type { WorkerLine } from './failpoints.ts'
import {
  brokenChains,
  brokenExits,
  leftBehind,
  leftInFolder,
  leftLocks,
  lostEvents,
  unevenSequences,
  unsettled,
  withJsonRows,
  wrongEffects,
} from './laws.ts'
import type { CountedEffect } from './outside-counter.ts'
import type { WorkerExit } from './worker-process.ts'

/** The evidence a crash test leaves behind. */
export interface Evidence {
  /** The file of a SQLite store, or the folder of a JSON store. */
  readonly database: string
  /** The commits that workers acknowledged, and the points they passed. */
  readonly lines: readonly WorkerLine[]
  readonly exits: readonly WorkerExit[]
  /** The effects the outside counter saw; null if none was used. */
  readonly effects: readonly CountedEffect[] | null
}

/** Figures of a case without problems. */
export interface Aftermath {
  readonly kills: number
  readonly workers: number
  readonly events: number
  /** Nodes that may or may not have had their effect; the outcome of their run names each. */
  readonly uncertain: number
  readonly lines: readonly WorkerLine[]
  readonly exits: readonly WorkerExit[]
  readonly trees: readonly TreeRows[]
}

/**
 * Checks, after all runs have ended and all workers are gone, every promise about crashes (L1 to L9). Throws if one is
 * broken.
 */
export function aftermath(evidence: Evidence): Aftermath {
  const left = leftBehind(evidence.database)
  return withRows(evidence.database, ({ trees, wrongFiles, leftOpen }) => {
    const wrong = [
      ...left,
      ...leftOpen(),
      ...wrongFiles(),
      ...brokenRows(evidence, trees),
      ...trees.flatMap(unsettled),
      ...(evidence.effects === null ? [] : wrongEffects(evidence.effects, trees)),
      ...brokenExits(evidence.exits),
    ]
    requireNothing(wrong, evidence)
    return figuresOf(evidence, trees)
  })
}

/**
 * Checks what must hold at any moment, however many workers were just killed: L1, L2, L7 and the shape of the graph.
 */
export function checkStanding(evidence: Pick<Evidence, 'database' | 'lines'>): void {
  withRows(evidence.database, ({ trees, wrongFiles }) =>
    requireNothing([...wrongFiles(), ...brokenRows(evidence, trees)], evidence),
  )
}

function brokenRows({ lines }: Pick<Evidence, 'lines'>, trees: readonly TreeRows[]): string[] {
  return [...lostEvents(lines, trees), ...unevenSequences(lines, trees), ...trees.flatMap(brokenGraph)]
}

/** The stored rows, whatever store holds them. */
interface StoredRows {
  readonly trees: readonly TreeRows[]
  /** Lists problems of the files themselves. */
  readonly wrongFiles: () => string[]
  /** Lists locks and claims of workers that are gone. */
  readonly leftOpen: () => string[]
}

function withRows<T>(database: string, use: (found: StoredRows) => T): T {
  if (!statSync(database).isDirectory()) return withSqliteRows(database, use)
  const left = leftInFolder(database)
  return withJsonRows(database, (trees, wrongFiles) => use({ trees, wrongFiles, leftOpen: () => left }))
}

function withSqliteRows<T>(database: string, use: (found: StoredRows) => T): T {
  const store = sqliteStore(database)
  const db = connect(database)
  try {
    const trees = readTrees(store)
    const wrongFiles = () => [...damage(db), ...brokenChains(db), ...unreached(trees, db)]
    return use({ trees, wrongFiles, leftOpen: () => leftLocks(db) })
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

/** Lists rows that no walk from a root reaches. */
function unreached(trees: readonly TreeRows[], db: Connection): string[] {
  return (['conversations', 'turns', 'nodes', 'links'] as const).flatMap((table) => {
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

function requireNothing(wrong: readonly string[], { database }: Pick<Evidence, 'database'>): void {
  if (wrong.length > 0) throw new Error(`${wrong.length} wrong in ${database}:\n${wrong.join('\n')}`)
}

function figuresOf({ lines, exits }: Evidence, trees: readonly TreeRows[]): Aftermath {
  const nodes = trees.flatMap((tree) => [...tree.nodes.values()])
  return {
    kills: exits.filter(({ signal }) => signal === 'SIGKILL').length,
    workers: exits.length,
    events: trees.reduce((sum, { events }) => sum + events.length, 0),
    uncertain: nodes.filter(({ state }) => state === 'uncertain').length,
    lines,
    exits,
    trees,
  }
}

/** Lists violations of the rules that hold after every commit, and so whenever a process is killed. */
export function brokenGraph(tree: TreeRows): string[] {
  return auditTree(tree, ANYWHERE)
    .filter(({ type }) => type !== 'unknown_kind')
    .map(({ type, message }) => `${type}: ${message}`)
}

/** Claims of dead processes are not wrong: other processes take them over. */
const ANYWHERE = { kinds: BUILT_IN_KINDS, isAlive: () => true, hasBody: () => true }
