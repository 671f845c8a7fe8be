// npm test: every check and suite, in order, up to the first failure.
//   --full        the full figures (LEGATE_FULL=1), written to docs/reliability.md when everything passed
//   --only <step> one step, by name

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { writeFigures } from './figures.mjs'

const root = path.resolve(import.meta.dirname, '..')
const figuresPage = path.join(root, 'docs/reliability.md')

const steps = [
  command('lint', 'biome', 'check', '.'),
  command('types', 'tsc', '--noEmit'),
  command('build', 'tsdown', '--log-level', 'warn'),
  suites('architecture', ['house']),
  suites('suites', ['suite', 'alone']),
  suites('crash', ['crash']),
  // Figures are measured once, in the passes above. Of the tests, those that run no node are left out: vitest.config.ts.
  suites('fresh', ['suite', 'alone'], { LEGATE_FRESH: '1', LEGATE_FIGURES: '' }),
  command('package', 'node', 'scripts/package.mjs'),
  command('unused', 'knip', '--no-config-hints'),
  { ...command('mutation', 'node', 'test/mutation/check.mjs'), onlyFull: true },
  { ...command('node24', 'node', 'scripts/node24.mjs'), onlyFull: true },
]

const FRESH_NOTE = `
fresh leaves out tests that run no node in their process, those of stores, and those of other programs and their clients:
src/{base,grant,output,prompt,recipe,store,cli}, test/{attack,cli,files,laws,mcp,model,output,prompt,recipe,types},
test/examples/{demo,docs,readme}. npm run test:full runs them with LEGATE_FRESH=1 too.`

main()

function main() {
  const { values } = parseArgs({ options: { full: { type: 'boolean', default: false }, only: { type: 'string' } } })
  const chosen = steps.filter((step) => (values.only ? step.name === values.only : values.full || !step.onlyFull))
  if (chosen.length === 0) throw new Error(`No step "${values.only}". Steps: ${names(steps)}.`)
  const scratch = mkdtempSync(path.join(tmpdir(), 'legate-test-'))
  try {
    process.exitCode = runAll(chosen, scratch, values.full)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function runAll(chosen, scratch, full) {
  const started = performance.now()
  const figures = path.join(scratch, 'figures')
  const env = { ...process.env, LEGATE_FIGURES: figures, ...(full && { LEGATE_FULL: '1' }) }
  const results = []
  for (const step of chosen) {
    results.push(runStep(step, env, path.join(scratch, `${step.name}.json`)))
    if (results.at(-1).failed > 0) break
  }
  const ok = results.every((result) => result.failed === 0)
  if (full && ok) writeFigures(figuresPage, figures)
  if (!full && chosen.some(({ name }) => name === 'fresh')) console.log(FRESH_NOTE)
  printSkipped(results)
  if (results.length < chosen.length) {
    console.log(`\nNot run, because ${results.at(-1).name} failed: ${names(chosen.slice(results.length))}`)
  }
  console.log(`\n${chosen.length > 1 ? 'everything' : chosen[0].name} took ${seconds(started)}`)
  console.log(
    `${total(results, 'passed')} passed, ${total(results, 'failed')} failed, ${skips(results).length} skipped`,
  )
  return ok ? 0 : 1
}

function runStep(step, env, report) {
  const started = performance.now()
  console.log(`\n=== ${step.name}`)
  const { status, error } = spawnSync(step.program, step.args, {
    cwd: root,
    env: { ...env, ...step.env, PATH: withLocalPrograms(env.PATH), LEGATE_REPORT: report },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (error) console.error(error.message)
  console.log(`=== ${step.name}: ${status === 0 ? 'ok' : 'FAILED'} in ${seconds(started)}`)
  return { name: step.name, ...tally(step, status, report) }
}

/** A command counts as one check. A suite counts its tests, and a failure outside of any test counts as one more. */
function tally(step, status, report) {
  const failedAnyway = status === 0 ? 0 : 1
  if (!step.isSuite) return { passed: 1 - failedAnyway, failed: failedAnyway, skipped: [] }
  const { passed, failed, skipped } = readReport(report)
  return { passed, failed: Math.max(failed, failedAnyway), skipped }
}

function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return { passed: 0, failed: 1, skipped: [] }
  }
}

function printSkipped(results) {
  if (skips(results).length === 0) return
  console.log('\nSkipped:')
  for (const { name, skipped } of results) {
    for (const skip of skipped) console.log(`  ${name}: ${skip.file} > ${skip.test}: ${skip.reason}`)
  }
}

function command(name, program, ...args) {
  return { name, program, args, env: {}, isSuite: false }
}

function suites(name, projects, env = {}) {
  const args = ['run', '--reporter=default', '--reporter=./scripts/reporter.mjs']
  return {
    name,
    program: 'vitest',
    args: [...args, ...projects.flatMap((project) => ['--project', project])],
    env,
    isSuite: true,
  }
}

function skips(results) {
  return results.flatMap((result) => result.skipped)
}

function total(results, key) {
  return results.reduce((sum, result) => sum + result[key], 0)
}

function names(list) {
  return list.map((step) => step.name).join(', ')
}

function seconds(started) {
  return `${((performance.now() - started) / 1000).toFixed(1)} s`
}

function withLocalPrograms(searchPath) {
  return [path.join(root, 'node_modules/.bin'), searchPath].join(path.delimiter)
}
