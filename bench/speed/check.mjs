// npm run speed [-- --write]: does a delegation cost more than it may? The limits are limits.json beside this file. They fall when
// the code gets better: --write puts the figures of this run there, where they are lower. --write --reason 'import.kB: what for' also
// raises the limit that it names. A limit that is raised in any way needs its reason (test/speed-limits.test.ts).
//
//   calls      functions of ours that are called for a delegation (W1) and for a chain of eight (W3): exact
//   bytes      that are allocated for them: within 2 %
//   promoted   bytes of a chain that survive collections although nobody needs them: V8 took a short-lived object for a long-lived one
//   discarded  functions whose compiled code a full collection throws away: a short-lived class of which nothing keeps an object
//   ratio      CPU time of a delegation, in times of a fixed loop in the same process: shapes, spreads, inlining
//   sqlite     transactions, statements and bytes of the log of a delegation, and functions that are discarded as above
//   postgres   statements, bytes of the log and blocks read for a delegation, and blocks read for a child of a wide tree
//   server     bytes that are sent and allocated for a frame that a reader gets
//   import     files and kB that `import 'legate'` reads
//
// All but the ratio are the same on a busy machine, or nearly so. Noise makes a figure larger only, so the least of three tries counts.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'

const { values: options } = parseArgs({
  options: {
    write: { type: 'boolean', default: false },
    only: { type: 'string' },
    reason: { type: 'string', multiple: true, default: [] },
  },
})

const here = import.meta.dirname
const file = path.join(here, 'limits.json')
const QUIET = ['--single-threaded', '--no-warnings', '--expose-gc']
const NO_COLLECTION = ['--min-semi-space-size=128', '--max-semi-space-size=128']
const TRIES = 3

/** Each gives one or several figures by name. */
const FIGURES = {
  calls: () => ({ 'calls.w1': ask('calls', 'w1'), 'calls.w3': ask('calls', 'w3') }),
  bytes: () => ({ 'bytes.w1': ask('bytes', 'w1', NO_COLLECTION), 'bytes.w3': ask('bytes', 'w3', NO_COLLECTION) }),
  promoted: () => ({ 'promoted.w3': promotedBy(run('promoted', 'w3', ['--trace-gc', '--trace-gc-nvp'])) }),
  discarded: () => ({
    'discarded.w1': discardedBy(run('discarded', 'w1', ['--trace-deopt'])),
    'discarded.w5': discardedBy(run('discarded', 'w5', ['--trace-deopt'])),
  }),
  ratio: () => ({ 'ratio.w1': ask('ratio', 'w1') }),
  sqlite: onSqlite,
  postgres: () => named('postgres', ask('postgres', 'w1', [], { LEGATE_STORE: 'postgres' })),
  server: () => named('server', ask('server', 'w1', NO_COLLECTION)),
  import: imported,
}

/** What a figure may vary by, on one build. */
const SPREAD = {
  bytes: 1.03,
  promoted: 1.3,
  discarded: 1.3,
  ratio: 1.15,
  'sqlite.log': 1.02,
  'sqlite.discarded': 1.3,
  'postgres.log': 1.02,
  'postgres.blocks': 1.15,
  'postgres.blocks.wide': 1.1,
  'server.bytes': 1.1,
}

main()

function main() {
  const all = JSON.parse(readFileSync(file, 'utf8'))
  const major = process.versions.node.split('.')[0]
  const limits = all.limits[major]
  if (limits === undefined && !options.write) {
    console.log(`skipped: there are no limits for Node ${major}, because V8 decides most of these figures`)
    console.log('0 passed, 0 failed')
    return
  }
  const groups = Object.entries(FIGURES).filter(([name]) => options.only?.split(',').includes(name) ?? true)
  if (options.write) return write(all, major, Object.assign({}, ...groups.map(([, measure]) => measure())))
  const results = groups.flatMap(([, measure]) => compare(measure, limits))
  for (const { name, value, isOver } of results) {
    const mark = isOver ? '   TOO MUCH' : ''
    console.log(`${name.padEnd(20)} ${String(value).padStart(9)}   at most ${limits[name]}${mark}`)
  }
  const failed = results.filter(({ isOver }) => isOver).length
  console.log(`${results.length - failed} passed, ${failed} failed`)
  if (failed > 0) process.exitCode = 1
}

function compare(measure, limits) {
  const least = measure()
  const isOver = (name) => !(least[name] <= limits[name])
  const names = Object.keys(least)
  for (let tries = 1; names.some(isOver) && tries < TRIES; tries++) {
    for (const [name, value] of Object.entries(measure())) least[name] = Math.min(least[name], value)
  }
  return names.map((name) => ({ name, value: least[name], isOver: isOver(name) }))
}

/** A limit that is there falls. It rises only where a reason names it. */
function write(all, major, figures) {
  const limits = { ...all.limits[major] }
  const raised = options.reason.map((reason) => reason.split(': ', 1)[0])
  for (const [name, value] of Object.entries(figures)) {
    const spread = SPREAD[name] ?? SPREAD[name.split('.')[0]] ?? 1
    const limit = Math.ceil(value * spread * 1_000) / 1_000
    const rounded = limit >= 10 ? Math.ceil(limit) : limit
    limits[name] = raised.includes(name) ? rounded : Math.min(limits[name] ?? Number.POSITIVE_INFINITY, rounded)
    console.log(`${name.padEnd(20)} ${value}, at most ${limits[name]}`)
  }
  const reasons = [...all.reasons.filter((reason) => !raised.includes(reason.split(': ', 1)[0])), ...options.reason]
  writeFileSync(file, `${JSON.stringify({ reasons, limits: { ...all.limits, [major]: limits } }, null, 2)}\n`)
}

function run(figure, workload, flags = [], env = {}) {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [...QUIET, ...flags, path.join(here, 'measure.mjs'), figure, workload],
    { encoding: 'utf8', maxBuffer: 2 ** 28, env: { ...process.env, LEGATE_STORE: 'memory', ...env } },
  )
  if (status !== 0) throw new Error(`${figure} of ${workload} could not be measured: ${stderr}`)
  return stdout
}

function ask(figure, workload, flags, env) {
  return JSON.parse(run(figure, workload, flags, env).trim().split('\n').at(-1))
}

function promotedBy(trace) {
  const times = Number(trace.trim().split('\n').at(-1))
  const bytes = [...trace.matchAll(/ promoted=(\d+)/g)].reduce((sum, [, found]) => sum + Number(found), 0)
  return Math.round(bytes / times)
}

/** From the third collection on: the first ones also discard what only the start needed. */
function discardedBy(trace) {
  const parts = trace.split('@@collected').slice(3)
  return parts.reduce((sum, part) => sum + (part.match(/reason: (?:embedded )?weak objects/g)?.length ?? 0), 0)
}

function onSqlite() {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-speed-'))
  try {
    const env = { LEGATE_STORE: 'sqlite', BENCH_TMP: folder }
    const discarded = discardedBy(run('discarded', 'w1', ['--trace-deopt'], env))
    return named('sqlite', { ...ask('sqlite', 'w1', [], env), discarded })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function named(group, figures) {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${group}.${name}`, value]))
}

function imported() {
  const found = ask('imported', 'w1')
  return { 'import.files': found.files, 'import.kB': found.kilobytes }
}
