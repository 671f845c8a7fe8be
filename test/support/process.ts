import { ConflictError } from '../../src/core/base/error.ts'
import { type EngineRow, emptyCommit } from '../../src/core/graph/commit.ts'

import type { RuntimeOptions } from '../../src/core/runtime/options.ts'
import { createRuntime, type Runtime } from '../../src/core/runtime/runtime.ts'
import type { LocalStore } from '../../src/core/store/store.ts'

import { type Gate, makeGate } from './gate.ts'
import { remoteStore } from './remote.ts'
import type { Rows } from './stores.ts'

/** A runtime with a store handle of its own, as a process has it, that can be killed or frozen. */
export interface Process {
  readonly runtime: Runtime
  readonly store: LocalStore
  readonly killed: boolean
  /** What it reported while it lived. */
  readonly errors: readonly string[]
  /** Nothing it writes arrives any more, and its engine row proves that it is gone: what `kill -9` leaves behind. */
  kill(): Promise<void>
  /** Nothing it writes arrives until `thaw`: the process is stopped, or its machine sleeps. */
  freeze(): void
  thaw(): void
}

export interface ProcessOptions extends Omit<RuntimeOptions, 'store'> {
  readonly store?: (store: LocalStore) => LocalStore
  /** What goes wrong in it is no surprise. */
  readonly mayFail?: boolean
}

/** Quick enough for tests that run on the computer's clock. */
export const QUICK = { sweepMs: 20, graceMs: 200 } as const

export function startProcess(
  rows: Rows,
  { store: wrap = (store) => store, mayFail = false, ...options }: ProcessOptions = {},
): Process {
  const raw = rows.open()
  const inner = wrap(raw)
  const engines = new Set<string>()
  let gate: Gate | undefined
  let killed = false
  const errors: string[] = []
  const logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: (message: string) => {
      if (!killed && !mayFail) errors.push(message)
    },
  }
  const store: LocalStore = {
    ...inner,
    commit: (commit) => {
      for (const { id } of commit.engines) engines.add(id)
      return gate === undefined ? inner.commit(commit) : gate.opened.then(() => inner.commit(commit))
    },
    // What is dead does not even look any more: it wants to renew its lease for ever.
    engine: (id) => (killed ? undefined : inner.engine(id)),
    watch: (changed) =>
      inner.watch((change) => {
        if (!killed) changed(change)
      }),
  }
  return {
    runtime: createRuntime({
      logger,
      ...options,
      engine: { ...QUICK, ...options.engine },
      store: rows.isRemote === true ? remoteStore(store) : store,
    }),
    store,
    errors,
    get killed() {
      return killed
    },
    kill: async () => {
      killed = true
      gate = makeGate()
      for (const id of engines) await markDead(raw, raw.engine(id))
      // A store of one process frees its folder when its process dies.
      if (!raw.shared) await raw.close()
    },
    freeze: () => {
      gate = makeGate()
    },
    thaw: () => {
      const closed = gate
      gate = undefined
      closed?.open()
    },
  }
}

/** The engine's row says another start of its process than the pid has now: the process is proven dead. */
export async function markDead(store: LocalStore, row: EngineRow | undefined): Promise<void> {
  for (let last = row; last !== undefined; last = store.engine(last.id)) {
    const engines = [{ ...last, version: last.version + 1, processStart: 'before' }]
    try {
      return await store.commit({ ...emptyCommit('lease', 0, null), engines })
    } catch (error) {
      // It has just said that it lives.
      if (!(error instanceof ConflictError)) throw error
    }
  }
}

/** Waits until `check` gives something, and says what was waited for when it does not. */
export async function until<T>(what: string, check: () => T | undefined | false, timeoutMs = 5_000): Promise<T> {
  const giveUpAt = performance.now() + timeoutMs
  for (;;) {
    const found = check()
    if (found !== undefined && found !== false) return found
    if (performance.now() > giveUpAt) throw new Error(`waited ${timeoutMs} ms for: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
