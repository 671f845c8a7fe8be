type Crypto = typeof import('node:crypto')

let loaded: Crypto | undefined

/** Loaded when it is used first: it would be a tenth of what importing the package costs. */
export function nodeCrypto(): Crypto {
  loaded ??= process.getBuiltinModule('node:crypto')
  return loaded
}
