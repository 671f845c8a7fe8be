import { auditTree } from '../../core/audit/audit.ts'
import { BUILT_IN_KINDS } from '../../core/graph/kinds.ts'
import type { TreeRows } from '../../core/graph/reader.ts'
import type { WorkerLine } from './failpoints.ts'
import { brokenExits, leftBehind, lostEvents, unevenSequences, unsettled, wrongEffects } from './laws.ts'
import type { CountedEffect } from './outside-counter.ts'
import { withRows } from './stored-rows.ts'
import type { WorkerExit } from './worker-process.ts'

/** The evidence a crash test leaves behind. */
export interface Evidence {
  /** The folder of the case. */
  readonly folder: string
  /** The file of a SQLite store, the folder of a JSON store, or the address of a schema in PostgreSQL. */
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
export async function aftermath(evidence: Evidence): Promise<Aftermath> {
  const left = leftBehind(evidence)
  return withRows(evidence.database, async ({ trees, wrongStore, leftOpen }) => {
    const wrong = [
      ...left,
      ...(await leftOpen()),
      ...(await wrongStore()),
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
export async function checkStanding(evidence: Pick<Evidence, 'database' | 'lines'>): Promise<void> {
  await withRows(evidence.database, async ({ trees, wrongStore }) =>
    requireNothing([...(await wrongStore()), ...brokenRows(evidence, trees)], evidence),
  )
}

function brokenRows({ lines }: Pick<Evidence, 'lines'>, trees: readonly TreeRows[]): string[] {
  return [...lostEvents(lines, trees), ...unevenSequences(lines, trees), ...trees.flatMap(brokenGraph)]
}

function requireNothing(wrong: readonly string[], { database }: Pick<Evidence, 'database'>): void {
  if (wrong.length > 0) throw new Error(`${wrong.length} wrong in ${withoutPassword(database)}:\n${wrong.join('\n')}`)
}

function withoutPassword(database: string): string {
  return database.replace(/:[^:@/]*@/, '@')
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

/**
 * Lists violations of the rules that hold after every commit, and so whenever a process is killed. A text that is gone was taken
 * from outside.
 */
export function brokenGraph(tree: TreeRows): string[] {
  return auditTree(tree, ANYWHERE)
    .filter(({ type }) => type !== 'unknown_kind' && type !== 'missing_body')
    .map(({ type, message }) => `${type}: ${message}`)
}

/** Claims of dead processes are not wrong: other processes take them over. */
const ANYWHERE = { kinds: BUILT_IN_KINDS, isAlive: () => true }
