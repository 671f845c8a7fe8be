/** Are the full figures wanted? They take much longer. */
export const isFull = process.env['LEGATE_FULL'] === '1'
