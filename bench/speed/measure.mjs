// One figure of the speed check, measured in a process of its own: node measure.mjs FIGURE WORKLOAD. It prints a number, or,
// for what the check reads from V8's traces, the traces.

import { readdirSync, statSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { referenceLoop } from './reference.mjs'

const [figure, workload] = process.argv.slice(2)
/** A chain is eight delegations, an answer of W5 has 2,500 deltas. */
const SIZE = { w1: 1, w3: 0.15, w5: 0.004 }[workload]
const FIGURES = { calls, bytes, promoted, discarded, ratio, sqlite, postgres, server, imported }
const print = (value) => process.stdout.write(`${JSON.stringify(value)}\n`, () => process.exit(0))

print(await FIGURES[figure]())

/** Functions of the build that are called each time: exact. */
async function calls() {
  const count = await countCalls()
  const { repeat } = await load()
  await repeat(40)
  await count()
  await repeat(16)
  return Math.round((await count()) / 16)
}

/** Bytes that are allocated each time: nothing is collected meanwhile, and the least of several tries counts. */
async function bytes() {
  const { repeat } = await load()
  await repeat(1_500 * SIZE)
  const times = Math.ceil(208 * SIZE)
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    gc()
    const before = process.memoryUsage().heapUsed
    await repeat(times)
    least = Math.min(least, (process.memoryUsage().heapUsed - before) / times)
  }
  return Math.round(least)
}

/** Its traces say how many bytes survive two collections although nobody needs them. */
async function promoted() {
  const { repeat } = await load()
  await repeat(1_500)
  return 1_500
}

/** Its traces say how many functions lose their compiled code at a full collection. */
async function discarded() {
  const { repeat } = await load()
  for (let round = 0; round < 8; round++) {
    await repeat(workload === 'w5' ? 4 : process.env.LEGATE_STORE === 'sqlite' ? 600 : 1_500)
    await pause()
    gc()
    process.stdout.write('@@collected\n')
  }
  return 8
}

/** CPU time of a delegation, in times of the fixed loop. Both take turns, and of each the lowest three count. */
async function ratio() {
  const { repeat } = await load()
  const reference = referenceLoop(pause)
  await repeat(12_000)
  await reference(6_000)
  const times = { ours: [], fixed: [] }
  for (let round = 0; round < 40; round++) {
    times.ours.push(await cpuOf(repeat))
    times.fixed.push(await cpuOf(reference))
  }
  return Math.round((lowest(times.ours) / lowest(times.fixed)) * 1_000) / 1_000
}

async function cpuOf(work) {
  const from = process.cpuUsage()
  await work(240)
  const { user, system } = process.cpuUsage(from)
  return user + system
}

function lowest(times) {
  const [a, b, c] = times.toSorted((one, other) => one - other)
  return a + b + c
}

/** Transactions and statements of a delegation on SQLite, and the bytes of its log. */
async function sqlite() {
  const counts = countStatements()
  const { repeat } = await load()
  await repeat(40)
  const log = () =>
    sum(
      readdirSync(process.env.BENCH_TMP).filter((name) => name.endsWith('-wal')),
      sizeOf,
    )
  const before = { ...counts, log: log() }
  await repeat(100)
  const of = (name) => Math.round(((name === 'log' ? log() : counts[name]) - before[name]) / 100)
  return { transactions: of('transactions'), statements: of('statements'), log: of('log') }
}

async function postgres() {
  const { measurePostgres } = await import('./postgres.mjs')
  return measurePostgres(async (name) => (await load(name)).repeat)
}

async function server() {
  const { measureServer } = await import('./server.mjs')
  return measureServer()
}

/** The files of the build that importing the package reads. */
async function imported() {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage')
  await import('../../dist/index.js')
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const files = result.map(({ url }) => url).filter((url) => url.includes('/dist/'))
  const bytes = sum(files, (url) => statSync(fileURLToPath(url)).size)
  return { files: files.length, kilobytes: Math.round(bytes / 1_000) }
}

function sizeOf(name) {
  return statSync(path.join(process.env.BENCH_TMP, name)).size
}

function sum(list, amount) {
  return list.reduce((total, one) => total + amount(one), 0)
}

/** Counts what the driver of this Node is asked, whoever asks. */
function countStatements() {
  const counts = { transactions: 0, statements: 0 }
  const note = (sql) => {
    counts.statements++
    if (/^\s*begin/i.test(sql)) counts.transactions++
  }
  const inside = process.getBuiltinModule('node:sqlite')
  const Database = inside?.DatabaseSync ?? createRequire(import.meta.url)('libsql')
  const { prepare, exec } = Database.prototype
  Database.prototype.exec = function (sql) {
    note(sql)
    return exec.call(this, sql)
  }
  Database.prototype.prepare = function (sql) {
    const statement = prepare.call(this, sql)
    for (const name of ['run', 'get', 'all', 'iterate']) {
      const ask = statement[name].bind(statement)
      statement[name] = (...values) => {
        note(sql)
        return ask(...values)
      }
    }
    return statement
  }
  return counts
}

async function load(name = workload) {
  const { WORKLOADS } = await import('./workloads.mjs')
  const once = await WORKLOADS[name]()
  const repeat = async (times) => {
    for (let at = 0; at < times; at++) {
      await once()
      if (at % 16 === 15) await pause()
    }
    await pause()
  }
  return { repeat }
}

function pause() {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Each call of the result gives how many functions of the build were called since the last one. */
async function countCalls() {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  return async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    const ours = result.filter(({ url }) => url.includes('/dist/'))
    return sum(ours, ({ functions }) => sum(functions, ({ ranges }) => ranges[0].count))
  }
}
