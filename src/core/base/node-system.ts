/**
 * Node's own modules without an import by name. A named import evaluates every export of the module, which for `node:fs` loads
 * all kinds of streams. Use this in parts of the package that load with its root.
 */
export const nodeFs: typeof import('node:fs') = process.getBuiltinModule('node:fs')

export function nodeOs(): typeof import('node:os') {
  return process.getBuiltinModule('node:os')
}

export function nodePath(): typeof import('node:path') {
  return process.getBuiltinModule('node:path')
}
