// The store on PostgreSQL: one truth for any number of machines.
//
// Owns:      the options, and how the parts of the store are put together.
// Called by: users, through `legate/store/postgres`, and commands whose store is an address.
// Must stay true:
//   - It connects with the first use, and loads the driver then.
//   - The event loop never waits for the database.
//   - A commit is done when the server has it on its disk, unless the user asked for less.

import { systemScheduler } from '../../core/base/clock.ts'
import { DefinitionError, StoreError } from '../../core/base/error.ts'
import {
  anything,
  flag,
  int,
  nearest,
  number,
  type OptionRules,
  oneOf,
  readOptions,
  text,
} from '../../core/base/options.ts'
import type { Commit } from '../../core/graph/commit.ts'
import type { Id } from '../../core/graph/rows.ts'
import type { Dispatch, DispatchPlace, SqlQueue } from '../../core/store/dispatch.ts'
import type { Store, WakeQueue } from '../../core/store/store.ts'
import { schemaIn, shownUrl } from './address.ts'
import { postgresArchive } from './archive.ts'
import { Blocks } from './blocks.ts'
import { readChanges, readUsage, tidy } from './changes.ts'
import { Database } from './connection/database.ts'
import type { PostgresPool } from './connection/driver.ts'
import { keyOf, unescaped } from './escape.ts'
import { postgresRegistry } from './registry.ts'
import type { Transport } from './replica/transport.ts'
import { Trees } from './replica/trees.ts'
import { postgresScans } from './scans.ts'
import { postgresTransport } from './transport.ts'
import { ChangeWatch } from './watch.ts'

export type { Dispatch, DispatchPlace, SessionQuery, SqlQueue } from '../../core/store/dispatch.ts'
export type { WakeQueue, WakeTaker } from '../../core/store/store.ts'
export type { PostgresClient, PostgresPool } from './connection/driver.ts'

export interface PostgresStoreOptions {
  /** The address of the database: `postgres://user:password@host:5432/database`. This or `pool`. */
  readonly url?: string
  /** A pool of the package `pg` that you have already. The store leaves it open when it is closed. */
  readonly pool?: PostgresPool
  /** The schema with the tables of the store; it is made if it is not there. Default: `?schema=` of the address, else `legate`. */
  readonly schema?: string
  /**
   * The failure that acknowledged commits survive: `power` = a crash of the server (the default), `process` = kill -9 of a client;
   * a crash of the server may then lose the last second.
   */
  readonly durability?: 'process' | 'power'
  /** How long a commit waits while the database does not answer, before it fails with `store_busy`. Default 30 s. */
  readonly busyMs?: number
  /** How many connections it opens at most, besides one that listens. Default 6. */
  readonly connections?: number
  /** Creates, migrates and writes nothing: for a role that may only read, or a replica. Commits are refused. */
  readonly readOnly?: boolean
  /**
   * How the work that a commit leaves reaches other processes: `poll` (default) = they look each second, and hints make it faster;
   * `dbos()` of `legate/engine/dbos` = a queue in the same database brings it to one of them.
   */
  readonly dispatch?: 'poll' | Dispatch
}

const OPTIONS: OptionRules<PostgresStoreOptions> = {
  url: text,
  pool: anything,
  schema: text,
  durability: oneOf('process', 'power'),
  busyMs: number(0),
  connections: int(2, 1_000),
  readOnly: flag,
  dispatch: anything,
}

/** A name stands in statements as it is. */
const SCHEMA = /^[A-Za-z_][\w-]{0,47}$/
/** A pool of the user has at least so many connections. */
const LEAST_POOL = 2

/** Opens a schema of a PostgreSQL database for any number of processes on any number of machines. */
export function postgresStore(urlOrOptions: string | PostgresStoreOptions): Store {
  const options = typeof urlOrOptions === 'string' ? { url: urlOrOptions } : urlOrOptions
  const given = readOptions<PostgresStoreOptions>('postgresStore()', options ?? {}, OPTIONS)
  const { url, pool, schema = schemaIn(url), busyMs = 30_000, connections = 6, readOnly = false, durability } = given
  requirePlace(given, schema)
  const queue = queueOf(given, {
    url,
    pool,
    schema,
    busyMs,
    ended: async (roots) => {
      const keys = roots.map((root) => keyOf(unescaped(root)))
      return new Set((await database.query(ENDED, [roots, keys])).map(([root]) => String(root)))
    },
    session: (use) => database.session(use),
  })
  const prepare = queue === undefined ? undefined : () => queue.prepare()
  const database = new Database({ url, pool, schema, busyMs, connections: connections + 1, readOnly, prepare })
  return new PostgresParts(database, durability === 'process', queue).store()
}

function queueOf({ dispatch = 'poll', readOnly }: PostgresStoreOptions, place: DispatchPlace): SqlQueue | undefined {
  if (dispatch === 'poll' || readOnly === true) return undefined
  if (typeof dispatch === 'object' && typeof dispatch?.at === 'function') return dispatch.at(place)
  const message = "postgresStore({ dispatch }): 'poll', or dbos() of legate/engine/dbos."
  throw new DefinitionError('definition', message)
}

function requirePlace({ url, pool }: PostgresStoreOptions, schema: string): void {
  const refuse = (message: string): never => {
    throw new DefinitionError('definition', message)
  }
  if (url === undefined && pool === undefined) refuse('postgresStore() needs `url` or `pool`.')
  if (url !== undefined && pool !== undefined) refuse('postgresStore() takes `url` or `pool`, not both.')
  if (url !== undefined && !isPostgresUrl(url)) {
    refuse('postgresStore({ url }): an address begins with postgres:// or postgresql://.')
  }
  if (pool !== undefined && typeof pool?.connect !== 'function') refuse('postgresStore({ pool }): a Pool of pg.')
  // One connection listens.
  const { options } = (pool ?? {}) as { readonly options?: { readonly max?: number } }
  if ((options?.max ?? LEAST_POOL) < LEAST_POOL) {
    refuse(`postgresStore({ pool }): a pool of at least ${LEAST_POOL} connections (\`max\`). One of them listens.`)
  }
  if (!SCHEMA.test(schema)) {
    refuse(
      'postgresStore({ schema }): a name of 1 to 48 letters, digits, underscores and hyphens that begins with a letter or underscore.',
    )
  }
  requireSameSchema(url, schema)
}

/** A slip of the pen in an address would name another store than was meant. */
function requireSameSchema(url: string | undefined, schema: string): void {
  const asked = url !== undefined && URL.canParse(url) ? [...new URL(url).searchParams] : []
  const named = asked.find(([name]) => name === 'schema')?.[1] ?? ''
  const wrong = asked.find(([name]) => nearest(name, ['schema']) !== undefined)?.[0]
  const fault =
    wrong !== undefined
      ? `the address has \`?${wrong}=\`. Did you mean \`?schema=\`?`
      : named !== '' && named !== schema
        ? `the address names the schema ${named}, and the option ${schema}. Give one.`
        : undefined
  if (fault !== undefined) throw new DefinitionError('definition', `postgresStore({ url }): ${fault}`)
}

/** True for the address of a database, as commands and variables name it. */
export function isPostgresUrl(place: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(place)
}

/** The parts of one store, which share a database. */
class PostgresParts {
  private readonly database: Database
  private readonly trees: Trees
  private readonly blocks: Blocks
  private readonly watch: ChangeWatch
  private readonly queue: SqlQueue | undefined
  /** Trees that somebody else was found to have changed. */
  private readonly altered = new Map<Id, StoreError>()
  /** The engines whose leases this process has written. */
  private readonly engines = new Set<Id>()

  constructor(database: Database, isRelaxed: boolean, queue: SqlQueue | undefined) {
    this.database = database
    this.queue = queue
    const known = (rootId: Id) => this.trees.known(rootId)?.head?.n ?? 0
    const transport: Transport = {
      ...postgresTransport(database, {
        isRelaxed,
        known,
        enqueue: queue?.enqueue,
        altered: (rootId, error) => this.altered.set(rootId, error),
      }),
      listen: (heard) => this.watch.listen(heard),
    }
    this.trees = new Trees({
      transport,
      requireOpen: () => database.requireOpen(),
      pause: (ms) => systemScheduler.pause(ms),
      defer: () => new Promise((resolve) => systemScheduler.defer(resolve)),
      patienceMs: database.options.busyMs,
      now: () => performance.now(),
    })
    this.blocks = new Blocks({ database, trees: this.trees, isOwn: (id) => this.engines.has(id) })
    this.watch = new ChangeWatch({
      database,
      isQueued: queue !== undefined,
      isRead: (rootId) => this.blocks.isRead(rootId),
      heard: (rootId) => this.trees.hear(rootId),
      look: () => this.blocks.look(),
      tidy: () => (database.options.readOnly ? Promise.resolve() : tidy(database)),
      lost: () => this.blocks.doubt(),
    })
  }

  store(): Store {
    const { database, trees, blocks, watch } = this
    const { url, schema } = database.options
    const address = url === undefined ? undefined : shownUrl(url, schema)
    return {
      name: 'postgres',
      ...(address === undefined ? {} : { address }),
      shared: true,
      isReadOnly: database.options.readOnly,
      ...postgresScans(database),
      tree: (rootId) => trees.tree(rootId),
      near: (rootId) => trees.near(rootId),
      known: (rootId, isNew) => trees.unchecked(rootId, isNew),
      writtenRoot: (turnId) => trees.writtenRoot(turnId),
      blocks: async (rootId, after) => {
        database.requireOpen()
        return blocks.blocks(rootId, after)
      },
      commit: (commit) => this.commit(commit),
      now: async () => {
        const [row] = await database.query(NOW)
        return Number(row?.[0])
      },
      tampered: () => [...this.altered.values()],
      archive: postgresArchive(database, {
        forget: (rootId) => {
          this.altered.delete(rootId)
          trees.forget(rootId)
        },
        made: (rootId) => watch.left(rootId),
      }),
      changes: (after, limit) => readChanges(database, after, limit),
      usage: (query) => readUsage(database, query),
      registry: postgresRegistry(database, () => watch.changed()),
      watch: (changed) => {
        database.requireOpen()
        return watch.listen(({ rootId, ...change }) => changed(rootId === null ? null : { rootId, ...change }))
      },
      hears: () => watch.hears,
      leave: (rootId) => watch.left(rootId),
      ...(this.queue === undefined ? {} : { wakes: this.tellLeft(this.queue) }),
      close: async () => {
        await watch.end()
        await database.close()
        trees.forgetAll()
      },
    }
  }

  /** A wake may come to a process without the code or without a free worker: then the others are told. */
  private tellLeft(queue: WakeQueue): WakeQueue {
    return {
      ...(queue.name === undefined ? {} : { name: queue.name }),
      listen: async ({ wake, report }) => {
        await this.database.query('SELECT 1')
        return queue.listen({
          report,
          wake: async (rootId, at) => {
            const isDone = await wake(rootId, at)
            if (!isDone) this.watch.left(rootId)
            return isDone
          },
        })
      },
    }
  }

  private async commit(commit: Commit): Promise<void> {
    this.database.requireOpen()
    this.requireWritable()
    const altered = this.altered.get(commit.rootId ?? '')
    if (altered !== undefined) throw altered
    // A stream changes no row of its tree.
    if (commit.kind === 'stream' && commit.blocks.length > 0) return this.blocks.add(commit.blocks)
    await this.watch.write(async () => {
      await this.trees.commit(commit)
      this.watch.committed(commit)
    })
    for (const { id } of commit.engines) this.engines.add(id)
    if (commit.dropBlocks.length > 0) this.blocks.drop(commit.dropBlocks)
  }

  private requireWritable(): void {
    const { database } = this
    if (!database.options.readOnly) return
    const message = `The store at ${database.address} was opened to be read only. Open it without \`readOnly\` to write.`
    throw new StoreError('store_readonly', message)
  }
}

const ENDED = `SELECT root FROM unnest($1::text[], $2::bytea[]) AS q (root, key) WHERE NOT EXISTS (
  SELECT 1 FROM @.trees h JOIN @.rows r USING (t) WHERE h.root_id = q.key AND r.letter = 't' AND r.queue IS NOT NULL)`
const NOW = 'SELECT extract(epoch FROM clock_timestamp()) * 1000::float8'
