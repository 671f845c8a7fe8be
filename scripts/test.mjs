// npm test: every check and suite, in order, up to the first failure. Steps of one stage run side by side.
//   --full        the full figures (LEGATE_FULL=1), written to docs/reliability.md when everything passed
//   --only <step> one step, by name

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { writeFigures } from './figures.mjs'

const root = path.resolve(import.meta.dirname, '..')
const figuresPage = path.join(root, 'docs/reliability.md')

const checks = [
  [
    command('lint', 'biome', 'check', '.'),
    command('types', 'tsc', '--noEmit'),
    command('types of the page', 'tsc', '--noEmit', '-p', 'web'),
    command('build', 'node', 'scripts/build-unless-new.mjs'),
  ],
  [
    suites('architecture', ['house']),
    command('package', 'node', 'scripts/package.mjs'),
    command('unused', 'knip', '--no-config-hints'),
    command('figures of the house', 'node', 'scripts/house.mjs', '--check'),
  ],
]
const SUITES = ['crash', 'postgres', 'suite', 'alone']
const FRESH = 'fresh'

/** By itself: it measures how fast a page answers, and others would be measured with it. */
const browser = suites('browser', ['page', 'browser'])

/** By itself too, and last: a ratio of times is as good as the machine is quiet. */
const speed = command('speed', 'node', 'bench/speed/check.mjs')

/** Together, so that no processor waits for the other at the end of the first. */
const quick = [...checks, [browser], [suites('suites', [...SUITES, FRESH])], [speed]]

/** The suites take more than an hour then, and come last: what fails within minutes is to be known before. */
const full = [
  ...checks,
  [browser],
  [suites('fresh', [FRESH, 'fresh alone'])],
  [command('mutation', 'node', 'test/mutation/check.mjs')],
  [command('node24', 'node', 'scripts/node24.mjs')],
  [command('protocols', 'node', 'scripts/protocols.mjs')],
  [suites('suites', SUITES)],
  [speed],
]

/** No test leaves this machine. Node would read the certificates at every start, which takes longer than all else of it. */
const OFFLINE = { NODE_EXTRA_CA_CERTS: undefined }

const ENOUGH_BYTES = 4 * 2 ** 30

const FRESH_NOTE = `
fresh takes test/{agent,conversation,delegation,engine,extension,grant}, without what is large there or of other processes:
test/engine/{call-limits,cancel-dead,cancel-random,full-disk,lots,settle-killed,turns-of-owners}, test/conversation/history/{random,usage,whole},
test/conversation/live/{buffer,law}. Where a test is for every store, fresh takes SQLite. npm run test:full leaves nothing out.`

await main()

async function main() {
  const { values } = parseArgs({ options: { full: { type: 'boolean', default: false }, only: { type: 'string' } } })
  const stages = values.full ? full : quick
  const isChosen = (step) => values.only === undefined || step.name === values.only
  const chosen = stages.map((stage) => stage.filter(isChosen)).filter((stage) => stage.length > 0)
  if (chosen.length === 0) throw new Error(`No step "${values.only}". Steps: ${names(stages.flat())}.`)
  const scratch = mkdtempSync(path.join(values.full ? tmpdir() : quickFolder(), 'legate-test-'))
  // Some tests run as another user, who must find what lies in it.
  chmodSync(scratch, 0o755)
  // Also when it is stopped: what lies there takes memory.
  process.once('exit', () => removeFolder(scratch))
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  process.exitCode = await runAll(chosen, scratch, values.full)
}

async function runAll(chosen, scratch, isFull) {
  const started = performance.now()
  const figures = path.join(scratch, 'figures')
  const env = { ...process.env, LEGATE_FIGURES: figures, ...(isFull ? { LEGATE_FULL: '1' } : { TMPDIR: scratch }) }
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
  if (isFull && ok) writeFigures(figuresPage, figures)
  if (!isFull && steps.some(({ name }) => name === 'suites')) console.log(FRESH_NOTE)
  printTests('Skipped:', skips(results))
  printTests('Needed a second try:', retries(results))
  if (results.length < steps.length) {
    console.log(`\nNot run, because of ${names(failed)}: ${names(steps.slice(results.length))}`)
  }
  console.log(`\n${steps.length > 1 ? 'everything' : steps[0].name} took ${seconds(started)}`)
  console.log(summary(results))
  return ok ? 0 : 1
}

/** What cannot be removed stays: it says nothing about the tests. */
function removeFolder(folder) {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch (error) {
    console.error(`${folder} is left: ${error.message}`)
  }
}

/**
 * Where tests make their stores and files. A process that is killed loses as little of a file in memory as of one on a disk, and
 * nobody waits for the disk; the full figures are made on a disk.
 */
function quickFolder() {
  const inMemory = '/dev/shm'
  if (!existsSync(inMemory)) return tmpdir()
  const { bavail, bsize } = statfsSync(inMemory)
  return bavail * bsize > ENOUGH_BYTES ? inMemory : tmpdir()
}

/** What a step prints is seen as it comes, or in one piece when others run beside it. */
async function runStep(step, env, report) {
  const started = performance.now()
  const output = step.isAlone ? 'inherit' : 'pipe'
  if (step.isAlone) console.log(`\n=== ${step.name}`)
  const child = spawn(step.program, [...step.args, ...(step.isSuite ? sharedModules(report) : [])], {
    cwd: root,
    env: { ...env, ...(step.isSuite && OFFLINE), PATH: withLocalPrograms(env.PATH), LEGATE_REPORT: report },
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
  if (!step.isSuite) return { passed: 1 - failedAnyway, failed: failedAnyway, skipped: [], triedAgain: [] }
  const { passed, failed, skipped, triedAgain } = readReport(report)
  return { passed, failed: Math.max(failed, failedAnyway), skipped, triedAgain }
}

function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return { passed: 0, failed: 1, skipped: [], triedAgain: [] }
  }
}

function printTests(title, tests) {
  if (tests.length === 0) return
  console.log(`\n${title}`)
  for (const { project, file, test, reason } of tests) console.log(`  ${project}: ${file} > ${test}: ${reason}`)
}

function summary(results) {
  const again = retries(results).length
  const counted = `${total(results, 'passed')} passed, ${total(results, 'failed')} failed, ${skips(results).length} skipped`
  return again === 0 ? counted : `${counted}, ${again} needed a second try`
}

function command(name, program, ...args) {
  return { name, program, args, isSuite: false }
}

function suites(name, projects) {
  const args = ['run', '--reporter=default', '--reporter=./scripts/reporter.mjs']
  return {
    name,
    program: 'vitest',
    args: [...args, ...projects.flatMap((project) => ['--project', project])],
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

function retries(results) {
  return results.flatMap((result) => result.triedAgain)
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
