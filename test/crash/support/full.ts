import { vi } from 'vitest'

/** Are the full figures wanted? They take much longer. */
export const isFull = process.env['LEGATE_FULL'] === '1'

if (isFull) vi.setConfig({ testTimeout: 7_200_000 })
