// Hashes: SHA-256 of texts, as hex or short.
//
// Owns:      the one way to hash, and the loading of `node:crypto`.
// Called by: stores chain commits and check rows, agents have a hash of their definition, approvals one of their request.
// Must stay true:
//   - Hashes are in stored rows and files: the same text gives the same hash in every version.
//   - Importing the package does not load the module.

/** The SHA-256 of the text's UTF-8 bytes, as 64 lower-case hex characters. */
export function sha256(text: string): string {
  return hash(text, 'hex')
}

/** The SHA-256 in 43 characters of base64url, for hashes that a store keeps by the thousand. */
export function shortSha256(text: string): string {
  return hash(text, 'base64url')
}

function hash(text: string, encoding: 'hex' | 'base64url'): string {
  const crypto = nodeCrypto()
  if (typeof crypto.hash === 'function') return crypto.hash('sha256', text, encoding)
  return crypto.createHash('sha256').update(text, 'utf8').digest(encoding)
}

type Crypto = typeof import('node:crypto')

let loaded: Crypto | undefined

/** Loads the module on first use: loading it at once would add a tenth to the cost of importing the package. */
export function nodeCrypto(): Crypto {
  loaded ??= process.getBuiltinModule('node:crypto')
  return loaded
}
