import { StoreError } from '../../base/error.ts'
import { parseOwnJson } from '../../base/json.ts'
import type { SqlValue } from './driver.ts'
import type { Packed } from './rows.ts'

/** What a row says, as it is packed. Throws StoreError when it is not what was written. */
export function parseRow(data: SqlValue | undefined): Packed {
  try {
    return parseOwnJson(String(data)) as Packed
  } catch (cause) {
    const message = `A row of the store is not what was written: ${String(data).slice(0, 80)}`
    throw new StoreError('store', `${message} (legate audit --verify says which are.)`, { cause })
  }
}
