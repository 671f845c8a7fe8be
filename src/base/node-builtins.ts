/**
 * Node's own modules, without an import by name: that makes all that a module exports, which for `node:fs` loads every kind
 * of stream. For the parts of the package that are loaded with its root.
 */
export const nodeFs: typeof import('node:fs') = process.getBuiltinModule('node:fs')

export function nodeOs(): typeof import('node:os') {
  return process.getBuiltinModule('node:os')
}

type Crypto = typeof import('node:crypto')

let loaded: Crypto | undefined

/** Loaded when it is used first: it would be a tenth of what importing the package costs. */
export function nodeCrypto(): Crypto {
  loaded ??= process.getBuiltinModule('node:crypto')
  return loaded
}
