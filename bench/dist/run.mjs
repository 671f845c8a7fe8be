// Work on PostgreSQL, side by side with others on one server: node bench/dist/run.mjs [p1 p2 p3 p4 p5] [--seconds 5] [--peers dbos,langgraph,mastra]
//
// Every sample is a set of fresh processes on a schema of its own, after a warm-up; the systems take turns. The time of processors is the
// measure, that of all processes and of the server together. Compare ratios within one run of this program, never two runs.

import { fork } from 'node:child_process'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { quantile } from '../server/measure.mjs'
import { installPeer, PEERS } from './peers.mjs'
import { startServer } from './server.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '5' },
    workers: { type: 'string', default: '1,2,4' },
    rounds: { type: 'string', default: '1' },
    /** How many conversations wait for a person, and how many are waked. */
    parked: { type: 'string', default: '1000' },
    wakes: { type: 'string', default: '100' },
    peers: { type: 'string', default: '' },
    /** Prints the statements that took longest, for each of what was done. */
    statements: { type: 'boolean', default: false },
  },
})
const seconds = Number(values.seconds)
const peers = values.peers === 'all' ? PEERS : values.peers.split(',').filter((name) => name !== '')
const IN_FLIGHT = 8
const PARTS = { p1, p2, p3, p4, p5 }

const programs = { legate: process.execPath, ...Object.fromEntries(peers.map((name) => [name, installPeer(name)])) }
const server = await startServer()
const started = new Set()
let schemas = 0
try {
  for (const name of positionals.length > 0 ? positionals : Object.keys(PARTS)) {
    if (PARTS[name] === undefined) throw new Error(`No part "${name}": there are ${Object.keys(PARTS).join(', ')}.`)
    for (let round = 0; round < Number(values.rounds); round++) await PARTS[name]()
  }
} finally {
  for (const child of started) child.kill('SIGKILL')
  await server.stop()
}

/** host -> sub -> host, 8 in flight in each process. */
async function p1() {
  for (const workers of values.workers.split(',').map(Number)) {
    for (const system of Object.keys(programs)) {
      await sample(
        { part: 'p1', system, workers },
        () => Array.from({ length: workers }, () => ({})),
        repeat('delegate'),
      )
    }
  }
}

/** One process starts runs, others work on them. */
async function p2() {
  for (const workers of [1, 2]) {
    const split = () => [{ workers: 0 }, ...Array.from({ length: workers }, () => ({}))]
    const ask = (processes) => repeat('delegate', IN_FLIGHT * workers)(processes.slice(0, 1))
    await sample({ part: 'p2', system: 'legate', workers }, split, ask)
  }
}

/** One host with 100 children at once; counted by the child. */
async function p3() {
  for (const system of Object.keys(programs).filter((name) => name !== 'mastra')) {
    const ask = async (processes) => {
      const { done, ...times } = await repeat('fanOut', 1)(processes)
      return { done: done * 100, ...times }
    }
    await sample({ part: 'p3', system, workers: 1 }, () => [{}], ask)
  }
}

/** Conversations that wait for a person, then all are answered. */
async function p4() {
  const count = Number(values.parked)
  const idleMs = Math.min(2_000, seconds * 1_000)
  await withProcesses('legate', [{}], async (processes) => {
    const [process] = processes
    const parked = await measured(processes, async () => {
      await process.ask('once', { name: 'park', argument: count })
      return { done: count }
    })
    const { rss } = await process.ask('figures')
    const idle = await measured(processes, () => pause(idleMs).then(() => ({ done: 1 })))
    const answered = await measured(processes, async () => ({ done: await process.ask('once', { name: 'answer' }) }))
    print({ part: 'p4 park', system: 'legate', workers: 1 }, { ...parked, rssMb: Math.round(rss / 1e6) })
    print(
      { part: 'p4 wait', system: 'legate', workers: 1 },
      { cpuShare: figure((idle.clientMs + idle.serverMs) / idleMs) },
    )
    print({ part: 'p4 answer', system: 'legate', workers: 1 }, answered)
    if (answered.done !== count) throw new Error(`${answered.done} of ${count} conversations have ended.`)
  })
}

/** From the commit of a run in one process to the first line of its code in another. */
async function p5() {
  await withProcesses('legate', [{ workers: 0 }, {}], async ([near, far]) => {
    const times = []
    for (let n = 0; n < Number(values.wakes); n++) {
      const woke = far.hear()
      const committedAt = await near.ask('once', { name: 'wake' })
      const { wokeAt } = await woke
      times.push(wokeAt - committedAt)
      await pause(20 + 80 * Math.random())
    }
    const [p50, p90, p99] = [0.5, 0.9, 0.99].map((share) => figure(quantile(times.slice(5), share)))
    print({ part: 'p5', system: 'legate', workers: 1 }, { wakes: times.length, p50, p90, p99 })
  })
}

/** Keeps work in flight in all processes, and adds up what they did. */
function repeat(name, inFlight = IN_FLIGHT) {
  return async (processes) => {
    const asked = { name, inFlight, seconds }
    const reports = await Promise.all(processes.map((process) => process.ask('repeat', asked)))
    const done = reports.reduce((sum, report) => sum + report.done, 0)
    return { done, p50: figure(reports[0].p50), p99: figure(reports[0].p99) }
  }
}

async function sample(what, orders, ask) {
  await withProcesses(what.system, orders(), async (processes) => {
    // As long as the measurement: compilers take seconds to be done with a program.
    await ask(processes)
    await server.forget()
    const figures = await measured(processes, () => ask(processes))
    print(what, figures)
    if (values.statements) await printStatements(figures.done)
  })
}

async function printStatements(done) {
  for (const { calls, ms, wal, query } of await server.statements()) {
    console.log(
      `  ${figure(calls / done)} calls  ${figure(ms / done)} ms  ${figure(wal / done)} B  ${query.slice(0, 150)}`,
    )
  }
}

/** What something cost, in all processes and in the server, for each of what was done. */
async function measured(processes, work) {
  const look = async () => ({
    server: await server.figures(),
    clients: await Promise.all(processes.map((process) => process.ask('figures'))),
    at: performance.now(),
  })
  const before = await look()
  const { done, ...times } = await work()
  const after = await look()
  const cpu = ({ clients }) => clients.reduce((sum, { cpuMs }) => sum + cpuMs, 0)
  const each = (key) => (after.server[key] - before.server[key]) / done
  const clientMs = (cpu(after) - cpu(before)) / done
  const serverMs = each('cpuMs')
  return {
    done,
    perSecond: Math.round((done * 1_000) / (after.at - before.at)),
    perCpuSecond: Math.round(1_000 / (clientMs + serverMs)),
    clientMs: figure(clientMs),
    serverMs: figure(serverMs),
    statements: figure(each('calls')),
    walKb: figure(each('wal') / 1_000),
    ...times,
  }
}

async function withProcesses(system, orders, use) {
  const schema = `bench${++schemas}`
  const processes = []
  try {
    // The first one makes the tables.
    for (const order of orders) processes.push(await startProcess({ system, schema, url: server.url, ...order }))
    await use(processes)
  } finally {
    await Promise.all(processes.map((process) => process.end()))
    await server.drop(schema)
  }
}

async function startProcess(order) {
  const child = fork(path.join(import.meta.dirname, 'worker.mjs'), [JSON.stringify(order)], {
    execPath: programs[order.system],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  started.add(child)
  const waiting = new Map()
  let heard
  let ids = 0
  child.on('message', ({ id, answer, error, told }) => {
    if (told !== undefined) return heard?.(told)
    const { resolve, reject } = waiting.get(id)
    waiting.delete(id)
    return error === undefined ? resolve(answer) : reject(new Error(error))
  })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  const failed = gone.then((code) => Promise.reject(new Error(`A process of ${order.system} ended with ${code}.`)))
  failed.catch(() => undefined)
  const hear = () =>
    Promise.race([
      failed,
      new Promise((resolve) => {
        heard = resolve
      }),
    ])
  await hear()
  return {
    hear,
    ask: (job, asked) => {
      const id = ids++
      const answer = new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))
      child.send({ id, job, asked })
      return Promise.race([answer, failed])
    },
    end: async () => {
      child.kill('SIGKILL')
      await gone
      started.delete(child)
    },
  }
}

function print({ part, system, workers }, figures) {
  const text = Object.entries(figures).map(([name, value]) => `${name} ${value}`)
  console.log(`${part.padEnd(10)} ${system.padEnd(10)} ${String(workers).padStart(2)}  ${text.join('  ')}`)
}

function figure(value) {
  return Number(value.toPrecision(3))
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
