/**
 * Node's own modules, without an import by name: that makes all that a module exports, which for `node:fs` loads every kind
 * of stream. For the parts of the package that are loaded with its root.
 */
export const nodeFs: typeof import('node:fs') = process.getBuiltinModule('node:fs')

export function nodeOs(): typeof import('node:os') {
  return process.getBuiltinModule('node:os')
}
