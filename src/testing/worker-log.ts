import { existsSync, readFileSync, writeSync } from 'node:fs'
import { parseOwnJson } from '../base/json.ts'
import type { Commit, CommitKind } from '../graph/commit.ts'
import type { EventRow } from '../graph/event.ts'
import type { Id } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'

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
