// A program and Legate as a bundle, alone in a folder.

import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { build } from 'vite'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { skipUnlessBuilt } from '../cli/support/cli.ts'
import { tempFolder } from '../support/temp-folder.ts'

const ROOT = path.join(import.meta.dirname, '../..')

let folder = ''

beforeEach(skipUnlessBuilt)

beforeAll(async () => {
  folder = tempFolder(afterAll)
  const entry = path.join(import.meta.dirname, 'programs/bundled.mjs')
  await build({
    configFile: false,
    logLevel: 'silent',
    ssr: { noExternal: true },
    build: {
      ssr: entry,
      outDir: folder,
      emptyOutDir: false,
      rolldownOptions: { output: { entryFileNames: 'app.mjs' } },
    },
  })
})

async function run(args: readonly string[]) {
  const env = { ...process.env, LEGATE_SQLITE_DRIVER: 'libsql', NODE_PATH: '' }
  const ran = promisify(execFile)(process.execPath, ['app.mjs', ...args], { cwd: folder, env, timeout: 30_000 })
  return ran.catch((error: { stdout: string; stderr: string }) => error)
}

test('needs nothing in memory, and serves all but the inspector', async () => {
  const { stdout } = await run([])
  expect(stdout.split('\n')).toEqual(['Hello.', '/v1 200', '/v1/openapi.json 200', '/ 404', ''])
})

test('says what to install for SQLite, and runs with it', async () => {
  const { stderr } = await run(['runs.db'])
  expect(stderr).toMatch(
    /Cannot find module 'libsql'\. Install the package with `npm install libsql`; a bundle cannot hold it, and finds it beside itself\./,
  )
  expect(stderr).toContain('Node 22.13 and newer have SQLite themselves.')

  mkdirSync(path.join(folder, 'node_modules'))
  symlinkSync(path.join(ROOT, 'node_modules/libsql'), path.join(folder, 'node_modules/libsql'))
  expect((await run(['runs.db'])).stdout).toContain('Hello.')
})
