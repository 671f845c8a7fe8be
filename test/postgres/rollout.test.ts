import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { useCounter } from '../crash/support/counter.ts'
import { figure } from '../crash/support/figure.ts'
import { isFull } from '../crash/support/full.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { CommandWorker } from './support/command-worker.ts'
import { CrewCase, told } from './support/crew.ts'
import { commitFunction, type LaterVersion, laterProgram } from './support/later-version.ts'

const JOBS = isFull ? 400 : 24
/** How long the step takes, while the tables are locked. Longer than any other statement may take. */
const STEP_S = isFull ? 20 : 1

/** The words of a process that a later version has locked out. */
const LOCKED_OUT =
  /The schema \S+ is of version 5, for software that knows version 5 or later; this process knows 3\. It has written nothing more: update legate here\./

describe.skipIf(noPostgres !== undefined)('a rollout', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)
  const counter = await useCounter()
  const crewOf = (width: number) => new CrewCase({ counter, url: server.url() }, { jobs: JOBS, width })

  test('of a version that adds to the schema: the old and the new one work side by side, and nothing is lost', async () => {
    const crew = crewOf(isFull ? 4 : 1)
    const schema = schemaOf(crew.crash.database)
    const next = laterProgram('crew', adding())
    const old = crew.start()
    await crew.untilEnded(JOBS / 6, [old])

    // It changes tables that the old one writes to, and the old one goes on.
    const young = crew.startLater(next)
    await until(async () => (await one(server, `SELECT version FROM ${schema}.legate`)) === 4)
    const before = await commitsBy(server, schema, 1)
    // A process of the old version that starts now finds a schema that it does not know, and can use.
    const late = crew.start()
    await crew.untilEnded(JOBS / 2, [old, young, late])
    await crew.crash.kill(old, { afterMs: 0 })
    await crew.untilEnded((JOBS * 2) / 3, [young, late])
    await crew.crash.kill(late, { afterMs: 0 })

    const found = await crew.check([young])
    expect(found.wrong).toEqual([])
    expect(await commitsBy(server, schema, 1)).toBeGreaterThan(before)
    expect(await commitsBy(server, schema, 2)).toBeGreaterThan(0)
    figure('D-9 on PostgreSQL', `two versions side by side, a step of ${STEP_S} s under load: ${told(found)}`)
    await crew.crash.drop()
  })

  test.runIf(isFull)(
    'whose first processes of both versions make the schema at the same moment: it is of the later version',
    async () => {
      const crew = crewOf(4)
      const schema = schemaOf(crew.crash.database)
      const gate = new pg.Client({ connectionString: server.url() })
      await gate.connect()
      await gate.query('SELECT pg_advisory_lock(hashtext($1))', [`legate ${schema.slice(1, -1)}`])
      const waiting = "SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
      const young = crew.startLater(laterProgram('crew', adding()))
      await until(async () => (await one(server, waiting)) === 1)
      const old = crew.start()
      await until(async () => (await one(server, waiting)) === 2)
      await gate.end()

      expect((await crew.check([young, old])).wrong).toEqual([])
      expect(await one(server, `SELECT version FROM ${schema}.legate`)).toBe(4)
      await crew.crash.drop()
    },
  )

  test('of a version that shuts the old one out: it says so, writes nothing more, and the new one ends its work', async () => {
    const crew = crewOf(1)
    const schema = schemaOf(crew.crash.database)
    const command = new CommandWorker({ url: crew.crash.database, folder: tempFolder(afterAll) })
    await command.ready
    const old = crew.start()
    await crew.untilEnded(2, [old])

    const young = crew.startLater(laterProgram('crew', closing()))
    const { code, errors } = await old.ended
    expect({ code, errors }).toEqual({ code: 1, errors: expect.stringMatching(LOCKED_OUT) })
    expect(await command.ended).toBe(1)
    expect(command.output.match(new RegExp(LOCKED_OUT, 'g'))).toHaveLength(1)
    expect(command.output).not.toMatch(/\n\s+at /)

    await crew.crash.ended(young)
    const all = `SELECT (SELECT last_value FROM ${schema}.writes) || ' ' || (SELECT count(*) FROM ${schema}.engines)`
    const written = await one(server, all)
    const again = new CommandWorker({ url: crew.crash.database, folder: tempFolder(afterAll) })
    expect(await again.ended).toBe(1)
    expect(again.output).toMatch(new RegExp(`^[^\\n]*${LOCKED_OUT.source}\\n$`))
    expect(await one(server, all)).toBe(written)

    // The checker is of the version of today, and only reads.
    await one(server, `UPDATE ${schema}.legate SET least = 1`)
    const { wrong } = await crew.check([young])
    // Whoever is shut out cannot take back its lease, which ends by itself.
    expect(wrong.filter((one) => !one.startsWith('L8 the lease of engine'))).toEqual([])
    await crew.crash.drop()
  })
})

/** The next version adds a column to tables that are written to all the time, an index and a function, and has its commits marked. */
function adding(): LaterVersion {
  const { name, takes, gives } = commitFunction()
  const names = takes.split(',').map((one) => one.trim().split(' ')[0])
  const step = `
    ALTER TABLE @.rows ADD COLUMN colour text;
    ALTER TABLE @.trees ADD COLUMN colour text NOT NULL DEFAULT 'red';
    ALTER TABLE @.commits ADD COLUMN version int NOT NULL DEFAULT coalesce(nullif(current_setting('legate.version', true), '')::int, 1);
    CREATE INDEX commits_of_version ON @.commits (version);
    SELECT pg_sleep(${STEP_S});
    CREATE FUNCTION @.commit_of_2(${takes}) RETURNS ${gives} LANGUAGE plpgsql AS $later$
    BEGIN
      PERFORM set_config('legate.version', '2', true);
      RETURN @.${name}(${names.join(', ')});
    END $later$;`
  return { steps: [step], least: 1, commits: 'commit_of_2' }
}

/** The one after it has another function to commit with, in place of the one of today. */
function closing(): LaterVersion {
  const { name, takes } = commitFunction()
  const types = takes.split(',').map((one) => one.trim().split(' ')[1])
  const step = `ALTER FUNCTION @.${name}(${types.join(', ')}) RENAME TO commit_of_3`
  return { steps: ['SELECT 1', step], least: 5, commits: 'commit_of_3' }
}

function schemaOf(database: string): string {
  return `"${new URL(database).searchParams.get('schema')}"`
}

function commitsBy(server: PostgresServer, schema: string, version: number): Promise<number> {
  return one(server, `SELECT count(*)::int FROM ${schema}.commits WHERE version = ${version}`) as Promise<number>
}

async function one(server: PostgresServer, sql: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: server.url() })
  await client.connect()
  try {
    const { rows } = await client.query({ text: sql, rowMode: 'array' })
    return (rows[0] as unknown[] | undefined)?.[0]
  } finally {
    await client.end()
  }
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(20)
}
