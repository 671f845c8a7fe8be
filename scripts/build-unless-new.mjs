// Builds dist, unless it is newer than all it is made of, as it is after npm install.

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '..')
const dist = path.join(root, 'dist')
const sources = ['src', 'package.json', 'package-lock.json', 'tsconfig.json', 'tsdown.config.ts']

if (
  existsSync(dist) &&
  Math.min(...times(dist)) > Math.max(...sources.flatMap((name) => times(path.join(root, name))))
) {
  console.log('dist is newer than its sources: it was not built again')
} else {
  process.exitCode = spawnSync('tsdown', ['--log-level', 'warn'], { cwd: root, stdio: 'inherit' }).status ?? 1
}

/** When a file, or each file and folder below a folder, was last changed. A folder changes when a file is taken away. */
function times(name) {
  const entry = statSync(name)
  if (!entry.isDirectory()) return [entry.mtimeMs]
  return [entry.mtimeMs, ...readdirSync(name).flatMap((inside) => times(path.join(name, inside)))]
}
