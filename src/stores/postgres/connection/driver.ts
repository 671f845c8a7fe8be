import { StoreError } from '../../../core/base/error.ts'
import { isOptionRefused } from './failure.ts'

export type PgRow = readonly unknown[]

/** Runs one statement; `@` stands for the schema. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<readonly PgRow[]>

/** A connection of the package `pg`, as far as the store uses it. */
export interface PostgresClient {
  query(config: object): Promise<{ readonly rows: readonly unknown[] }>
  on(event: string, heard: (...values: unknown[]) => void): unknown
  off(event: string, heard: (...values: unknown[]) => void): unknown
  release(isBroken?: boolean): void
  unref?(): void
  readonly connection?: { readonly stream?: { destroy(): unknown } }
}

/** Ends a connection that may never answer again. Its pool would wait for an answer to the last words. */
export function abandon(client: PostgresClient): void {
  client.release(true)
  client.connection?.stream?.destroy()
}

/** A pool of the package `pg`, as far as the store uses it. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>
  end(): Promise<void>
  on(event: 'error', heard: (error: Error) => void): unknown
}

/** A pool that we have made. */
export interface OwnPool extends PostgresPool {
  on(event: 'error', heard: (error: Error) => void): unknown
  on(event: 'remove', heard: (client: PostgresClient) => void): unknown
  /** The settings of the next connection. */
  readonly options: { options?: string }
}

/**
 * Statements are short and many: compiling one costs the server more than running it, by a thousand times at worst. And rows are
 * read in the order of an index until there are enough: a bitmap reads all of them first.
 */
const SETTINGS = '-c jit=off -c enable_bitmapscan=off'

/** A connection that is not made in this time is given up. */
const CONNECT_MS = 5_000
/** A connection that nobody uses for so long is tried by the system. */
const KEEP_ALIVE_MS = 10_000

/** The pool of a store: its connections compile no statements. A pooler may refuse to be told so; then they are made without. */
export async function storePool(url: string, connections: number): Promise<PostgresPool> {
  const { place, given } = withoutOptions(url)
  const pool = await newPool(place, connections, { options: `${SETTINGS} ${given}` })
  return {
    connect: () =>
      pool.connect().catch((error: unknown) => {
        if (!isOptionRefused(error) || pool.options.options === given) throw error
        pool.options.options = given
        return pool.connect()
      }),
    end: () => pool.end(),
    on: (event, heard) => pool.on(event, heard),
  }
}

/** An address, and the options for the server that it names or that the environment has. The driver takes those of the address only. */
function withoutOptions(url: string): { readonly place: string; readonly given: string } {
  const found = URL.canParse(url) ? new URL(url) : undefined
  const named = found?.searchParams.get('options')
  if (found === undefined || named == null) return { place: url, given: process.env['PGOPTIONS'] ?? '' }
  found.searchParams.delete('options')
  return { place: found.href, given: named }
}

/** `more`: further options of the package. */
export async function newPool(url: string, connections: number, more: object = {}): Promise<OwnPool> {
  const pg = await loadDriver()
  const limits = { connectionTimeoutMillis: CONNECT_MS, idleTimeoutMillis: 30_000 }
  const options = {
    connectionString: url,
    max: connections,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    allowExitOnIdle: true,
    application_name: 'legate',
    ...limits,
    ...more,
  }
  return new pg.Pool(options) as unknown as OwnPool
}

async function loadDriver(): Promise<Pick<typeof import('pg'), 'Pool'>> {
  try {
    return (await import('pg')).default
  } catch (cause) {
    throw new StoreError('store', 'A store on PostgreSQL needs the package pg: npm install pg', { cause })
  }
}

type Parser = (text: string) => unknown

const PARSERS: ReadonlyMap<number, Parser> = new Map<number, Parser>([
  [16, (text) => text === 't'],
  [17, (text) => Buffer.from(text.slice(2), 'hex')],
  [20, Number],
  [21, Number],
  [23, Number],
  [700, Number],
  [701, Number],
  [
    1016,
    (text) =>
      text
        .slice(1, -1)
        .split(',')
        .map((one) => (one === 'NULL' ? null : Number(one))),
  ],
])
const asIs: Parser = (text) => text
/** Its own, whatever the user's pool has set. */
export const TYPES: { getTypeParser: (type: number) => Parser } = {
  getTypeParser: (type: number) => PARSERS.get(type) ?? asIs,
}
