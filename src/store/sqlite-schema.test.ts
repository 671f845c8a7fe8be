import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { connect } from './sqlite-driver.ts'
import { migrate } from './sqlite-schema.ts'

const folder = mkdtempSync(join(tmpdir(), 'legate-schema-'))
const db = connect(join(folder, 'plans.db'))
migrate(db)
afterAll(() => {
  db.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Through all ids, or through an index that holds only the rows asked for. */
const allowed = [
  /^SELECT id FROM \w+ WHERE substr/,
  /FROM engines$/,
  /WHERE open_root IS NOT NULL/,
  /WHERE id = root_id ORDER/,
]

test('every statement finds its rows by an index', () => {
  const statements = ['sqlite-read.ts', 'sqlite-commit.ts'].flatMap(statementsIn)

  const scans = statements.filter(
    (sql) => planOf(sql).some(isScan) && !allowed.some((exception) => exception.test(sql)),
  )

  expect(statements.length).toBeGreaterThan(35)
  expect(scans).toEqual([])
})

test('a row is changed by its id, whatever else is asked of it', () => {
  const updates = statementsIn('sqlite-commit.ts').filter((sql) => sql.startsWith('UPDATE'))

  const wrong = updates.filter(
    (sql) => !/^SEARCH \w+ USING INDEX sqlite_autoindex_\w+_1 \(id=\?/.test(planOf(sql)[0] ?? ''),
  )

  expect(updates.length).toBe(5)
  expect(wrong).toEqual([])
})

function statementsIn(file: string): string[] {
  const text = readFileSync(join(import.meta.dirname, file), 'utf8')
  const quoted = text.matchAll(/'((?:SELECT|UPDATE|INSERT|DELETE) [^'\n]*)'|`((?:SELECT|UPDATE|INSERT|DELETE) [^`]*)`/g)
  const statements = [...quoted].map(([, plain, template]) => (plain ?? template ?? '').replaceAll(/\s+/g, ' '))
  return statements.flatMap((sql) => {
    if (sql.endsWith('FROM edges')) return [`${sql} WHERE from_id = ?`, `${sql} WHERE to_id = ?`]
    return madeFor.test(sql) ? ['conversations', 'turns', 'nodes'].map((table) => sql.replace(madeFor, table)) : [sql]
  })
}

const madeFor = /\$\{table\}/

function planOf(sql: string): string[] {
  const numbered = [...sql.matchAll(/\?(\d+)/g)].map(([, digits]) => Number(digits))
  const count = numbered.length > 0 ? Math.max(...numbered) : sql.split('?').length - 1
  return db
    .all(
      `EXPLAIN QUERY PLAN ${sql}`,
      Array.from({ length: count }, () => '1'),
    )
    .map((row) => String(row[3]))
}

function isScan(step: string): boolean {
  return step.startsWith('SCAN') && !/^SCAN (?:CONSTANT ROW|json_each)/.test(step)
}
