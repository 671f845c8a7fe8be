// npm test: every check and suite, in order, up to the first failure. Steps of one stage run side by side.
//   --full        the full figures (LEGATE_FULL=1), written to docs/reliability.md when everything passed
//   --only <step> one step, by name

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { writeFigures } from './figures.mjs'

const root = path.resolve(import.meta.dirname, '..')
const figuresPage = path.join(root, 'docs/reliability.md')

const stages = [
  [
    command('lint', 'biome', 'check', '.'),
    command('types', 'tsc', '--noEmit'),
    command('build', 'tsdown', '--log-level', 'warn'),
  ],
  [
    suites('architecture', ['house']),
    command('package', 'node', 'scripts/package.mjs'),
    command('unused', 'knip', '--no-config-hints'),
  ],
  [{ ...suites('suites', ['crash', 'suite', 'alone']), isLastInFull: true }],
  // Large figures are reached once, in that pass. Of the tests, those that run no node are left out: vitest.config.ts.
  [suites('fresh', ['suite', 'alone'], { LEGATE_FRESH: '1', LEGATE_FIGURES: '', LEGATE_FULL: '' })],
  [{ ...command('mutation', 'node', 'test/mutation/check.mjs'), onlyFull: true }],
  [{ ...command('node24', 'node', 'scripts/node24.mjs'), onlyFull: true }],
]

const FRESH_NOTE = `
fresh leaves out tests that run no node in their process, those of stores, and those of other programs and their clients:
src/{base,grant,output,prompt,recipe,store,cli}, test/{attack,cli,files,laws,mcp,model,output,prompt,recipe,types},
test/examples/{demo,docs,examples,readme}, test/graph/{audit,gating,proof,reading,spawn,states}, test/history/random. npm run test:full runs them with LEGATE_FRESH=1 too.`

await main()

async function main() {
  const { values } = parseArgs({ options: { full: { type: 'boolean', default: false }, only: { type: 'string' } } })
  const isChosen = (step) => (values.only ? step.name === values.only : values.full || !step.onlyFull)
  const ordered = values.full ? stages.toSorted(longestLast) : stages
  const chosen = ordered.map((stage) => stage.filter(isChosen)).filter((stage) => stage.length > 0)
  if (chosen.length === 0) throw new Error(`No step "${values.only}". Steps: ${names(stages.flat())}.`)
  const scratch = mkdtempSync(path.join(tmpdir(), 'legate-test-'))
  try {
    process.exitCode = await runAll(chosen, scratch, values.full)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** With the full figures the suites take more than an hour: what fails within minutes is to be known before. */
function longestLast([one], [other]) {
  return Number(one.isLastInFull === true) - Number(other.isLastInFull === true)
}

async function runAll(chosen, scratch, full) {
  const started = performance.now()
  const figures = path.join(scratch, 'figures')
  const env = { ...process.env, LEGATE_FIGURES: figures, ...(full && { LEGATE_FULL: '1', LEGATE_FRESH_ALL: '1' }) }
  const steps = chosen.flat()
  const results = []
  for (const stage of chosen) {
    const isAlone = stage.length === 1
    const running = stage.map((step) => runStep({ ...step, isAlone }, env, path.join(scratch, `${step.name}.json`)))
    results.push(...(await Promise.all(running)))
    if (results.some(({ failed }) => failed > 0)) break
  }
  const failed = results.filter((result) => result.failed > 0)
  const ok = failed.length === 0
  if (full && ok) writeFigures(figuresPage, figures)
  if (!full && steps.some(({ name }) => name === 'fresh')) console.log(FRESH_NOTE)
  printSkipped(results)
  if (results.length < steps.length) {
    console.log(`\nNot run, because of ${names(failed)}: ${names(steps.slice(results.length))}`)
  }
  console.log(`\n${steps.length > 1 ? 'everything' : steps[0].name} took ${seconds(started)}`)
  console.log(
    `${total(results, 'passed')} passed, ${total(results, 'failed')} failed, ${skips(results).length} skipped`,
  )
  return ok ? 0 : 1
}

/** What a step prints is seen as it comes, or in one piece when others run beside it. */
async function runStep(step, env, report) {
  const started = performance.now()
  const output = step.isAlone ? 'inherit' : 'pipe'
  if (step.isAlone) console.log(`\n=== ${step.name}`)
  const child = spawn(step.program, [...step.args, ...(step.isSuite ? sharedModules(report) : [])], {
    cwd: root,
    env: { ...env, ...step.env, PATH: withLocalPrograms(env.PATH), LEGATE_REPORT: report },
    stdio: ['ignore', output, output],
  })
  const printed = []
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => printed.push(data))
  const [status] = await once(child, 'close').catch((error) => {
    printed.push(Buffer.from(`${error.message}\n`))
    return [1]
  })
  if (!step.isAlone) console.log(`\n=== ${step.name}`)
  process.stdout.write(Buffer.concat(printed))
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

/** What one suite has made of the sources, the next ones use. */
function sharedModules(report) {
  const folder = path.join(path.dirname(report), 'modules')
  return ['--experimental.fsModuleCache', `--experimental.fsModuleCachePath=${folder}`]
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
