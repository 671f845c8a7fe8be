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

/** What is left of a crash test to judge by. */
export interface Evidence {
  /** The file of a SQLite store, or the folder of a JSON store. */
  readonly database: string
  /** What the workers acknowledged, and which points they passed. */
  readonly lines: readonly WorkerLine[]
  readonly exits: readonly WorkerExit[]
  /** What the outside counter has seen; null when nobody counted. */
  readonly effects: readonly CountedEffect[] | null
}

/** Figures of a case in which nothing was wrong. */
export interface Aftermath {
  readonly kills: number
  readonly workers: number
  readonly events: number
  /** Nodes that may or may not have had their effect; every one is named in the outcome of its run. */
  readonly uncertain: number
  readonly lines: readonly WorkerLine[]
  readonly exits: readonly WorkerExit[]
  readonly trees: readonly TreeRows[]
}

/** When all runs have ended and all workers are gone: everything that is promised of a crash (L1 to L9), or an error. */
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

/** What must be true at any moment, however many workers were just killed: L1, L2, L7 and the shape of the graph. */
export function checkStanding(evidence: Pick<Evidence, 'database' | 'lines'>): void {
  withRows(evidence.database, ({ trees, wrongFiles }) =>
    requireNothing([...wrongFiles(), ...brokenRows(evidence, trees)], evidence),
  )
}

function brokenRows({ lines }: Pick<Evidence, 'lines'>, trees: readonly TreeRows[]): string[] {
  return [...lostEvents(lines, trees), ...unevenSequences(lines, trees), ...trees.flatMap(brokenGraph)]
}

/** What is stored, whatever it is stored in. */
interface Found {
  readonly trees: readonly TreeRows[]
  /** What is wrong with the files themselves. */
  readonly wrongFiles: () => string[]
  /** Locks and claims of workers that are gone. */
  readonly leftOpen: () => string[]
}

function withRows<T>(database: string, use: (found: Found) => T): T {
  if (!statSync(database).isDirectory()) return withSqliteRows(database, use)
  const left = leftInFolder(database)
  return withJsonRows(database, (trees, wrongFiles) => use({ trees, wrongFiles, leftOpen: () => left }))
}

function withSqliteRows<T>(database: string, use: (found: Found) => T): T {
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

/** Rows that no walk from a root finds belong to nobody. */
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

/** What is true of a tree after every commit, and so whenever its processes were killed. */
export function brokenGraph(tree: TreeRows): string[] {
  return auditTree(tree, ANYWHERE)
    .filter(({ type }) => type !== 'unknown_kind')
    .map(({ type, message }) => `${type}: ${message}`)
}

/** Claims of processes that are gone are not wrong: others take them over. */
const ANYWHERE = { kinds: BUILT_IN_KINDS, isAlive: () => true, hasBody: () => true }
