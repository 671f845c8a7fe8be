import type { Budget, Grant, Json, StartOptions } from 'legate'
import type { Script } from 'legate/testing'
import type { RuntimeOptions } from '../../../src/core/runtime/options.ts'
import type { Layers } from '../../support/callers.ts'
import type { Rows } from '../../support/stores.ts'
import type { Worker } from './worker.ts'

/** Who binds the worker, and by what. */
export interface Bound {
  readonly grant?: Grant
  readonly budget?: Budget
  readonly profile?: string
  readonly runtime?: Pick<RuntimeOptions, 'grant' | 'budget' | 'profiles'>
  /** On whose behalf the host's conversation is made and its turns are asked for. */
  readonly layers?: Layers
  /** What the host's caller asks for with each run. */
  readonly request?: Pick<StartOptions, 'grant' | 'budget'>
}

/** One try: a worker behind a host that is bound. */
export interface Try {
  /** Where it is all recorded. */
  readonly create: () => Rows
  readonly bound: Bound
  /** What a process that takes over has in place of `bound`. */
  readonly later: Bound
  readonly worker: Worker
  /** Put into the arguments of the call beside what belongs there. */
  readonly smuggled: { readonly [key: string]: Json }
}

/** A way to a worker. It settles when the whole tree has ended; what people are asked is denied. */
export interface Door {
  readonly name: string
  /** How deep the worker is: what a limit of depth must be for the worker to be the last. */
  readonly depth: number
  /** Is there an offer of the host's that a profile could be put on? */
  readonly hasOffer: boolean
  /** False where the child has another name than the worker's. */
  readonly isNamed?: boolean
  open(attempt: Try): Promise<void>
}

/** Runs a host with this script and these parts, under what binds it, until all has ended. */
export type HostIn = (
  attempt: Try,
  host: { readonly script: Script; readonly rest: object; readonly models: RuntimeOptions['models'] },
) => Promise<void>
