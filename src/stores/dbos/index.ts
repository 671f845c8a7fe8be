// Workers that DBOS wakes: a queue of DBOS in the database of the store brings work to one of them.
//
// Owns:      the options, and the call of DBOS's SQL function that a commit makes.
// Called by: users, through `legate/engine/dbos`: `postgresStore({ url, dispatch: dbos() })`; `legate worker --queue`.
// Must stay true:
//   - The rows of the store are the only truth. DBOS is never asked what happened, and no model or tool runs in a step of it, nor
//     in the context of its workflow.
//   - A wake is put into the queue in the transaction of the commit that left the work.
//   - The package of DBOS is loaded by processes that take wakes, and by the first that needs its tables.

import { AsyncLocalStorage } from 'node:async_hooks'
import { DefinitionError, StoreError } from '../../core/base/error.ts'
import { number, type OptionRules, readOptions, text } from '../../core/base/options.ts'
import type { Dispatch, SessionQuery, SqlQueue } from '../../core/store/dispatch.ts'
import type { WakeTaker } from '../../core/store/store.ts'
import { APPLICATION, type DbosPlace, storeName, VERSION, WAKE } from './place.ts'

export interface DbosOptions {
  /** The queue of wakes. Processes that name the same one share the work. Default `legate`. */
  readonly queue?: string
  /** The schema with the tables of DBOS; it is made if it is not there. Default: the schema of the store, then `_dbos`. */
  readonly schema?: string
  /** How long wakes that are over stay in the tables of DBOS, in milliseconds: at most an hour. Default 10 minutes. */
  readonly keepMs?: number
}

const OPTIONS: OptionRules<DbosOptions> = { queue: text, schema: text, keepMs: number(0, 3_600_000) }

/**
 * Lets DBOS bring work to workers: `postgresStore({ url, dispatch: dbos() })`. What a commit leaves to do, now or at a later
 * moment, is put into a queue of DBOS in the same transaction. DBOS gives it to one of the processes that work on the queue.
 */
export function dbos(options: DbosOptions = {}): Dispatch {
  const { queue = 'legate', schema, keepMs = 600_000 } = readOptions('dbos()', options, OPTIONS)
  if (!/^(?!_dbos)[\w.:-]{1,100}$/.test(queue)) {
    const message = 'dbos({ queue }): up to 100 letters, digits, and . : - _, and not _dbos at the beginning.'
    throw new DefinitionError('definition', message)
  }
  return {
    at: (place) => new DbosQueue({ ...place, queue, keepMs, tables: tablesOf(schema ?? `${place.schema}_dbos`) }),
  }
}

function tablesOf(schema: string): string {
  if (/^[a-z_][a-z0-9_]{0,47}$/i.test(schema)) return schema
  const message = `dbos({ schema }): a name of up to 48 letters, digits and _, not "${schema}".`
  throw new DefinitionError('definition', message)
}

class DbosQueue implements SqlQueue {
  readonly name: string
  readonly enqueue: string
  private readonly place: DbosPlace
  /** Calls a function as if the program had called it where it made the store: what a wake starts is not inside of DBOS. */
  private readonly outside = AsyncLocalStorage.snapshot()

  constructor(place: DbosPlace) {
    this.place = place
    this.name = place.queue
    this.enqueue = enqueueCall(place)
  }

  async prepare(): Promise<void> {
    const isThere = () => this.place.session((query) => this.hasFunction(query))
    if (await isThere()) return
    const { makeTables } = await import('./launch.ts')
    await makeTables(this.place)
    if (!(await isThere())) throw doesNotFit(this.place)
  }

  async listen({ wake, report }: WakeTaker): Promise<() => Promise<void>> {
    const { listen } = await import('./launch.ts')
    return listen(this.place, { report, wake: (rootId, at) => this.outside(wake, rootId, at) })
  }

  private async hasFunction(query: SessionQuery): Promise<boolean> {
    const [row] = await query('SELECT to_regprocedure($1) IS NOT NULL', [`"${this.place.tables}".${SIGNATURE}`])
    return row?.[0] === true
  }
}

/** The function of DBOS 5.3. Another version may have one with other parameters: a call of it would fail in a commit. */
const SIGNATURE =
  'enqueue_workflow(text,text,json[],json,text,text,text,text,bigint,bigint,text,integer,text,text,text,bigint,text)'

function enqueueCall(place: DbosPlace): string {
  const { tables, queue } = place
  return `"${tables}".enqueue_workflow('${WAKE}', '${queue}',
    ARRAY[to_json('${storeName(place)}'::text), to_json(w.root), to_json(w.at)], workflow_id => w.id, app_version => '${VERSION}',
    application_name => '${APPLICATION}', delay_until_epoch_ms => w.at)`
}

function doesNotFit({ tables }: DbosPlace): StoreError {
  const message = `The schema ${tables} has no function enqueue_workflow as DBOS 5.3 makes it. Install @dbos-inc/dbos-sdk@~5.3, or name a schema of its own: dbos({ schema }).`
  return new StoreError('store', message, { details: { schema: tables } })
}
