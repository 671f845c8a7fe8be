// Builds the inspector into dist/web: the files that the server sends, and file.json.gz, which
// `legate export --html` writes into one.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { gzipSync } from 'node:zlib'

const root = path.resolve(import.meta.dirname, '..')
const file = path.join(root, 'dist/web-file')
const vite = path.join(root, 'node_modules/.bin/vite')

build({})
build({ LEGATE_WEB: 'file' })
keepFile()

function build(env) {
  const { status } = spawnSync(vite, ['build', 'web'], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
}

/** Packed, because it says again what the other files say. */
function keepFile() {
  const script = readFileSync(path.join(file, 'page.js'), 'utf8')
  const sheet = path.join(file, 'page.css')
  const style = existsSync(sheet) ? readFileSync(sheet, 'utf8') : ''
  const folder = path.join(root, 'dist/web')
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'file.json.gz'), gzipSync(JSON.stringify({ script, style }), { level: 9 }))
  rmSync(file, { recursive: true })
}
