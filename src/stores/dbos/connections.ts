import { newPool, type PostgresClient } from '../postgres/connection/driver.ts'
import type { DbosPlace } from './place.ts'

const MOST = 4
/** A transaction that its process does not go on with holds locks for so long. */
const IDLE_MS = 60_000

/** The connections that DBOS works with: the user's pool, or a pool of its own. */
export interface Connections {
  readonly pool: object
  /** Ends them, also those that may never answer again; twice does no harm. A user's pool stays as it is. */
  end(): Promise<void>
}

/**
 * The pool that DBOS would make for itself waits without end for a connection that the other side has forgotten: nobody could
 * give up a launch.
 */
export async function connectionsAt({ url, pool }: DbosPlace): Promise<Connections> {
  if (pool !== undefined) return { pool, end: async () => undefined }
  const clients = new Set<PostgresClient>()
  const own = await newPool(url ?? '', MOST, {
    application_name: 'legate dbos',
    onConnect: async (client: PostgresClient) => {
      clients.add(client)
      await client.query({ text: `SET idle_in_transaction_session_timeout = ${IDLE_MS}` })
    },
  })
  own.on('error', () => undefined)
  own.on('remove', (client) => clients.delete(client))
  let ended: Promise<void> | undefined
  const end = () => {
    ended ??= own.end()
    for (const client of clients) client.connection?.stream?.destroy()
    return ended
  }
  return { pool: own, end }
}
