// The official conformance suite of MCP against our server. It needs Node 22, we run on 20: Node and the suite come from the npm
// registry into a folder of their own; without it the step is skipped. LEGATE_CONFORMANCE names a folder that has both.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const packages = { node: '24', '@modelcontextprotocol/conformance': '0.2.0-alpha.12' }
const root = path.resolve(import.meta.dirname, '..')
const given = process.env.LEGATE_CONFORMANCE

const folder = given ?? mkdtempSync(path.join(tmpdir(), 'legate-conformance-'))
try {
  const problem = given === undefined ? install() : undefined
  if (problem === undefined) process.exitCode = run()
  else console.log(`SKIPPED: the conformance suite of MCP. ${problem}`)
} finally {
  if (given === undefined) rmSync(folder, { recursive: true, force: true })
}

function run() {
  const vitest = path.join(root, 'node_modules/vitest/vitest.mjs')
  const args = [vitest, 'run', '--project', 'suite', 'test/surfaces/mcp/conformance.test.ts']
  const env = { ...process.env, LEGATE_CONFORMANCE: folder }
  return spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).status ?? 1
}

/** What went wrong, or undefined. */
function install() {
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: packages }))
  const npm = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error', '--fetch-retries=1']
  const { status, stderr, error } = spawnSync('npm', npm, { cwd: folder, encoding: 'utf8', timeout: 180_000 })
  if (error) return `npm did not run: ${error.message}`
  return status === 0 ? undefined : `The npm registry gave no packages: ${stderr.split('\n')[0]}`
}
