// Programs of others against ours: the conformance suite and the inspector of MCP, acpx, which is a client of ACP, the client of
// A2A 0.3, and the code by which Phoenix and Langfuse read traces. Some need Node 22, and we run on 20: Node and all of them come from the npm registry into a
// folder of their own. Without the registry the step is skipped.
// LEGATE_PROTOCOLS names a folder that has them.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const packages = {
  node: '24',
  '@modelcontextprotocol/conformance': '0.2.0-alpha.12',
  '@modelcontextprotocol/inspector': '2.12.0',
  acpx: '0.19.1',
  '@arizeai/openinference-genai': '0.3.10',
  '@langfuse/otel': '5.11.1',
  '@a2a-js/sdk': '0.3.14',
}
const tests = ['mcp/conformance', 'mcp/inspector', 'acp/acpx', 'otel/converters', 'a2a/older'].map(
  (name) => `test/surfaces/${name}.test.ts`,
)
const root = path.resolve(import.meta.dirname, '..')
const given = process.env.LEGATE_PROTOCOLS

const folder = given ?? mkdtempSync(path.join(tmpdir(), 'legate-protocols-'))
try {
  const problem = given === undefined ? install() : undefined
  if (problem === undefined) process.exitCode = run()
  else console.log(`SKIPPED: programs of others that speak MCP, ACP and A2A, or read traces. ${problem}`)
} finally {
  if (given === undefined) rmSync(folder, { recursive: true, force: true })
}

function run() {
  const vitest = path.join(root, 'node_modules/vitest/vitest.mjs')
  const args = [vitest, 'run', '--project', 'suite', ...tests]
  const env = { ...process.env, LEGATE_PROTOCOLS: folder }
  return spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).status ?? 1
}

/** What went wrong, or undefined. */
function install() {
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: packages }))
  const npm = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error', '--fetch-retries=1']
  const { status, stderr, error } = spawnSync('npm', npm, { cwd: folder, encoding: 'utf8', timeout: 300_000 })
  if (error) return `npm did not run: ${error.message}`
  return status === 0 ? undefined : `The npm registry gave no packages: ${stderr.split('\n')[0]}`
}
