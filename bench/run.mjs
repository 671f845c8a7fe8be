#!/usr/bin/env node
// npm run bench [-- --workloads w1,w2 --peers pi,ai --rounds 5 --write]
// Runs Legate side by side with other frameworks, every sample in a fresh process. Needs the benchmark folder: the one
// beside this repository, or LEGATE_BENCH. It is copied to a temporary folder, where the peers are installed once.
// --write puts the tables into bench/RESULTS.md. --check fails where a goal of bench/goals.json is missed by more than
// a tenth, or was not measured.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { compareWithGoals } from './goals.mjs'

const here = import.meta.dirname
const { values: options } = parseArgs({
  options: {
    workloads: { type: 'string', default: 'w1,w2,w3,w4,w5,w6,w7' },
    peers: { type: 'string', default: 'handwritten,pi,ai' },
    rounds: { type: 'string', default: '3' },
    write: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  },
})

main()

function main() {
  const source = process.env.LEGATE_BENCH ?? path.join(here, '../../shared/bench')
  if (!existsSync(path.join(source, 'run.mjs'))) {
    console.error(`There is no benchmark at ${source}. Set LEGATE_BENCH to its folder.`)
    process.exit(2)
  }
  const peers = options.peers.split(',')
  const bench = copyOf(source)
  for (const peer of options.workloads.includes('w6') ? [...peers, 'json'] : peers) install(bench, peer)
  // Two runs at a time must not read each other's samples.
  const out = path.join(bench, 'results', `legate-${process.pid}.json`)
  const names = [...peers, 'legate', 'legate-sqlite'].join(',')
  run(bench, ['run.mjs', '--workloads', options.workloads, '--peers', names, '--rounds', options.rounds, '--out', out])
  const report = run(bench, ['report.mjs', out], 'pipe')
  console.log(report)
  if (options.write) write(report)
  if (options.check) check(JSON.parse(readFileSync(out, 'utf8')).samples)
}

function check(samples) {
  const { lines, missed } = compareWithGoals(samples, options.workloads.split(','))
  console.log(lines.join('\n'))
  console.log(`${lines.length - missed} met, ${missed} missed`)
  if (missed > 0) process.exitCode = 1
}

/** The folder beside the repository may be read-only. */
function copyOf(source) {
  const bench = path.join(tmpdir(), 'legate-bench')
  if (!existsSync(bench)) {
    mkdirSync(bench, { recursive: true })
    cpSync(source, bench, { recursive: true })
    spawnSync('chmod', ['-R', 'u+w', bench])
  }
  return bench
}

function install(bench, peer) {
  const folder = path.join(bench, 'peers', peer)
  if (!existsSync(folder) || existsSync(path.join(folder, 'node_modules'))) return
  console.log(`installing ${peer} ...`)
  const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: 'inherit',
  })
  if (done.status !== 0) process.exit(done.status ?? 1)
}

function run(bench, args, stdout = 'inherit') {
  const env = { ...process.env, LEGATE_ADAPTER: path.join(here, 'adapter.mjs') }
  const done = spawnSync(process.execPath, args, { cwd: bench, env, stdio: ['ignore', stdout, 'inherit'] })
  if (done.status !== 0) process.exit(done.status ?? 1)
  return done.stdout?.toString() ?? ''
}

function write(report) {
  const file = path.join(here, 'RESULTS.md')
  const marks = ['<!-- tables:start -->', '<!-- tables:end -->']
  const [before, rest] = readFileSync(file, 'utf8').split(marks[0])
  const after = rest?.split(marks[1])[1]
  if (after === undefined) throw new Error(`${file} lacks ${marks.join(' and ')}`)
  const where = `${new Date().toISOString().slice(0, 10)}, ${cpus()[0]?.model.trim()}, ${cpus().length} cores, Node ${process.version}`
  const tables = report.slice(report.indexOf('###')).trim()
  writeFileSync(file, `${before}${marks[0]}\n${where}\n\n${tables}\n${marks[1]}${after}`)
}
