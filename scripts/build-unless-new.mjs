// Builds dist, and dist/web in it, unless they are newer than all they are made of, as they are after npm install.

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '..')
const web = path.join(root, 'dist/web')
const settings = ['package.json', 'package-lock.json', 'tsconfig.json']

// To build dist takes dist/web away: it is built again then.
buildUnlessNew('dist', ['src', 'tsdown.config.ts'], ['tsdown', '--log-level', 'warn'])
buildUnlessNew('dist/web', ['src/server/client', 'web', 'scripts/web.mjs'], ['node', 'scripts/web.mjs'])

function buildUnlessNew(folder, sources, [program, ...args]) {
  if (isNew(path.join(root, folder), [...settings, ...sources])) {
    console.log(`${folder} is newer than its sources: it was not built again`)
    return
  }
  // npm puts the programs of packages on the path; a shell does not.
  const bin = path.join(root, 'node_modules/.bin')
  const env = { ...process.env, PATH: `${bin}${path.delimiter}${process.env.PATH}` }
  const { status, error } = spawnSync(program, args, { cwd: root, env, stdio: 'inherit' })
  if (error !== undefined) throw error
  if (status !== 0) process.exit(status ?? 1)
}

function isNew(folder, sources) {
  // Without the file that is made last a build is not whole.
  if (!existsSync(path.join(folder, folder === web ? 'file.json.gz' : 'index.js'))) return false
  return Math.min(...times(folder)) > Math.max(...sources.flatMap((name) => times(path.join(root, name))))
}

/** When a file, or each file and folder below a folder, was last changed. A folder changes when a file is taken away. */
function times(name) {
  const entry = statSync(name)
  if (!entry.isDirectory()) return [entry.mtimeMs]
  const inside = readdirSync(name).map((one) => path.join(name, one))
  return [entry.mtimeMs, ...inside.filter((one) => one !== web).flatMap(times)]
}
