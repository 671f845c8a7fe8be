// What a delegation asks of PostgreSQL, on a server that is started for it.
import { runnerImport } from 'vite'
import { WIDTH } from './workloads.mjs'

const TIMES = 40
const { noPostgres, startPostgres } = await load('../../test/support/postgres-server.ts')
const { COUNTING, StatementCounter, sumOf } = await load('../../test/postgres/support/statements.ts')

/** Without these, the time at which the server tidies up decides what is written. */
const STILL = ['autovacuum=off', 'full_page_writes=off', 'checkpoint_timeout=1d', 'max_wal_size=4GB']

/**
 * Statements, bytes of the log and blocks read for a delegation, and blocks read for each child of a wide tree. `repeat` gives a
 * function that does a workload so many times. Nothing where no server can be started.
 */
export async function measurePostgres(repeat) {
  if (noPostgres !== undefined) return {}
  const server = await startPostgres({ settings: [...COUNTING, ...STILL] })
  try {
    process.env.BENCH_POSTGRES = server.url()
    const [delegate, fanOut] = [await repeat('w1'), await repeat('wide')]
    await delegate(TIMES)
    const counter = await StatementCounter.open(server.url())
    await counter.expectSmallTrees()
    const from = await counter.logged()
    const one = sumOf(await counter.during(() => delegate(TIMES)))
    const log = (await counter.logged()) - from
    const many = sumOf(await counter.during(() => fanOut(1)))
    await counter.close()
    const each = (amount) => Math.round(amount / TIMES)
    const blocks = { blocks: each(one.blocks), 'blocks.wide': Math.round(many.blocks / WIDTH) }
    return { statements: each(one.calls), log: each(log), ...blocks }
  } finally {
    await server.drop()
  }
}

async function load(file) {
  const { module } = await runnerImport(new URL(file, import.meta.url).pathname)
  return module
}
