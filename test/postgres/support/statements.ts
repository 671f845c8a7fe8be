import pg from 'pg'

/** Settings with which a server counts statements, those in functions too. */
export const COUNTING = ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track=all']

/** What the server did for one text of a statement. */
export interface StatementCount {
  readonly text: string
  readonly calls: number
  /** Blocks of 8 kB that it read, from memory or from the disk. */
  readonly blocks: number
  readonly rows: number
}

/** Counts what a server is asked between two moments. It has a connection of its own, which is not counted. */
export class StatementCounter {
  private readonly client: pg.Client

  private constructor(client: pg.Client) {
    this.client = client
  }

  static async open(url: string): Promise<StatementCounter> {
    const client = new pg.Client({ connectionString: url, application_name: 'counter' })
    client.on('error', () => undefined)
    await client.connect()
    await client.query('SET pg_stat_statements.track = none')
    await client.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements')
    return new StatementCounter(client)
  }

  /** All that is asked while `work` runs, the most expensive first. `top`: without the statements inside of functions. */
  async during(work: () => Promise<unknown>, { top = true } = {}): Promise<readonly StatementCount[]> {
    await this.client.query('SELECT pg_stat_statements_reset()')
    await work()
    const { rows } = await this.client.query({
      text: `SELECT query, sum(calls)::int, sum(shared_blks_hit + shared_blks_read)::int, sum(rows)::int
        FROM pg_stat_statements WHERE toplevel OR NOT $1 GROUP BY 1 ORDER BY 3 DESC`,
      values: [top],
      rowMode: 'array',
    })
    return (rows as [string, number, number, number][]).map(([text, calls, blocks, rows]) => ({
      text,
      calls,
      blocks,
      rows,
    }))
  }

  /** How many bytes the server has written to its log so far. */
  async logged(): Promise<number> {
    const { rows } = await this.client.query("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes")
    return Number(rows[0]?.bytes)
  }

  /** Lets the planner believe, as it does in a store with very many trees, that each of them has few rows. */
  async expectSmallTrees(): Promise<void> {
    for (const table of ['rows', 'commits']) {
      await this.client.query(`ALTER TABLE legate.${table} ALTER COLUMN t SET (n_distinct = -0.05)`)
    }
    await this.client.query('ANALYZE')
  }

  close(): Promise<void> {
    return this.client.end()
  }
}

/** The sums of all statements, or of those that a pattern fits. */
export function sumOf(counts: readonly StatementCount[], pattern = /./): Omit<StatementCount, 'text'> {
  const sum = { calls: 0, blocks: 0, rows: 0 }
  for (const { text, calls, blocks, rows } of counts) {
    if (!pattern.test(text)) continue
    sum.calls += calls
    sum.blocks += blocks
    sum.rows += rows
  }
  return sum
}
