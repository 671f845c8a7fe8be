// Packs what would be published and lets publint and attw look at the very file; says what npm would install. Needs a built dist.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { installed } from './installed.mjs'

/** With Legate itself. Raise them only with a reason: THIRD-PARTY.md says why each package is there. */
const MOST_MB = 37
const MOST_PACKAGES = 16

const root = path.resolve(import.meta.dirname, '..')
const scratch = mkdtempSync(path.join(tmpdir(), 'legate-pack-'))
try {
  const packed = run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', scratch])
  const { filename, entryCount, unpackedSize } = JSON.parse(packed)[0]
  run('publint', ['run', path.join(scratch, filename), '--strict'])
  run('attw', [path.join(scratch, filename), '--profile', 'esm-only', '--no-definitely-typed'])
  console.log(`${filename}: ${entryCount} files, ${Math.round(unpackedSize / 1024)} kB; publint and attw found nothing`)
  checkSize(unpackedSize)
} finally {
  rmSync(scratch, { recursive: true, force: true })
}

/** Throws where more is installed than may be. */
function checkSize(own) {
  const found = installed()
  const bytes = found.reduce((sum, dependency) => sum + dependency.bytes, own)
  const count = found.reduce((sum, { places }) => sum + places.length, 1)
  const said = `npm installs ${(bytes / 1e6).toFixed(1)} MB in ${count} packages`
  if (bytes > MOST_MB * 1e6 || count > MOST_PACKAGES) {
    throw new Error(`${said}, and at most ${MOST_MB} MB in ${MOST_PACKAGES} are allowed`)
  }
  console.log(`${said}, of ${MOST_MB} MB in ${MOST_PACKAGES} that are allowed`)
}

/** Returns what the program printed; prints it all and throws where the program failed. */
function run(program, args) {
  const env = { ...process.env, PATH: `${path.join(root, 'node_modules/.bin')}${path.delimiter}${process.env.PATH}` }
  const result = spawnSync(program, args, { cwd: root, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  if (result.status === 0) return result.stdout
  console.error(result.stdout, result.stderr, result.error ?? '')
  throw new Error(`${program} failed`)
}
