import * as crypto from 'node:crypto'

/** The SHA-256 of the text's UTF-8 bytes, as 64 lower-case hex characters. */
export const sha256: (text: string) => string =
  typeof crypto.hash === 'function'
    ? (text) => crypto.hash('sha256', text, 'hex')
    : (text) => crypto.createHash('sha256').update(text, 'utf8').digest('hex')
