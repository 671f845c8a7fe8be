import type { Connection } from './driver.ts'

/** What others write meanwhile is not seen. */
export function atOneMoment<T>(db: Connection, query: () => T): T {
  db.exec('BEGIN')
  try {
    return query()
  } finally {
    db.exec('COMMIT')
  }
}
