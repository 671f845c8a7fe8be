import { existsSync, readFileSync, writeSync } from 'node:fs'
import { parseOwnJson } from '../../base/json.ts'
import { COMMIT_KINDS, type Commit, type CommitKind } from '../../graph/commit.ts'
import type { EventRow } from '../../graph/event.ts'
import type { Id } from '../../graph/rows.ts'
import type { Store } from '../../store/store.ts'

export type Failpoint = `before:${CommitKind}` | `after:${CommitKind}`

/** Every place between two commits where a process can be lost. */
export const FAILPOINTS: readonly Failpoint[] = COMMIT_KINDS.flatMap(
  (kind) => [`before:${kind}`, `after:${kind}`] as const,
)

/** The moment at which a process is lost: when it passes `point` for the `hit`-th time. */
export interface KillPoint {
  /** A failpoint of a store, or a name that a program passes by itself. */
  readonly point: string
  /** From 1. */
  readonly hit: number
}

export interface FailpointPlan {
  /** Left out: points are only told. */
  readonly killAt?: KillPoint | undefined
  /** Told of every point that is passed, before the process dies of it. */
  readonly passed?: (point: string, hit: number) => void
}

/** What a process passes its points through. */
export interface Failpoints {
  pass(point: string): void
}

/** Counts the points a process passes and kills it, as `kill -9` does, at the one that was planned. */
export function failpoints({ killAt, passed = () => undefined }: FailpointPlan): Failpoints {
  const hits = new Map<string, number>()
  return {
    pass: (point) => {
      const hit = (hits.get(point) ?? 0) + 1
      hits.set(point, hit)
      passed(point, hit)
      if (point === killAt?.point && hit === killAt.hit) process.kill(process.pid, 'SIGKILL')
    },
  }
}

/** The store, with a failpoint before and after every commit it makes. */
export function withFailpoints(store: Store, plan: FailpointPlan | Failpoints): Store {
  const points = 'pass' in plan ? plan : failpoints(plan)
  return {
    ...store,
    commit: (commit) => {
      points.pass(`before:${commit.kind}`)
      const stored = store.commit(commit)
      const done = () => points.pass(`after:${commit.kind}`)
      return stored instanceof Promise ? stored.then(done) : done()
    },
  }
}

/** What a worker says of itself. A commit is told only after the store has acknowledged it. */
export type WorkerLine =
  | {
      readonly type: 'commit'
      readonly pid: number
      readonly kind: CommitKind
      readonly rootId: Id | null
      readonly events: readonly EventRow[]
    }
  | { readonly type: 'pass'; readonly pid: number; readonly point: string; readonly hit: number }

/** The name of the log in a case's folder. */
export const LOG = 'workers.jsonl'

/** Workers get their log opened for appending: what they wrote to it stays when they are killed. */
const LOG_DESCRIPTOR = 3

/** A line begins on a line of its own: the one before it may be torn. */
export function writeLine(line: WorkerLine): void {
  writeSync(LOG_DESCRIPTOR, `\n${JSON.stringify(line)}\n`)
}

/** All lines of a log, whichever worker wrote them, in the order they were written. Torn ones were never said. */
export function readLines(file: string): WorkerLine[] {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8').split('\n').flatMap(readLine)
}

function readLine(text: string): WorkerLine[] {
  if (text === '') return []
  try {
    return [parseOwnJson(text) as WorkerLine]
  } catch {
    return []
  }
}

/** The store, with every commit told once it was acknowledged. */
export function withAcknowledgements(store: Store): Store {
  const tell = ({ kind, rootId, events }: Commit) => {
    writeLine({ type: 'commit', pid: process.pid, kind, rootId, events })
  }
  return {
    ...store,
    commit: (commit) => {
      const stored = store.commit(commit)
      return stored instanceof Promise ? stored.then(() => tell(commit)) : tell(commit)
    },
  }
}
