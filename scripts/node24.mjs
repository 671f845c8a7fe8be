// What depends on Node, again on the newest one: the contract of models with the newest line of providers, which need Node 22 while
// we run on 20; and what a delegation may cost there (bench/speed), on the SQLite that Node itself has.
// Node and the providers come from the npm registry into a folder of their own; without it the step is skipped.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const packages = {
  node: '24',
  '@ai-sdk/openai': '4.0.114',
  '@ai-sdk/anthropic': '4.0.102',
  '@ai-sdk/google': '4.0.117',
}
const root = path.resolve(import.meta.dirname, '..')

const folder = mkdtempSync(path.join(tmpdir(), 'legate-node24-'))
try {
  process.exitCode = run()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function run() {
  const problem = install()
  if (problem !== undefined) {
    console.log(
      `SKIPPED: the contract tests on Node 24 with providers of the v4 line, and what a delegation may cost there. ${problem}`,
    )
    return 0
  }
  const node = path.join(folder, 'node_modules/.bin/node')
  console.log(
    `Node ${capture(node, ['--version'])}, ${Object.entries(packages)
      .map((entry) => entry.join('@'))
      .join(', ')}`,
  )
  const env = { ...process.env, LEGATE_PROVIDERS: folder }
  const on24 = (...args) => spawnSync(node, args, { cwd: root, env, stdio: 'inherit' }).status ?? 1
  const vitest = path.join(root, 'node_modules/vitest/vitest.mjs')
  return on24(vitest, 'run', '--project', 'suite', 'test/model/contract.test.ts') || on24('bench/speed/check.mjs')
}

/** What went wrong, or undefined. */
function install() {
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: packages }))
  const npm = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error', '--fetch-retries=1']
  const { status, stderr, error } = spawnSync('npm', npm, { cwd: folder, encoding: 'utf8', timeout: 180_000 })
  if (error) return `npm did not run: ${error.message}`
  if (status === 0) return undefined
  const why = stderr.split('\n').find((line) => /npm (error|ERR!)/.test(line)) ?? `npm ended with ${status}`
  return `The npm registry gave no packages: ${why}`
}

function capture(program, args) {
  return spawnSync(program, args, { encoding: 'utf8' }).stdout.trim()
}
