import { existsSync, readFileSync, writeSync } from 'node:fs'
import { parseOwnJson } from '../../core/base/json.ts'
import { code, readOptions, record } from '../../core/base/options.ts'
import { COMMIT_KINDS, type Commit, type CommitKind } from '../../core/graph/commit.ts'
import type { EventRow } from '../../core/graph/event.ts'
import type { Id } from '../../core/graph/rows.ts'
import type { Store } from '../../core/store/store.ts'

export type Failpoint = `before:${CommitKind}` | `after:${CommitKind}`

/** Every place between two commits where a process can be lost. */
export const FAILPOINTS: readonly Failpoint[] = COMMIT_KINDS.flatMap(
  (kind) => [`before:${kind}`, `after:${kind}`] as const,
)

/** The moment to lose a process: when it passes `point` for the `hit`-th time. */
export interface KillPoint {
  /** A failpoint of a store, or a name that the program passes itself. */
  readonly point: string
  /** Counted from 1. */
  readonly hit: number
}

export interface FailpointPlan {
  /** The point at which the process is killed. Left out: points are only reported. */
  readonly killAt?: KillPoint | undefined
  /** Called for every point, before the process dies at it. */
  readonly passed?: (point: string, hit: number) => void
}

/** The points of a process. */
export interface Failpoints {
  pass(point: string): void
}

/** Counts the points a process passes and kills it, as `kill -9` does, at the planned one. */
export function failpoints(plan: FailpointPlan): Failpoints {
  const { killAt, passed = () => undefined } = readOptions('failpoints()', plan, { killAt: record, passed: code })
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

/** Adds a failpoint before and after every commit of a store. */
export function withFailpoints<Kind extends Store>(store: Kind, plan: FailpointPlan | Failpoints): Kind {
  const points = 'pass' in plan ? plan : failpoints(plan)
  const before = ({ kind }: Commit) => points.pass(`before:${kind}`)
  return watched(store, { before, after: ({ kind }) => points.pass(`after:${kind}`) })
}

/** A line of a worker's log. A commit is logged only after the store has acknowledged it. */
export type WorkerLine =
  | {
      readonly type: 'commit'
      readonly pid: number
      /** The id of the commit. */
      readonly id: Id
      readonly kind: CommitKind
      readonly rootId: Id | null
      readonly events: readonly EventRow[]
      /** When it was given to the store and when it was acknowledged, by `machineMs`. */
      readonly sent: number
      readonly at: number
    }
  | { readonly type: 'pass'; readonly pid: number; readonly point: string; readonly hit: number }

/** The name of the log in a case's folder. */
export const LOG = 'workers.jsonl'

/** The descriptor of the log, opened for appending: written lines survive the kill of a worker. */
const LOG_DESCRIPTOR = 3

/** Milliseconds by a clock that all processes of a machine share, and that nobody can set. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Writes a line after a line break, because the line before may be torn. */
export function writeLine(line: WorkerLine): void {
  writeSync(LOG_DESCRIPTOR, `\n${JSON.stringify(line)}\n`)
}

/** Reads all lines of a log in the order of writing, whichever worker wrote them. Torn lines do not count. */
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

/** Logs every commit of a store once it is acknowledged. */
export function withAcknowledgements<Kind extends Store>(store: Kind): Kind {
  const tell = ({ id, kind, rootId, events }: Commit, sent: number) => {
    writeLine({ type: 'commit', pid: process.pid, id, kind, rootId, events, sent, at: machineMs() })
  }
  const sent = new WeakMap<Commit, number>()
  const before = (commit: Commit) => sent.set(commit, machineMs())
  return watched(store, { before, after: (commit) => tell(commit, sent.get(commit) ?? 0) })
}

interface Watcher {
  readonly before: (commit: Commit) => void
  /** The commit was acknowledged. */
  readonly after: (commit: Commit) => void
}

/** Commits that share a transaction are acknowledged with it. */
function watched<Kind extends Store>(store: Kind, watcher: Watcher): Kind {
  const { together } = store
  let written: Commit[] | null = null
  return {
    ...store,
    commit: (commit: Commit) => {
      watcher.before(commit)
      const stored = store.commit(commit)
      if (stored instanceof Promise) return stored.then(() => watcher.after(commit))
      if (written === null) return watcher.after(commit)
      written.push(commit)
      return undefined
    },
    ...(together !== undefined && {
      together: (work: () => void) => {
        const here: Commit[] = []
        const stored = together(() => {
          written = here
          try {
            work()
          } finally {
            written = null
          }
        })
        const tell = () => here.forEach(watcher.after)
        return stored instanceof Promise ? stored.then(tell) : tell()
      },
    }),
  }
}
