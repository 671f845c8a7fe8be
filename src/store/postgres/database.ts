import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '../../base/error.ts'
import { newPool, type PgRow, type PostgresClient, type PostgresPool, type Query, TYPES } from './driver.ts'
import { failure, isLost, isNameUnknown } from './failure.ts'
import { migrate, requireSchema } from './schema.ts'

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

  constructor(options: DatabaseOptions) {
    this.options = options
    this.address = addressOf(options.url)
    this.quoted = `"${options.schema.replaceAll('"', '""')}"`
  }

  requireOpen(): void {
    if (!this.isClosed) return
    throw new StoreError('store_closed', `The store at ${this.address} was closed. Open a new one.`)
  }

  /** Runs a statement that may be run twice: it waits while the database is away. */
  async query(text: string, values: readonly unknown[] = []): Promise<readonly PgRow[]> {
    return this.patiently(() => this.once(text, values))
  }

  /** Runs a statement, and throws what the driver throws. */
  async once(text: string, values: readonly unknown[]): Promise<readonly PgRow[]> {
    this.requireOpen()
    if (this.opened !== undefined || !this.isOpen) await this.open()
    return this.withClient((query) => query(text, values))
  }

  /** Runs several statements as one transaction, again where the connection was lost before its end. */
  async transaction<T>(
    mode: 'REPEATABLE READ READ ONLY' | 'READ COMMITTED',
    work: (query: Query) => Promise<T>,
  ): Promise<T> {
    return this.patiently(async () => {
      this.requireOpen()
      await this.open()
      return this.withClient(async (query) => {
        await query(`BEGIN ISOLATION LEVEL ${mode}`)
        try {
          await query('SET LOCAL idle_in_transaction_session_timeout = 30000')
          const result = await work(query)
          await query('COMMIT')
          return result
        } catch (error) {
          if (!isLost(error)) await query('ROLLBACK').catch(() => undefined)
          throw error
        }
      })
    })
  }

  /** A connection that stays with its user, to listen. */
  async reserve(): Promise<PostgresClient> {
    await this.open()
    return (await this.poolOf()).connect()
  }

  /** Uses one connection, also before the database is open. */
  session<T>(use: (query: Query) => Promise<T>): Promise<T> {
    return this.withClient(use)
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
    return failure(error, { address: this.address, schema: this.options.schema })
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
    await this.withClient(async (query) => {
      if (!this.options.readOnly) await migrate(query, this.options.schema)
      await requireSchema(query, this.options.schema)
    })
    if (!this.options.readOnly) await this.options.prepare?.()
    this.isOpen = true
  }

  /** All reads of the session see the same rows. It must be ended. */
  async moment(): Promise<HeldSession> {
    this.requireOpen()
    await this.open()
    const held = await this.hold()
    await held.query(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
    await held.query('SET LOCAL idle_in_transaction_session_timeout = 30000')
    return held
  }

  private async withClient<T>(use: (query: Query) => Promise<T>): Promise<T> {
    const { query, end } = await this.hold()
    try {
      return await use(query)
    } catch (error) {
      end(isLost(error))
      throw error
    } finally {
      end(false)
    }
  }

  private async hold(): Promise<HeldSession> {
    const client = await (await this.poolOf()).connect()
    let isBroken = false
    let isEnded = false
    const noticed = () => {
      isBroken = true
    }
    client.on('error', noticed)
    return {
      query: (text, values = []) => this.run(client, text, values),
      end: (isLost) => {
        if (isEnded) return
        isEnded = true
        client.off('error', noticed)
        client.release(isBroken || isLost)
      },
    }
  }

  private async run(client: PostgresClient, text: string, values: readonly unknown[]): Promise<readonly PgRow[]> {
    const statement = this.statement(text)
    // Statements without values may be several in one text, which cannot be prepared.
    const named = this.hasNames ? statement : { text: statement.text }
    const asked = values.length === 0 ? { text: statement.text } : { ...named, values }
    try {
      const { rows } = await client.query({ ...asked, rowMode: 'array', types: TYPES })
      return rows as readonly PgRow[]
    } catch (error) {
      if (isNameUnknown(error)) this.hasNames = false
      throw error
    }
  }

  private async patiently<T>(run: () => Promise<T>): Promise<T> {
    const giveUpAt = performance.now() + this.options.busyMs
    for (let tries = 0; ; tries++) {
      try {
        return await run()
      } catch (error) {
        if (!isLost(error) || performance.now() >= giveUpAt) throw this.failure(error)
        await sleep(Math.min(1_000, 20 * 2 ** tries))
      }
    }
  }

  private async poolOf(): Promise<PostgresPool> {
    if (this.pool !== undefined) return this.pool
    const { pool, url, connections } = this.options
    const found = pool ?? (await newPool(url ?? '', connections))
    // A connection that breaks while nobody uses it concerns nobody.
    if (this.pool === undefined) found.on('error', () => undefined)
    this.pool ??= found
    return this.pool
  }
}

/** A connection that somebody has for a while. */
export interface HeldSession {
  readonly query: Query
  /** Gives it back; `isLost`: it is not used again. Once. */
  readonly end: (isLost: boolean) => void
}

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
