import type { Connection, SqlValue } from './driver.ts'
import { COLUMNS, WIDTH } from './rows.ts'

/** Rows of one statement, at most. */
const AT_ONCE = 32

/** Puts any number of rows; their values come one after the other. */
export type ManyRows = (db: Connection, values: readonly SqlValue[]) => void

/** `start` is the statement up to its values, `width` how many a row has. */
export function manyRows(start: string, width: number): ManyRows {
  const row = `(${new Array(width).fill('?').join(', ')})`
  const statements = Array.from(
    { length: AT_ONCE + 1 },
    (_, count) => `${start} VALUES ${new Array(count).fill(row).join(', ')}`,
  )
  return (db, values) => {
    for (const some of portions(values, AT_ONCE * width)) db.run(statements[some.length / width] ?? '', some)
  }
}

function portions(values: readonly SqlValue[], most: number): readonly (readonly SqlValue[])[] {
  if (values.length <= most) return values.length === 0 ? [] : [values]
  const some: SqlValue[][] = []
  for (let at = 0; at < values.length; at += most) some.push(values.slice(at, at + most))
  return some
}

export const putRows: ManyRows = manyRows(`REPLACE INTO rows (${COLUMNS})`, WIDTH)
