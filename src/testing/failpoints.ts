import { COMMIT_KINDS, type CommitKind } from '../graph/commit.ts'
import type { Store } from '../store/store.ts'

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
