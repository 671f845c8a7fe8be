import type { Commit } from '../../core/graph/commit.ts'
import type { Id } from '../../core/graph/rows.ts'
import { sendWithWakes } from '../../core/store/dispatch.ts'
import { Commits, SEND } from './commit.ts'
import { commitValues, wakeValues } from './commit-values.ts'
import type { Database } from './connection/database.ts'
import type { PgRow } from './connection/driver.ts'
import { isLost, isRefusal } from './connection/failure.ts'
import { keyOf } from './escape.ts'
import { type Altered, headInRow, TreeLoader } from './load.ts'
import { AnswerLost, type Head, Refused, type SendOptions, type Transport } from './replica/transport.ts'

export interface TransportOptions {
  readonly isRelaxed: boolean
  /** How many commits of a tree this process knows. */
  readonly known: (rootId: Id) => number
  readonly altered?: Altered
  /** The call that puts a wake into the queue of the store, if it has one. */
  readonly enqueue?: string | undefined
}

/** Sends commits to PostgreSQL and loads trees from it. */
export function postgresTransport(database: Database, options: TransportOptions): Omit<Transport, 'listen'> {
  const commits = new Commits(database)
  const loader = new TreeLoader(database, options.altered)
  return {
    send: (commit, sending) => send(commit, { ...sending, ...options, database, commits }),
    head: (rootId) => loader.head(rootId),
    load: (rootId, most) => loader.whole(rootId, most),
    newer: (rootId, since) => loader.newer(rootId, since),
    find: (rootId, wanted) => loader.find(rootId, wanted),
    bodies: (rootId, hashes) => loader.bodies(rootId, hashes),
  }
}

interface StoreOptions extends SendOptions, TransportOptions {
  readonly database: Database
  readonly commits: Commits
}

async function send(commit: Commit, options: StoreOptions): Promise<Head | undefined> {
  const { rootId } = commit
  const { database } = options
  try {
    const head = await store(commit, options)
    return rootId === null ? undefined : headInRow(head as PgRow)
  } catch (error) {
    if (isRefusal(error)) throw new Refused('The rows contradict the commit.', { cause: error })
    if (isLost(error)) throw new AnswerLost(database.failure(error).message, { cause: error })
    throw database.failure(error)
  }
}

async function store(commit: Commit, options: StoreOptions): Promise<unknown> {
  const { rootId } = commit
  const { database, commits, enqueue } = options
  const values = commitValues(commit, { ...options, known: rootId === null ? 0 : options.known(rootId) })
  const wakes = enqueue === undefined ? undefined : wakeValues(commit)
  if (enqueue === undefined || wakes === undefined) {
    const root = rootId === null ? null : keyOf(rootId)
    return commits.send({ root, values, isAlone: root === null || options.again })
  }
  const [row] = await database.once(sendWithWakes(SEND, enqueue), [...values, wakes])
  return row?.[0]
}
