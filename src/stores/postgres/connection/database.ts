import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '../../../core/base/error.ts'
import { abandon, type PgRow, type PostgresClient, type PostgresPool, type Query, storePool, TYPES } from './driver.ts'
import { isLost, isMissing, isNameUnknown, isSilent, postgresFailure } from './failure.ts'
import { isBehind, migrate, requireSchema } from './schema.ts'

/** A database that does not answer for so long is away: its connection is given up, and the statement is sent again. */
export const ANSWER_MS = 8_000
/** How long a statement may take that has much to do: a step of the schema, a scan, one of a transaction. */
const LONG_MS = 600_000
/** How long an index may take that is built while others write. */
const BUILD_MS = 86_400_000
/** How long a process waits for a database that it has never reached. Whoever starts it wants to know soon. */
const FIRST_MS = 10_000
/** So many may read at one moment: each has a connection for as long as it reads, and others need some, too. */
const MOMENTS = 2

export interface DatabaseOptions {
  readonly url: string | undefined
  /** A pool of the user; the store leaves it open. */
  readonly pool: PostgresPool | undefined
  readonly schema: string
  readonly readOnly: boolean
  readonly busyMs: number
  readonly connections: number
  /** More to do before the first use of a database that may be written to. */
  readonly prepare?: (() => Promise<void>) | undefined
}

/** The database of a store. It connects with the first use, and again when a connection is lost. */
export class Database {
  readonly options: DatabaseOptions
  /** The address without its password. */
  readonly address: string
  private readonly quoted: string
  private readonly statements = new Map<string, Statement>()
  private pool: PostgresPool | undefined
  private opened: Promise<void> | undefined
  private isClosed = false
  /** When each connection gave its last answer. */
  private readonly heardAt = new WeakMap<PostgresClient, number>()
  /** When a connection was last found to be silent. Others that gave no answer since may be as dead. */
  private silentAt = Number.NEGATIVE_INFINITY
  /** Since when the database has been away; undefined while it answers. */
  private awaySince: number | undefined
  /** When a connection was last lost. */
  private lostAt = Number.NEGATIVE_INFINITY
  /** How many commits are sent at the same time: connections that no reader takes. */
  readonly lanes: number
  private readonly readers: Places
  private readonly moments: Places

  constructor(options: DatabaseOptions) {
    this.options = options
    this.address = addressOf(options.url)
    this.quoted = `"${options.schema.replaceAll('"', '""')}"`
    const { connections } = options
    this.lanes = Math.max(1, Math.floor(connections / 3))
    // One connection listens.
    this.readers = new Places(Math.max(1, connections - 1 - this.lanes))
    this.moments = new Places(Math.max(1, Math.min(MOMENTS, connections - 2)))
  }

  requireOpen(): void {
    if (!this.isClosed) return
    throw new StoreError('store_closed', `The store at ${this.address} was closed. Open a new one.`)
  }

  /** Runs a statement that may be run twice: it waits while the database is away. */
  async query(text: string, values: readonly unknown[] = []): Promise<readonly PgRow[]> {
    return this.patiently(async () => {
      const asked = performance.now()
      await this.readers.take()
      try {
        this.requirePatience(asked)
        return await this.once(text, values)
      } finally {
        this.readers.giveBack()
      }
    })
  }

  /** Runs a statement that may take minutes, and may be run twice. It is sent on a connection that has just answered. */
  async scan(text: string, values: readonly unknown[] = []): Promise<readonly PgRow[]> {
    return this.patiently(async () => {
      this.requireOpen()
      await this.open()
      return this.withClient(async (query, soon) => {
        await soon('SELECT 1')
        return query(text, values)
      }, LONG_MS)
    })
  }

  /** Runs a statement, and throws what the driver throws. */
  async once(text: string, values: readonly unknown[]): Promise<readonly PgRow[]> {
    this.requireOpen()
    if (this.opened !== undefined || !this.isOpen) await this.open()
    return this.withClient((query) => query(text, values), ANSWER_MS)
  }

  /** Runs several statements as one transaction, again where the connection was lost before its end. */
  async transaction<T>(
    mode: 'REPEATABLE READ READ ONLY' | 'READ COMMITTED',
    work: (query: Query) => Promise<T>,
  ): Promise<T> {
    return this.patiently(async () => {
      this.requireOpen()
      await this.open()
      return this.withClient(async (query, soon) => {
        await soon(`BEGIN ISOLATION LEVEL ${mode}`)
        try {
          await soon('SET LOCAL idle_in_transaction_session_timeout = 30000')
          const result = await work(query)
          await query('COMMIT')
          return result
        } catch (error) {
          if (!isLost(error)) await query('ROLLBACK').catch(() => undefined)
          throw error
        }
      }, LONG_MS)
    })
  }

  /** A connection that stays with its user, to listen. */
  async reserve(): Promise<PostgresClient> {
    await this.open()
    return this.connect()
  }

  /** Uses one connection for short statements, also before the database is open. */
  session<T>(use: (query: Query) => Promise<T>): Promise<T> {
    return this.withClient(use, ANSWER_MS)
  }

  statement(text: string): Statement {
    const known = this.statements.get(text)
    if (known !== undefined) return known
    const made = {
      name: `legate_${this.statements.size}_${hashOf(text + this.quoted)}`,
      text: text.replaceAll('@', this.quoted),
    }
    this.statements.set(text, made)
    return made
  }

  failure(error: unknown): Error {
    return postgresFailure(error, { address: this.address, schema: this.options.schema })
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    await this.opened?.catch(() => undefined)
    if (this.options.pool === undefined) await this.pool?.end()
  }

  private isOpen = false
  /** False behind a pooler that gives each transaction another connection: names of statements are of one connection. */
  private hasNames = true

  private async open(): Promise<void> {
    if (this.isOpen) return
    this.opened ??= this.prepare().finally(() => {
      this.opened = undefined
    })
    await this.opened
  }

  private async prepare(): Promise<void> {
    const { schema, readOnly } = this.options
    if (!readOnly && (await this.withClient(isBehind, ANSWER_MS))) {
      const migrated = (beside: Query) => this.withClient((query) => migrate(query, beside, schema), LONG_MS)
      await this.withClient(migrated, BUILD_MS)
    }
    await this.withClient((query) => requireSchema(query, schema), ANSWER_MS)
    if (!this.options.readOnly) await this.options.prepare?.()
    this.isOpen = true
  }

  /** All reads of the session see the same rows. It must be ended. */
  async moment(): Promise<HeldSession> {
    await this.moments.take()
    try {
      const held = await this.patiently(() => this.beginMoment())
      const end = (isLost: boolean) => {
        const isFirst = held.end(isLost)
        if (isFirst) this.moments.giveBack()
        return isFirst
      }
      // The database ends a moment that nobody goes on with: its reader may never come back to say so.
      held.onBroken(() => end(true))
      return { ...held, end }
    } catch (error) {
      this.moments.giveBack()
      throw error
    }
  }

  private async beginMoment(): Promise<HeldSession> {
    this.requireOpen()
    await this.open()
    const held = await this.hold(LONG_MS)
    try {
      await held.soon(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
      await held.soon('SET LOCAL idle_in_transaction_session_timeout = 30000')
      return held
    } catch (error) {
      held.end(true)
      throw error
    }
  }

  /** Software of a later version may have changed the schema meanwhile, so that this one cannot use it: then that is said. */
  private async withClient<T>(use: Use<T>, answerMs: number): Promise<T> {
    try {
      return await this.withConnection(use, answerMs)
    } catch (error) {
      if (this.isOpen && isMissing(error)) {
        await this.withConnection((query) => requireSchema(query, this.options.schema), ANSWER_MS)
      }
      throw error
    }
  }

  private async withConnection<T>(use: Use<T>, answerMs: number): Promise<T> {
    const { query, soon, end } = await this.hold(answerMs)
    try {
      return await use(query, soon)
    } catch (error) {
      end(isLost(error))
      throw error
    } finally {
      end(false)
    }
  }

  private async hold(answerMs: number): Promise<HeldSession> {
    const client = await this.connect()
    let isBroken = false
    let isEnded = false
    let broken = (): unknown => undefined
    const noticed = () => {
      isBroken = true
      broken()
    }
    client.on('error', noticed)
    const within =
      (ms: number): Query =>
      (text, values = []) =>
        this.run(client, { ...this.asked(text, values), query_timeout: ms })
    return {
      query: within(answerMs),
      soon: within(ANSWER_MS),
      onBroken: (act) => {
        broken = act
        if (isBroken) act()
      },
      end: (isLost) => {
        if (isEnded) return false
        isEnded = true
        // One that is given up may still say that it broke.
        if (!isBroken && !isLost) client.off('error', noticed)
        if (isBroken || isLost) abandon(client)
        else client.release()
        return true
      },
    }
  }

  /** Gives a connection that has answered since one was found to be silent, or a new one. */
  private async connect(): Promise<PostgresClient> {
    const pool = await this.poolOf()
    for (;;) {
      const client = await pool.connect()
      if ((this.heardAt.get(client) ?? this.silentAt) >= this.silentAt) return client
      abandon(client)
    }
  }

  private asked(text: string, values: readonly unknown[]): object {
    const statement = this.statement(text)
    // Statements without values may be several in one text, which cannot be prepared.
    const named = this.hasNames ? statement : { text: statement.text }
    return {
      ...(values.length === 0 ? { text: statement.text } : { ...named, values }),
      rowMode: 'array',
      types: TYPES,
    }
  }

  private async run(client: PostgresClient, asked: object): Promise<readonly PgRow[]> {
    try {
      const { rows } = await client.query(asked)
      this.heardAt.set(client, performance.now())
      this.awaySince = undefined
      return rows as readonly PgRow[]
    } catch (error) {
      if (isNameUnknown(error)) this.hasNames = false
      if (isSilent(error)) this.silentAt = performance.now()
      throw error
    }
  }

  /** Tries again while the database is away. All callers share the time that it may be away, so that late ones hear of it soon. */
  private async patiently<T>(run: () => Promise<T>): Promise<T> {
    const began = performance.now()
    for (let tries = 0; ; tries++) {
      try {
        return await run()
      } catch (error) {
        if (!isLost(error)) throw this.failure(error)
        // A failure from long ago says nothing of this one.
        if (began > this.lostAt + this.options.busyMs) this.awaySince = began
        this.awaySince ??= began
        this.lostAt = performance.now()
        if (performance.now() >= Math.min(this.awaySince, began) + this.patienceMs) throw this.failure(error)
        await sleep(Math.min(1_000, 20 * 2 ** tries))
      }
    }
  }

  /** Whoever has waited in line while others gave the database up does not try it for as long again. */
  private requirePatience(since: number): void {
    const { awaySince, lostAt } = this
    if (awaySince === undefined || lostAt <= since || performance.now() < awaySince + this.patienceMs) return
    throw new Error('timeout: others have waited in vain')
  }

  private get patienceMs(): number {
    const { busyMs } = this.options
    return this.isOpen ? busyMs : Math.min(busyMs, FIRST_MS)
  }

  private async poolOf(): Promise<PostgresPool> {
    if (this.pool !== undefined) return this.pool
    const { pool, url, connections } = this.options
    const found = pool ?? (await storePool(url ?? '', connections))
    // A connection that breaks while nobody uses it concerns nobody.
    if (this.pool === undefined) found.on('error', () => undefined)
    this.pool ??= found
    return this.pool
  }
}

/** A connection that somebody has for a while. */
export interface HeldSession {
  readonly query: Query
  /** For statements that have little to do: a connection that does not answer is given up soon. */
  readonly soon: Query
  readonly onBroken: (act: () => unknown) => void
  /** Gives it back; `isLost`: it is not used again. False where that was done before. */
  readonly end: (isLost: boolean) => boolean
}

type Use<T> = (query: Query, soon: Query) => Promise<T>

interface Statement {
  readonly name: string
  readonly text: string
}

function addressOf(url: string | undefined): string {
  if (url === undefined) return 'the given pool'
  try {
    const { protocol, hostname, port, pathname } = new URL(url)
    return `${protocol}//${hostname}${port === '' ? '' : `:${port}`}${pathname}`
  } catch {
    return 'the given address'
  }
}

/** Names of statements are for a connection, which several stores may share. */
function hashOf(text: string): string {
  let hash = 0
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0
  return (hash >>> 0).toString(36)
}

/** So many may do something at the same time. The others wait for their turn. */
export class Places {
  private free: number
  private readonly waiting: (() => void)[] = []

  constructor(count: number) {
    this.free = count
  }

  /** Resolves when there is a place. It must be given back. */
  async take(): Promise<void> {
    if (this.free > 0) this.free--
    else await new Promise<void>((resolve) => this.waiting.push(resolve))
  }

  giveBack(): void {
    const next = this.waiting.shift()
    if (next === undefined) this.free++
    else next()
  }
}
