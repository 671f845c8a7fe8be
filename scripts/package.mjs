// Packs what would be published and lets publint and attw look at the very file. Needs a built dist.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '..')
const scratch = mkdtempSync(path.join(tmpdir(), 'legate-pack-'))
try {
  const packed = run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', scratch])
  const { filename, entryCount, unpackedSize } = JSON.parse(packed)[0]
  run('publint', ['run', path.join(scratch, filename), '--strict'])
  run('attw', [path.join(scratch, filename), '--profile', 'esm-only', '--no-definitely-typed'])
  console.log(`${filename}: ${entryCount} files, ${Math.round(unpackedSize / 1024)} kB; publint and attw found nothing`)
} finally {
  rmSync(scratch, { recursive: true, force: true })
}

/** Returns what the program printed; prints it all and throws where the program failed. */
function run(program, args) {
  const env = { ...process.env, PATH: `${path.join(root, 'node_modules/.bin')}${path.delimiter}${process.env.PATH}` }
  const result = spawnSync(program, args, { cwd: root, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  if (result.status === 0) return result.stdout
  console.error(result.stdout, result.stderr, result.error ?? '')
  throw new Error(`${program} failed`)
}
